"""Record types: one JSON object per line, validated on reading.

Unknown fields are kept (``model_extra``), so user-defined columns survive the pipeline.
"""

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from records.cleaning import normalise
from records.evidence import evidence_passages
from records.gold import Gold

Text = Annotated[str, StringConstraints(min_length=1)]
# Numbers as ids are read as text.
Id = Annotated[
    Text, BeforeValidator(lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v)
]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]

RelationLabel = Literal["entailment", "neutral", "contradiction", "not_entailment"]
ClaimLabel = Literal["S", "NS", "IR"]
VerdictLabel = Literal[
    "supported", "not_supported", "contradicted", "undecided", "irrelevant", "failed"
]


class Record(BaseModel):
    """Base class of all records: immutable, validated, keeps unknown fields."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)


class UnliPair(Record):
    """A premise, a hypothesis and the subjective probability of the hypothesis.

    Source: Chen et al. 2020 (u-SNLI).
    """

    premise: Text
    hypothesis: Text
    label: Probability
    source: str | None = None
    weight: Annotated[float, Field(ge=0)] | None = None


class UnjudgedUnliPair(UnliPair):
    """A premise and a hypothesis to predict; the row's ``label`` is ignored."""

    label: Probability = 0.0

    @model_validator(mode="before")
    @classmethod
    def _without_label(cls, row: object) -> object:
        return _unlabelled(row)


class RelationPair(Record):
    """A premise and a hypothesis with their relation.

    ``not_entailment`` comes from two-class sources and may be neutral or contradiction. ``label``
    may also be given as probabilities, stored in ``soft`` (of entailment, neutral, contradiction,
    sum 1): ``{"entailment": 0.7, "neutral": 0.3}`` (missing classes are 0) or a list. Then
    ``label`` is the most likely class.
    """

    premise: Text
    hypothesis: Text
    label: RelationLabel
    source: str | None = None
    weight: Annotated[float, Field(ge=0)] | None = None
    soft: tuple[Probability, Probability, Probability] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_probabilities(cls, row: object) -> object:
        label = row.get("label") if isinstance(row, dict) else None
        if isinstance(label, (dict, list, tuple)):
            soft = _soft_label("label", label)
            return row | {"label": _RELATIONS[soft.index(max(soft))], "soft": soft}
        if label in _RELATIONS and isinstance(row.get("soft"), (list, tuple)):
            soft = _soft_label("soft", row["soft"])
            if soft[_RELATIONS.index(label)] < max(soft):
                raise ValueError(f"soft: {label!r} is not the most likely class of {row['soft']}")
            return row | {"soft": soft}
        return row


class UnjudgedRelationPair(RelationPair):
    """A premise and a hypothesis to predict; the row's ``label`` is ignored."""

    label: RelationLabel = "neutral"

    @model_validator(mode="before")
    @classmethod
    def _without_label(cls, row: object) -> object:
        return _unlabelled(row)


def _unlabelled(row: object) -> object:
    labels = ("label", "soft")
    return {k: v for k, v in row.items() if k not in labels} if isinstance(row, dict) else row


# In the order of ``components.checkpoint.RELATIONS``.
_RELATIONS = ("entailment", "neutral", "contradiction")


def _soft_label(field: str, label: dict | list | tuple) -> tuple[float, ...]:
    """Normalise a soft label; unnamed classes are null in Parquet."""
    raw = label
    if isinstance(label, dict):
        if not label.keys() <= set(_RELATIONS):
            raise ValueError(f"{field}: expected classes {', '.join(_RELATIONS)}, got {raw}")
        label = [0.0 if label.get(name) is None else label[name] for name in _RELATIONS]
    numbers = all(isinstance(p, (int, float)) and not isinstance(p, bool) for p in label)
    if len(label) != 3 or not numbers or min(label) < 0 or not abs(sum(label) - 1) <= 0.01:
        raise ValueError(
            f"{field}: expected probabilities of {', '.join(_RELATIONS)} that sum to 1, got {raw}"
        )
    return tuple(p / sum(label) for p in label)


class Annotation(Record):
    """One annotator's longest supported subsequence of a claim (2308.12157, section 4)."""

    lss: str
    lss_star: str | None = None
    rating: Annotated[float, Field(ge=1, le=5)] | None = None


class LssExample(Record):
    """A reference, a claim, and annotations of what the reference supports."""

    reference: Text
    claim: Text
    annotations: Annotated[list[Annotation], Field(min_length=1)]
    id: str | None = None
    keep: list[bool] | None = Field(
        default=None,
        description="word-level gold labels if the source has them, e.g. WiCE's tokens",
    )


class Sentence(Record):
    """A generated sentence whose truth is known from the knowledge base it was made from."""

    text: Text
    true: bool


class Generation(Record):
    """A generated text about a topic.

    ``group`` and ``bin`` are the topic's group and frequency bin; results have rows for each.
    """

    topic: Text
    text: str
    kind: str | None = None
    generator: str | None = None
    responds: bool | None = None
    group: str | None = None
    bin: str | None = None
    sentences: list[Sentence] | None = None
    citations: list | None = None
    gold: Gold | None = None


