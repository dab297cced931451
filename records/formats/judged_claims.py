"""Claims that people judged against evidence, as documents of one schema.

Each claim has ``label`` (S: supported by the evidence; NS: not supported) and the dataset's own
finer word in ``finer``. Claims without agreement have no label. Further fields:

- a document's ``group`` is the source of a combined dataset; documents with the same ``unit``
  (article, question) are sampled together;
- a claim's ``share`` is the share of its ``people`` annotators who called it supported, if votes
  are published;
- a passage's ``evidence_label`` is the label of the claim given this passage alone.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping

Judgement = tuple[str | None, str | None]

# (label, finer word) → words of all datasets. Partial support is NS, as in WiCE and LLM-AggreFact;
# conflicting evidence has no label.
_JUDGEMENTS: dict[tuple[str | None, str], tuple[str, ...]] = {
    ("S", "supported"): (
        "supported", "supports", "support", "entailment", "entails", "entailed", "entail", "e",
        "attributable", "completely support", "complete", "consistent",
    ),
    ("S", "benign"): ("benign",),
    ("NS", "partially_supported"): ("partially supported", "partially support", "partial"),
    ("NS", "not_supported"): (
        "not supported", "not attributable", "not entailment", "non entailment", "not entailed",
        "incomplete", "missing",
    ),
    ("NS", "refuted"): (
        "refuted", "refutes", "refute", "contradiction", "contradicted", "contradictory",
        "contradicts", "contradict", "c",
    ),
    ("NS", "not_enough"): (
        "not enough info", "not enough information", "not enough evidence", "nei", "neutral",
        "unrelated", "n",
    ),
    ("NS", "irrelevant"): ("irrelevant",),
    ("NS", "questionable"): ("questionable",),
    ("NS", "unwanted"): ("unwanted",),
    (None, "disputed"): ("disputed", "conflicting evidence/cherrypicking"),
    (None, "unknown"): (
        "unknown", "n/a", "na", "hidden", "not available", "no gold label", "-", "-1",
    ),
}  # fmt: skip
JUDGEMENT_OF_WORD = {word: judgement for judgement, words in _JUDGEMENTS.items() for word in words}
SUPPORTED, NOT_SUPPORTED = ("S", "supported"), ("NS", "not_supported")


def parse_judgement(
    word: object, field: str, words: Mapping[str, Judgement] = JUDGEMENT_OF_WORD
) -> Judgement:
    """Return the label and the finer word, or ``(None, None)`` for an empty field."""
    if word is None or word == "" or (isinstance(word, float) and math.isnan(word)):
        return None, None
    if isinstance(word, float) and word.is_integer():
        word = int(word)
    elif isinstance(word, str) and re.fullmatch(r"-?\d\.0", word):
        word = word[:-2]  # integer columns with gaps in a CSV
    plain = " ".join(str(word).lower().replace("_", " ").replace("-", " ").split()) or "-"
    judgement = words.get(str(word), words.get(plain))
    if judgement is None and words is JUDGEMENT_OF_WORD and re.fullmatch(r"\d", plain):
        raise ValueError(
            f"{field}: the number {plain}, whose meaning the file does not state; pass --labels "
            "'{0: entailment, 1: neutral, 2: contradiction}' (or not_entailment) in its order "
            "(--data.labels of fit, --experiment.labels of agreement); other commands need words"
        )
    if judgement is None:
        raise ValueError(f"{field}: expected one of {', '.join(words)}, got {word!r}")
    return judgement


def required_text(row: Mapping, field: str) -> str:
    """Return a non-empty text field, stripped."""
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        fault = "field required" if value is None else f"expected a text, got {value!r}"
        raise ValueError(f"{field}: {fault}")
    return value.strip()


def short_hash(text: str) -> str:
    """Return a short name that depends only on the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def passages_of(texts: str | Iterable[str], prefix: str = "p") -> list[dict]:
    """Return passages of the non-empty texts."""
    candidates = [texts] if isinstance(texts, str) else texts
    non_empty = [text.strip() for text in candidates if isinstance(text, str) and text.strip()]
    return [{"id": f"{prefix}{index}", "text": text} for index, text in enumerate(non_empty)]


def claim_of(
    text: str, judgement: Judgement, passages: list[dict], name: str = "c0", **more: object
) -> dict:
    """Return a claim with its evidence."""
    label, finer = judgement
    contexts = [passage["id"] for passage in passages]
    return {"id": name, "text": text, "label": label, "finer": finer, "contexts": contexts, **more}


def document_of_pair(
    row: Mapping,
    number: int,
    claim: str,
    evidence: str | Iterable[str],
    judgement: Judgement,
    unit: object = None,
    source: object = None,
    **more: object,
) -> dict:
    """Return a document of one claim with its evidence.

    ``unit`` is the key of documents that are sampled together (default a hash of the evidence),
    ``source`` the dataset of the row in a combined dataset, ``more`` are further fields of the
    claim.
    """
    passages = passages_of(evidence)
    unit = str(unit) if unit else short_hash("\n".join(passage["text"] for passage in passages))
    name = row.get("id", row.get("uid"))
    question = row.get("question")
    return {
        "id": f"d{number}" if name is None else str(name),
        "topic": question if isinstance(question, str) and question.strip() else claim,
        "text": claim,
        "claims": [claim_of(claim, judgement, passages, **more)],
        "passages": passages,
        "unit": unit,
    } | ({} if source in (None, "") else {"group": str(source)})
