"""Texts of other projects as our documents, with their claims and passages where they have any."""

from __future__ import annotations

from records import foreign_ambigbio as ambigbio


def _factscore_labelled(row: dict, number: int) -> dict | None:
    """FActScore's labelled biographies: ``annotations`` with atomic facts.

    The humans' facts become ``claims``, the model's, which have no labels, ``model_claims``.
    """
    sentences = row.get("annotations")
    if not isinstance(sentences, list) or "output" not in row:
        return None
    found = {
        "claims": _atomic_facts(sentences, "human-atomic-facts"),
        "model_claims": _atomic_facts(sentences, "model-atomic-facts"),
    }
    return _document(row, number, row["output"], kind="normal", **found)


def _atomic_facts(sentences: list[dict], field: str) -> list[dict]:
    claims = []
    for index, sentence in enumerate(sentences):
        for fact in sentence.get(field) or []:
            claim = {"id": f"c{len(claims)}", "text": fact["text"], "sentence": index}
            claim["source"] = sentence["text"]
            if field.startswith("human"):
                claim["label"] = fact["label"]
            claims.append(claim)
    return claims


def _response(row: dict, number: int) -> dict | None:
    """FActScore (``output``), SAFE/LongFact and VeriScore (``response``), our generations."""
    for field in ("output", "response", "text"):
        if isinstance(row.get(field), str):
            return _document(row, number, row[field])
    return None