class Claim(Record):
    """A subclaim of a document.

    Attributes:
        sentence: 0-based index of its sentence.
        source: that sentence as the decomposer saw it; the premise of document entailment.
        label: human or knowledge-base label, if known.
        contexts: ids of its passages; after retrieval ``[]`` means no results, ``None`` that
            retrieval failed.
        original: the text before revision.
        failed: why a sentence or claim could not be processed; ``text`` holds it. Reported
            separately and never scored.
    """

    id: Id
    text: Text
    sentence: Annotated[int, Field(ge=0)] = 0
    source: str | None = None
    label: ClaimLabel | None = None
    contexts: list[Id] | None = None
    original: str | None = None
    failed: Text | None = None

    @field_validator("text")
    @classmethod
    def _normalised(cls, text: str) -> str:
        return normalise(text) or text


class Passage(Record):
    """A piece of evidence. ``prior`` is the probability that its content is true."""

    id: Id
    title: str = ""
    text: Text
    url: str | None = None
    source: str | None = None
    prior: Probability | None = None

    @field_validator("text", mode="before")
    @classmethod
    def _is_text(cls, text: object) -> object:
        if isinstance(text, dict | list):
            raise ValueError(
                "expected a text, got an object or list; write a tool's output as one string, e.g. "
                "with json.dumps"
            )
        return normalise(text) if isinstance(text, str) else text


class SourcePrior(Record):
    """The probability that the content of a source is true.

    A learned prior rests on ``seen`` votes, of which ``agreed`` were right.
    """

    source: Text
    prior: Probability
    agreed: int | None = None
    seen: int | None = None


class Document(Record):
    """A text to score, optionally with claims and passages.

    Claims and passages may be strings. Passages without a letter or digit are dropped.

    ``group`` and ``bin`` are the topic's group and frequency bin; results have rows for each.
    ``responds`` is false for an abstention; ``None`` leaves it to ``records.abstention``.
    """

    id: Id
    topic: Text
    text: str
    claims: list[Claim] | None = None
    passages: list[Passage] | None = None
    group: str | None = None
    bin: str | None = None
    kind: str | None = None
    generator: str | None = None
    responds: bool | None = None
    gold: Gold | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_strings(cls, row: object) -> object:
        if not isinstance(row, dict):
            return row
        row = row | ({"claims": _named(row["claims"], "c")} if row.get("claims") else {})
        raw = row.get("passages")
        if raw and not (isinstance(raw, list | tuple) and isinstance(raw[0], Passage)):
            row["passages"] = evidence_passages("passages", raw)
            blank = [passage for passage in row["passages"] if _is_blank(passage)]
            row["passages"] = [p for p in row["passages"] if p not in blank]
            ids = {passage.get("id") for passage in blank}
            for claim in row.get("claims") or [] if blank else ():
                if isinstance(claim, dict) and isinstance(claim.get("contexts"), list):
                    claim["contexts"] = [name for name in claim["contexts"] if name not in ids]
        return row

    @field_validator("claims")
    @classmethod
    def _unique_ids(cls, claims: list[Claim] | None) -> list[Claim] | None:
        if claims and len({c.id for c in claims}) != len(claims):
            raise ValueError("claim ids must be unique within a document")
        return claims


def _named(items: object, prefix: str) -> object:
    """Convert strings, and rows without id, to rows of ours."""
    listed = [items] if isinstance(items, str) else items
    if not isinstance(listed, list | tuple):
        return items
    rows = []
    for index, item in enumerate(listed):
        row = {"text": item} if isinstance(item, str) else item
        rows.append({"id": f"{prefix}{index}"} | row if isinstance(row, dict) else row)
    return rows


def _is_blank(passage: object) -> bool:
    text = passage.get("text") if isinstance(passage, dict) else None
    return isinstance(text, str) and not any(char.isalnum() for char in text)


class Verdict(Record):
    """An assessor's judgement of one claim.

    Attributes:
        claim: the claim's id.
        assessor: e.g. ``nli``.
        name: which of the assessor's verdicts, e.g. ``independent`` or ``grouped``.
        p: probability that the claim is supported, if the assessor returns one.
        evidence: ids of the passages that the verdict rests on.
        contradicted_by: ids of passages that contradict the claim, also of a supported one.
        reason: why the claim has the label ``failed``.
    """

    claim: Text
    assessor: Text
    name: str = "default"
    label: VerdictLabel
    p: Probability | None = None
    evidence: list[str] | None = None
    contradicted_by: list[str] | None = None
    group: str | None = None
    entity: str | None = None
    reason: str | None = None


class Preference(Record):
    """A pair of answers to a prompt, ordered by a metric."""

    prompt: Text
    chosen: str
    rejected: str
    score_chosen: float | None = None
    score_rejected: float | None = None


def group_of(record: Record) -> str:
    """Return the key that must not be on both sides of a split: ``group`` or the row's text.

    Records of custom components may have no such text field; then the key is the whole row.
    """
    group = (record.model_extra or {}).get("group")
    if group is not None:
        return str(group)
    fields = ("premise", "reference", "topic", "prompt")
    field = next((name for name in fields if hasattr(record, name)), None)
    return record.model_dump_json() if field is None else getattr(record, field)
