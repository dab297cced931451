"""FactReasoner's files (IBM/FactReasoner): inputs with atoms and contexts, outputs of assessors."""

from records.formats.row_fields import document_of

# What FactReasoner's assessors call a claim in ``predictions``.
_PREDICTED = {
    "S": "supported",
    "NS": "not_supported",
    "C": "contradicted",
    "U": "undecided",
}


def factreasoner(row: dict, number: int) -> dict | None:
    """FactReasoner's ``atoms`` and ``contexts`` beside ``input`` and ``output``.

    Its inputs, with labels and ``cat`` (our ``bin`` and ``group``), and its assessors' outputs,
    whose ``results`` are kept and give each claim ``recorded``: what
    ``eval.verify.recorded.Recorded`` takes for a verdict. An atom's ``original`` is its text before
    revision. An empty ``output``, as in its Conflicts, is the atoms one after the other. A context
    is read by its text, else its snippet, summary or title; how many have none of them is kept as
    ``contexts_left_out``.

    Raises:
        ValueError: an atom names a context that the row does not have.
    """
    if not isinstance(row.get("atoms"), list) or not isinstance(row.get("contexts"), list):
        return None
    known = {context["id"] for context in row["contexts"]}
    for place, atom in enumerate(row["atoms"]):
        for name in atom.get("contexts") or []:
            if name not in known:
                raise ValueError(f"atoms.{place}.contexts: {name!r} is not among the contexts")
    every = [_context(context) for context in row["contexts"]]
    passages = [passage for passage in every if passage["text"]]
    there = {passage["id"] for passage in passages}
    recorded = _recorded(row.get("results") or {})
    claims = [
        {
            "id": atom["id"],
            "text": atom["text"],
            "original": atom.get("original"),
            "label": atom.get("label") if atom.get("label") in {"S", "NS", "IR"} else None,
            "contexts": [name for name in atom.get("contexts") or [] if name in there],
            **({"recorded": recorded[atom["id"]]} if atom["id"] in recorded else {}),
        }
        for atom in row["atoms"]
    ]
    more = {name: row[name] for name in ("input", "results") if row.get(name)}
    if len(passages) < len(every):
        more["contexts_left_out"] = len(every) - len(passages)
    text = row.get("output") or " ".join(atom["text"] for atom in row["atoms"])
    return document_of(row, number, text, claims=claims, passages=passages, **more)


def _context(context: dict) -> dict:
    texts = {name: context.get(name) for name in ("text", "snippet", "synthetic_summary")}
    title = context.get("title") or ""
    read = next((name for name, text in texts.items() if text), None)
    others = {name: text for name, text in texts.items() if text and name != read}
    return others | {
        "id": context["id"],
        "title": title,
        "text": texts[read] if read else title,
        "url": context.get("link"),
        "prior": context.get("probability"),
    }


def _recorded(results: dict) -> dict[str, dict]:
    """Label and probability of each atom in FactReasoner's, or a baseline's, ``results``.

    Where there are marginals they decide the label, since FactReasoner's own predictions call an
    undecided atom not supported.
    """
    p = {row["variable"]: row["probabilities"][1] for row in results.get("marginals") or []}
    found = {}
    for name, said in (results.get("predictions") or {}).items():
        if name in p:
            side = "supported" if p[name] > 0.5 else "contradicted"
            found[name] = {"label": "undecided" if p[name] == 0.5 else side, "p": p[name]}
        elif said in _PREDICTED:
            found[name] = {"label": _PREDICTED[said]}
    return found
