"""The records of the house: one JSON object a line, validated on reading.

Fields that a record does not know are kept as they are (``model_extra``), so that a user's own
columns survive a trip through the pipeline.
"""

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

Text = Annotated[str, StringConstraints(min_length=1)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]

RelationLabel = Literal["entailment", "neutral", "contradiction", "not_entailment"]
ClaimLabel = Literal["S", "NS", "IR"]
VerdictLabel = Literal[
    "supported", "not_supported", "contradicted", "undecided", "irrelevant", "failed"
]


class Record(BaseModel):
    """Base of all records: immutable, strict about its own fields, tolerant of foreign ones."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)


class UnliPair(Record):
    """A premise and a hypothesis with the subjective probability of the hypothesis.

    Source: Chen et al. 2020 (u-SNLI).
    """

    premise: Text
    hypothesis: Text
    label: Probability
    source: str | None = None
    weight: Annotated[float, Field(ge=0)] | None = None


class UnjudgedUnliPair(UnliPair):
    """A premise and a hypothesis to be judged: whatever ``label`` the row has is not read."""

    label: Probability = 0.0

    @model_validator(mode="before")
    @classmethod
    def _without_label(cls, row: object) -> object:
        return _unlabelled(row)


class RelationPair(Record):
    """A premise and a hypothesis with their relation.

    ``not_entailment`` comes from two-class sources and says nothing about contradiction.

    ``label`` may be given as probabilities, as a teacher predicts them: ``{"entailment": 0.7,
    "neutral": 0.3}`` (what is not named has none) or a list in the order of ``soft``. They are then
    ``soft``, and ``label`` is the likeliest.

    Attributes:
        soft: probabilities of entailment, neutral and contradiction, which sum to 1.
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
            soft = _three("label", label)
            return row | {"label": _RELATIONS[soft.index(max(soft))], "soft": soft}
        if label in _RELATIONS and isinstance(row.get("soft"), (list, tuple)):
            soft = _three("soft", row["soft"])
            if soft[_RELATIONS.index(label)] < max(soft):
                raise ValueError(f"soft: {row['soft']}, of which {label!r} is not the likeliest")
            return row | {"soft": soft}
        return row


class UnjudgedRelationPair(RelationPair):
    """A premise and a hypothesis to be judged: whatever ``label`` the row has is not read."""

    label: RelationLabel = "neutral"

    @model_validator(mode="before")
    @classmethod
    def _without_label(cls, row: object) -> object:
        return _unlabelled(row)


def _unlabelled(row: object) -> object:
    labels = ("label", "soft")
    return {k: v for k, v in row.items() if k not in labels} if isinstance(row, dict) else row


# The order of the relation model's outputs (``components/checkpoint.py``).
_RELATIONS = ("entailment", "neutral", "contradiction")


def _three(field: str, label: dict | list | tuple) -> tuple[float, ...]:
    """The probabilities of a soft label; in Parquet a class that is not named is null."""
    given = label
    if isinstance(label, dict):
        if not label.keys() <= set(_RELATIONS):
            raise ValueError(f"{field}: give probabilities of {', '.join(_RELATIONS)}, not {given}")
        label = [0.0 if label.get(name) is None else label[name] for name in _RELATIONS]
    numbers = all(isinstance(p, (int, float)) and not isinstance(p, bool) for p in label)
    if len(label) != 3 or not numbers or min(label) < 0 or not abs(sum(label) - 1) <= 0.01:
        raise ValueError(
            f"{field}: give probabilities of {', '.join(_RELATIONS)} that sum to 1, not {given}"
        )
    return tuple(p / sum(label) for p in label)


class Annotation(Record):
    """One annotator's longest supported subsequence of a claim (2308.12157, section 4)."""

    lss: str
    lss_star: str | None = None
    rating: Annotated[float, Field(ge=1, le=5)] | None = None


