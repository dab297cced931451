"""FactReasoner (IBM/FactReasoner): inputs with atoms and contexts, outputs of assessors."""

from records.formats.row_fields import document_of

# Values of ``predictions``.
_PREDICTED = {"S": "supported", "NS": "not_supported", "C": "contradicted", "U": "undecided"}


def factreasoner(row: dict, number: int) -> dict | None:
    """Read FactReasoner's inputs, and its assessors' outputs.

    Inputs have ``atoms`` and ``contexts`` with ``input`` and ``output``, labels and ``cat`` (our
    ``bin`` and ``group``). Outputs also have ``results``; each claim gets ``recorded``, the verdict
    for ``eval.verify.recorded.Recorded``. ``original`` is the text before revision. An empty
    ``output``, as in Conflicts, is replaced by the joined atoms. A context's text is the first of
    text, snippet, summary and title; contexts without any are counted in ``contexts_left_out``.
    """
    if not isinstance(row.get("atoms"), list) or not isinstance(row.get("contexts"), list):
        return None
    context_ids = {context["id"] for context in row["contexts"]}
    for index, atom in enumerate(row["atoms"]):
        for name in atom.get("contexts") or []:
            if name not in context_ids:
                raise ValueError(f"atoms.{index}.contexts: {name!r} is not among the contexts")
    converted = [_context(context) for context in row["contexts"]]
    passages = [passage for passage in converted if passage["text"]]
    passage_ids = {passage["id"] for passage in passages}
    recorded = _recorded(row.get("results") or {})
    claims = [
        {
            "id": atom["id"],
            "text": atom["text"],
            "original": atom.get("original"),
            "label": atom.get("label") if atom.get("label") in {"S", "NS", "IR"} else None,
            "contexts": [name for name in atom.get("contexts") or [] if name in passage_ids],
            **({"recorded": recorded[atom["id"]]} if atom["id"] in recorded else {}),
        }
        for atom in row["atoms"]
    ]
    more = {name: row[name] for name in ("input", "results") if row.get(name)}
    if len(passages) < len(converted):
        more["contexts_left_out"] = len(converted) - len(passages)
    text = row.get("output") or " ".join(atom["text"] for atom in row["atoms"])
    return document_of(row, number, text, claims=claims, passages=passages, **more)


def _context(context: dict) -> dict:
    texts = {name: context.get(name) for name in ("text", "snippet", "synthetic_summary")}
    title = context.get("title") or ""
    field = next((name for name, text in texts.items() if text), None)
    unused = {name: text for name, text in texts.items() if text and name != field}
    return unused | {
        "id": context["id"],
        "title": title,
        "text": texts[field] if field else title,
        "url": context.get("link"),
        "prior": context.get("probability"),
    }


def _recorded(results: dict) -> dict[str, dict]:
    """Return label and probability of each atom in ``results``.

    Marginals take precedence, since FactReasoner's predictions label undecided atoms not supported.
    """
    p = {row["variable"]: row["probabilities"][1] for row in results.get("marginals") or []}
    recorded = {}
    for name, prediction in (results.get("predictions") or {}).items():
        if name in p:
            side = "supported" if p[name] > 0.5 else "contradicted"
            recorded[name] = {"label": "undecided" if p[name] == 0.5 else side, "p": p[name]}
        elif prediction in _PREDICTED:
            recorded[name] = {"label": _PREDICTED[prediction]}
    return recorded
