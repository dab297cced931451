"""Preferences as chat messages, as TRL has them."""


def to_preference(row: dict) -> dict:
    """Convert chat messages, as TRL has them, to one user message and two answers.

    Raises:
        ValueError: the row has other messages, which the prompt cannot hold.
    """
    remedy = "which the prompt, one user message, cannot hold; drop the row"
    for name in ("system", "history"):
        if row.get(name):
            raise ValueError(f"{name}: has earlier messages, {remedy}")
    texts, prompt = {}, row.get("prompt")
    for name in ("chosen", "rejected"):
        if not isinstance(row.get(name), list):
            continue
        *context, answer = row[name]
        if isinstance(prompt, list) and context[: len(prompt)] != prompt:
            context = [*prompt, *context]
        roles = [message["role"] for message in context]
        if answer["role"] != "assistant" or roles not in ([], ["user"]):
            all_roles = ", ".join([*roles, answer["role"]])
            raise ValueError(f"{name}: has messages of the roles {all_roles}, {remedy}")
        texts[name] = answer["content"]
        for message in context:
            if texts.setdefault("prompt", message["content"]) != message["content"]:
                raise ValueError(f"{name}: answers another prompt than chosen; drop the row")
    if isinstance(prompt, list):
        if [message["role"] for message in prompt] != ["user"]:
            raise ValueError(f"prompt: has earlier messages, {remedy}")
        texts["prompt"] = prompt[0]["content"]
    elif isinstance(prompt, str) and texts.get("prompt", prompt).strip() != prompt.strip():
        raise ValueError("prompt: differs from the user message of chosen; drop the row")
    return row | texts