class LssExample(Record):
    """A reference, a claim, and one or more annotations of what the reference supports."""

    reference: Text
    claim: Text
    annotations: Annotated[list[Annotation], Field(min_length=1)]
    id: str | None = None
    keep: list[bool] | None = Field(
        default=None, description="word-level gold where the source has it, e.g. WiCE's tokens"
    )


class Sentence(Record):
    """A sentence of a generation whose truth is known because a knowledge base made it."""

    text: Text
    true: bool


class Generation(Record):
    """A text that some generator wrote about a topic.

    ``group`` and ``bin`` say of which group and frequency the topic is; results have rows of each.
    """

    topic: Text
    text: str
    kind: str | None = None
    generator: str | None = None
    group: str | None = None
    bin: str | None = None
    sentences: list[Sentence] | None = None
    citations: list | None = None


class Claim(Record):
    """A subclaim of a document.

    Attributes:
        sentence: 0-based index of the sentence it came from.
        source: that sentence as the decomposer saw it; the premise of document entailment.
        label: a human or knowledge-base label, where one is known.
        contexts: ids of the passages that belong to it; after retrieval ``[]`` says that nothing
            was found and ``None`` that retrieval failed.
        original: the text before a revision changed it.
        failed: why there is no claim: the sentence, or the claim, that could not be processed
            stands in ``text``. Counted beside every score, never inside it.
    """

    id: Text
    text: Text
    sentence: Annotated[int, Field(ge=0)] = 0
    source: str | None = None
    label: ClaimLabel | None = None
    contexts: list[str] | None = None
    original: str | None = None
    failed: Text | None = None


class Passage(Record):
    """A piece of evidence. ``prior`` is the probability that what it says is true."""

    id: Text
    title: str = ""
    text: Text
    url: str | None = None
    source: str | None = None
    prior: Probability | None = None


class SourcePrior(Record):
    """How far a source is to be trusted: the probability that what it says is true.

    ``agreed`` of ``seen`` are the votes that it was learnt from, where it was learnt.
    """

    source: Text
    prior: Probability
    agreed: int | None = None
    seen: int | None = None


class Document(Record):
    """A text to be scored, with claims and passages where they are given beforehand.

    ``group`` and ``bin`` say of which group and frequency the topic is; results have rows of each.
    """

    id: Text
    topic: Text
    text: str
    claims: list[Claim] | None = None
    passages: list[Passage] | None = None
    group: str | None = None
    bin: str | None = None
    kind: str | None = None
    generator: str | None = None

    @field_validator("claims")
    @classmethod
    def _unique_ids(cls, claims: list[Claim] | None) -> list[Claim] | None:
        if claims and len({c.id for c in claims}) != len(claims):
            raise ValueError("claim ids must be unique within a document")
        return claims


class Verdict(Record):
    """What an assessor says of one claim.

    Attributes:
        claim: the claim's id.
        assessor: who judged, e.g. ``nli``.
        name: which of the assessor's verdicts, e.g. ``independent`` or ``grouped``.
        p: probability that the claim is supported, where the assessor gives one.
        reason: why it failed; required reading when ``label`` is ``failed``.
    """

    claim: Text
    assessor: Text
    name: str = "default"
    label: VerdictLabel
    p: Probability | None = None
    evidence: list[str] | None = None
    group: str | None = None
    entity: str | None = None
    reason: str | None = None


class Preference(Record):
    """A pair of answers to a prompt, ordered by a metric."""

    prompt: Text
    chosen: str
    rejected: str
    score_chosen: float
    score_rejected: float


def group_of(record: Record) -> str:
    """What must not stand on both sides of a split: the row's own ``group``, else its text.

    The record of a component of one's own may call its text otherwise: then it is the whole row.
    """
    own = (record.model_extra or {}).get("group")
    if own is not None:
        return str(own)
    fields = ("premise", "reference", "topic", "prompt")
    known = next((name for name in fields if hasattr(record, name)), None)
    return record.model_dump_json() if known is None else getattr(record, known)