def _factreasoner(row: dict, number: int) -> dict | None:
    """FactReasoner's ``atoms`` and ``contexts`` beside ``input`` and ``output``.

    An atom's ``original`` is its text before revision. A context without any text is left out.

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
    passages = [
        {
            "id": context["id"],
            "title": context.get("title") or "",
            "text": context.get("text") or context.get("snippet"),
            "url": context.get("link"),
            "prior": context.get("probability"),
        }
        for context in row["contexts"]
        if context.get("text") or context.get("snippet")
    ]
    there = {passage["id"] for passage in passages}
    claims = [
        {
            "id": atom["id"],
            "text": atom["text"],
            "original": atom.get("original"),
            "label": atom.get("label") if atom.get("label") in {"S", "NS", "IR"} else None,
            "contexts": [name for name in atom.get("contexts") or [] if name in there],
        }
        for atom in row["atoms"]
    ]
    return _document(row, number, row.get("output"), claims=claims, passages=passages)


_VERISCORE = {"supported": "S", "unsupported": "NS", "contradicted": "NS"}


def _veriscore(row: dict, number: int) -> dict | None:
    """VeriScore's ``claims_*.jsonl``, ``evidence_*.jsonl`` and verification files.

    ``claim_list`` holds the claims sentence by sentence, ``claim_search_results`` what was found
    for each; a claim that is ``inconclusive`` has no label. A sentence without any has a line that
    says so, or null. A search result without any text is left out.
    """
    if not isinstance(row.get("claim_list"), list) and row.get("abstained") is not True:
        return None
    hits = row.get("claim_search_results") or {}
    results = row.get("claim_verification_result") or []
    labels = {r["claim"]: _VERISCORE.get(r["verification_result"]) for r in results}
    claims, passages, names = [], [], {}
    for text, every in hits.items():
        own = [hit for hit in every if hit.get("snippet") or hit["title"]]
        names[text] = [f"p{len(names)}_{place}" for place in range(len(own))]
        for name, hit in zip(names[text], own, strict=True):
            text_of = hit.get("snippet") or hit["title"]
            passages.append({"id": name, "title": hit["title"], "text": text_of})
            passages[-1]["url"] = hit.get("link")
    for index, own in enumerate(row.get("claim_list") or []):
        for text in own:
            if text and text.strip() and not text.startswith("No verifiable claim"):
                claim = {"id": f"c{len(claims)}", "text": text, "sentence": index}
                found = {"label": labels.get(text), "contexts": names.get(text)}
                claims.append(claim | {key: value for key, value in found.items() if value})
    more = {"passages": passages} if hits else {}
    return _document(row, number, row["response"], claims=claims, **more)


_SAFE = {"Supported": "S", "Not Supported": "NS", "Irrelevant": "IR"}
# What SAFE's scripts call a side that nobody wrote.
_NO_SIDE = ("none", "placeholder")


def _safe(row: dict, number: int) -> list[dict] | None:
    """SAFE's results, one row of ``per_prompt_data``: a document for each side that was rated.

    Where none was, for each side that has a response, without claims. ``side_1`` and ``side_2`` of
    the file say who wrote the sides.
    """
    sides = [side for side in ("side1", "side2") if row.get(f"{side}_posthoc_eval_data")]
    for side in () if sides else ("side1", "side2"):
        if row.get(f"{side}_response") and row.get(f"side_{side[-1]}") not in _NO_SIDE:
            sides.append(side)
    found = []
    for side in sides:
        data = row.get(f"{side}_posthoc_eval_data")
        text = row.get(f"{side}_response") or data["response"]
        name = f"d{number}" if len(sides) == 1 else f"d{number}.{side}"
        found.append({"id": name, "topic": row["prompt"], "text": text})
        found[-1]["claims"] = _checked(data) if data else None
        found[-1]["generator"] = row.get(f"side_{side[-1]}") or side
    return found or None


def _checked(data: dict) -> list[dict]:
    """The claims of a side that SAFE rated."""
    order = {fact["sentence"]: i for i, fact in enumerate(data["all_atomic_facts"])}
    return [
        {
            "id": f"c{place}",
            "text": statement["self_contained_atomic_fact"],
            "original": statement["atomic_fact"],
            "sentence": order.get(statement["sentence"], 0),
            "source": statement["sentence"],
            "label": _SAFE.get(statement["annotation"]),
        }
        for place, statement in enumerate(data["checked_statements"])
    ]


def _factscore_predictions(row: dict, number: int) -> dict | None:
    """FActScore's released predictions: ``facts`` with the labels of two estimators.

    The labels are those of ChatGPT where they are there, else of LLAMA+NP; the text, which these
    files lack, is the facts one after the other.
    """
    if not isinstance(row.get("facts"), list) or "prompt" not in row:
        return None
    names = (f"{who}_{word}abels" for who in ("ChatGPT", "LLAMA+NP") for word in "Ll")
    labels = next((row[name] for name in names if name in row), [None] * len(row["facts"]))
    if len(labels) != len(row["facts"]):
        raise ValueError("facts: must be as many as their labels")
    claims = [
        {"id": f"c{place}", "text": text, "label": label if label in ("S", "NS", "IR") else None}
        for place, (text, label) in enumerate(zip(row["facts"], labels, strict=True))
    ]
    return _document(row, number, " ".join(row["facts"]), claims=claims)


# VeriScore's `question` tells its extraction whether a text is an answer to one.
_KEPT = ("group", "bin", "kind", "generator", "question", "prompt_source")


def _document(row: dict, number: int, text: str, **more: object) -> dict:
    topic = row.get("topic") or row.get("prompt") or row.get("question") or row.get("input")
    if not topic and "prompt_source" in row:  # VeriScore's texts that answer no question
        topic = str(row.get("id", f"d{number}"))
    if not topic:
        raise ValueError("topic: field required; prompt, question or input would do")
    kept = {k: row[k] for k in _KEPT if row.get(k) is not None}
    if isinstance(row.get("model"), str) and row["model"]:  # VeriScore
        kept.setdefault("generator", row["model"])
    return {"id": str(row.get("id", f"d{number}")), "topic": topic, "text": text, **kept, **more}


_READERS = (
    *(_factscore_labelled, _factreasoner, _safe, _veriscore, _factscore_predictions),
    *(ambigbio.judged, ambigbio.generation, ambigbio.cited, _response),
)


def to_document(row: dict, number: int) -> dict | list[dict]:
    """A row of another project as a document of ours; a row of ours as it is.

    Raises:
        ValueError: it is neither.
    """
    if "id" in row and "topic" in row and "text" in row:
        return row
    found = (reader(row, number) for reader in _READERS)
    document = next((document for document in found if document is not None), None)
    if document is None:
        raise ValueError("text: field required; a text in output or response would do")
    return document
