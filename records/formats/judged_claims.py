"""Claims that people judged against evidence, as documents of one form.

Each claim has ``label`` (S: the evidence supports it; NS: it does not) and the set's own, finer
word for that in ``finer``. A claim on which people agree neither way has no label. Beside them:

- a document's ``group`` is the source of a set that was put together of several, its ``unit`` what
  must not be torn apart when documents are drawn (an article, a question);
- a claim's ``share`` is the share of the people who called it supported, ``people`` how many these
  were, where votes are told;
- a passage's ``evidence_label`` says what it alone says of the claim.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping

Judgement = tuple[str | None, str | None]

# The words of all sets: S, NS or neither, and one finer word for each. What is supported in part is
# not supported, as in WiCE and LLM-AggreFact; evidence that conflicts decides nothing.
_MEANT: dict[tuple[str | None, str], tuple[str, ...]] = {
    ("S", "supported"): (
        "supported", "supports", "support", "entailment", "e", "attributable", "completely support",
        "complete", "consistent",
    ),
    ("S", "benign"): ("benign",),
    ("NS", "partially_supported"): ("partially supported", "partially support", "partial"),
    ("NS", "not_supported"): (
        "not supported", "not attributable", "not entailment", "incomplete", "missing",
    ),
    ("NS", "refuted"): ("refuted", "refutes", "refute", "contradiction", "contradicted", "c"),
    ("NS", "not_enough"): ("not enough info", "not enough evidence", "neutral", "n"),
    ("NS", "irrelevant"): ("irrelevant",),
    ("NS", "questionable"): ("questionable",),
    ("NS", "unwanted"): ("unwanted",),
    (None, "disputed"): ("disputed", "conflicting evidence/cherrypicking"),
    (None, "unknown"): ("unknown", "n/a", "na", "hidden", "not available", "-", "-1"),
}  # fmt: skip
_WORDS = {word: meant for meant, words in _MEANT.items() for word in words}
SUPPORTED, NOT_SUPPORTED = ("S", "supported"), ("NS", "not_supported")


def parse_judgement(word: object, field: str, words: Mapping[str, Judgement] = _WORDS) -> Judgement:
    """S, NS or neither, and the finer word; neither of them for a row without a label.

    Raises:
        ValueError: nobody knows the word; the message starts with the field.
    """
    if word is None or word == "" or (isinstance(word, float) and math.isnan(word)):
        return None, None
    if isinstance(word, float) and word.is_integer():
        word = int(word)
    elif isinstance(word, str) and re.fullmatch(r"-?\d\.0", word):
        word = word[:-2]  # a number in the CSV of a table with gaps
    plain = " ".join(str(word).lower().replace("_", " ").replace("-", " ").split()) or "-"
    meant = words.get(str(word), words.get(plain))
    if meant is None:
        raise ValueError(f"{field}: expected one of {', '.join(words)}, got {word!r}")
    return meant


def required_text(row: Mapping, field: str) -> str:
    """A field that must hold a text, without the blanks around it."""
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        fault = "field required" if value is None else f"expected a text, got {value!r}"
        raise ValueError(f"{field}: {fault}")
    return value.strip()


def short_hash(text: str) -> str:
    """A short name that depends on a text alone."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def passages_of(texts: str | Iterable[str], prefix: str = "p") -> list[dict]:
    """Passages of texts, without those that are empty."""
    every = [texts] if isinstance(texts, str) else texts
    full = [text.strip() for text in every if isinstance(text, str) and text.strip()]
    return [{"id": f"{prefix}{place}", "text": text} for place, text in enumerate(full)]


def claim_of(
    text: str, meant: Judgement, passages: list[dict], name: str = "c0", **more: object
) -> dict:
    """A claim and its evidence."""
    label, finer = meant
    contexts = [passage["id"] for passage in passages]
    return {"id": name, "text": text, "label": label, "finer": finer, "contexts": contexts, **more}


def document_of_pair(
    row: Mapping,
    number: int,
    claim: str,
    evidence: str | Iterable[str],
    meant: Judgement,
    unit: object = None,
    source: object = None,
    **more: object,
) -> dict:
    """A document that is a claim with its own evidence.

    Args:
        row: of the set; its ``id`` or ``uid`` and its ``question`` are kept.
        number: of the row in its file.
        claim: what was judged.
        evidence: one text or several.
        meant: people's label.
        unit: what is drawn together; the evidence where there is none.
        source: of a set of several.
        more: further fields of the claim.
    """
    passages = passages_of(evidence)
    unit = str(unit) if unit else short_hash("\n".join(passage["text"] for passage in passages))
    name = row.get("id", row.get("uid"))
    question = row.get("question")
    return {
        "id": f"d{number}" if name is None else str(name),
        "topic": question if isinstance(question, str) and question.strip() else claim,
        "text": claim,
        "claims": [claim_of(claim, meant, passages, **more)],
        "passages": passages,
        "unit": unit,
    } | ({} if source in (None, "") else {"group": str(source)})
