"""The rows of a curve: a clean text, and the corrupted one with more and more sentences behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from data_builders.written.corruption.appended import Sentence
from data_builders.written.corruption.corrupters import Change
from data_builders.written.corruption.sources import Source
from data_builders.written.corruption.texts import Merged, as_sentence, place_claims
from records import Claim, Document


@dataclass(frozen=True)
class Made:
    """What became of a document.

    Attributes:
        changes: id of each claim that was drawn to what became of it.
        merged: the claims as a text.
    """

    changes: Mapping[str, Change]
    merged: Merged
    source: Source = field(repr=False)

    def change(self, claim: Claim) -> Change | None:
        """What became of a claim; those of one text share it. ``None`` if it was not drawn."""
        if claim.label != "S":
            return None
        return self.changes.get(self.source.supported[claim.text])

    def text(self, claim: Claim) -> str:
        """The claim as it stands in the text."""
        change = self.change(claim)
        return change.text if change and change.text else claim.text


def texts_of(source: Source, changes: Mapping[str, Change]) -> list[str]:
    """All claims of a document as they are to stand in its text."""
    made = Made(changes, Merged([]), source)
    return [made.text(claim) for claim in source.claims]


def clean_twin(source: Source) -> Document:
    """The text as it was, with its claims and labels."""
    given = source.document
    return Document(
        id=source.id,
        kind="clean",
        text=given.text,
        claims=given.claims,
        document=source.id,
        **_kept(given),
    )


def corrupted(
    made: Made,
    who: str,
    kind: str,
    told: Sequence[Sentence],
    assumed: str | None,
    ks: Sequence[int],
) -> Iterator[Document]:
    """The corrupted text with each number of sentences appended.

    Args:
        who: who made claims false.
        kind: of the sentences.
        told: as many as the largest number.
        assumed: label of their claims that have none.
        ks: the numbers.
    """
    source, sentences = made.source, made.merged.sentences
    own = _own_claims(made, who)
    added = [
        list(_added(place, len(sentences), kind, one, assumed)) for place, one in enumerate(told)
    ]
    for k in ks:
        yield Document(
            id=f"{source.id} {kind} k={k}",
            kind="corrupted",
            text=" ".join([*sentences, *(as_sentence(one.text) for one in told[:k])]),
            claims=[*own, *(claim for claims in added[:k] for claim in claims)],
            document=source.id,
            clean=source.id,
            k=k,
            appended=kind,
            **_kept(source.document),
        )


def _kept(given: Document) -> dict[str, object]:
    names = ("topic", "group", "bin", "generator", "passages")
    return {name: getattr(given, name) for name in names}


def _own_claims(made: Made, who: str) -> list[Claim]:
    sentences = made.merged.sentences
    texts = [made.text(claim) for claim in made.source.claims]
    if set(made.merged.how) <= {"listed"}:
        places = list(range(len(sentences)))
    else:
        places = place_claims(texts, sentences)
    claims = []
    for claim, text, place in zip(made.source.claims, texts, places, strict=True):
        change = made.change(claim)
        new: dict[str, object] = {"text": text, "sentence": place, "source": sentences[place]}
        new["kind"] = "kept"
        if change is not None and change.text is not None:
            new |= {"label": "NS", "kind": "changed", "labelled_by": who}
        claims.append(claim.model_copy(update=new))
    return claims


def _added(
    place: int, before: int, kind: str, sentence: Sentence, assumed: str | None
) -> Iterator[Claim]:
    for number, claim in enumerate(sentence.claims):
        name = f"a{place}" if len(sentence.claims) == 1 else f"a{place}.{number}"
        if claim.label is None and assumed is not None:
            claim = claim.model_copy(update={"label": assumed, "labelled_by": "assumed"})
        where = {"id": name, "sentence": before + place, "source": sentence.text}
        yield claim.model_copy(update={**where, "kind": kind, "contexts": None})
