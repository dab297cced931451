"""A clean text, and the corrupted one with more and more adversarial sentences behind it."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from components.sentences import remove_citations, split_sentences
from data_builders.written.claims.clauses import as_sentence
from data_builders.written.claims.labelled import Source, read_labelled
from data_builders.written.corruption.corrupters import STILL_TRUE, Change
from data_builders.written.corruption.merging import Merged, locate_claims
from records import Claim, Document, UserError
from records.abstention import responds


class Sentence(NamedTuple):
    """A sentence that is appended, and what it claims, with labels where its file has them."""

    text: str
    claims: tuple[Claim, ...]


# Kind of text to topic to its sentences, in the order in which they are appended.
Appended = dict[str, dict[str, list[Sentence]]]


def read_appended(files: Mapping[str, Sequence[str]], verdict: str | None) -> Appended:
    """The distinct sentences of all texts on a topic, in the files' order, by kind of text.

    A sentence of a file with claims (a known truth, labels, verdicts) comes with them, and one of
    these files that says nothing is left out; any other sentence is one claim without a label.
    Of a text that does not respond nothing is taken.

    Args:
        files: kind to its files; rows that state another kind are skipped.
        verdict: as for the documents.
    """
    appended: Appended = {}
    for kind, paths in files.items():
        topics: dict[str, dict[str, Sentence]] = {}
        for row in (row for path in paths for row in read_labelled(path, verdict)):
            if row.kind in (None, kind) and responds(row):
                sentences = topics.setdefault(row.topic, {})
                for sentence in _sentences(row):
                    sentences.setdefault(sentence.text.casefold(), sentence)
        if not topics:
            raise UserError(f"adversarial: the files have no text of kind {kind!r}")
        appended[kind] = {topic: list(own.values()) for topic, own in topics.items()}
    return appended


def _sentences(row: Document) -> list[Sentence]:
    if row.claims is None:
        told = split_sentences(remove_citations(row.text))
        claims = [Claim(id="a", text=text, source=text, labelled_by="none") for text in told]
        return [Sentence(c.text, (c,)) for c in claims]
    by_sentence: dict[int, list[Claim]] = {}
    for claim in row.claims:
        by_sentence.setdefault(claim.sentence, []).append(claim)
    return [
        Sentence(own[0].source or own[0].text, tuple(own)) for _, own in sorted(by_sentence.items())
    ]


def sentences_for_topic(
    topic: str, topics: Mapping[str, Sequence[Sentence]], of_anyone: bool, seed: int
) -> tuple[str, list[Sentence]]:
    """The topic whose sentences are told of a topic, and these.

    Args:
        topics: topic to sentences.
        of_anyone: a topic without sentences takes those of another one, drawn by the seed and its
            own name, with its name in them; a sentence that does not hold the other's whole name
            is not taken.

    Returns:
        No sentences where there are none.
    """
    if topics.get(topic):
        return topic, list(topics[topic])
    if of_anyone:
        others = sorted(topics)
        for other in random.Random(f"{seed}:anyone:{topic}").sample(others, len(others)):
            name = re.compile(rf"(?<!\w){re.escape(other)}(?!\w)")
            if own := [_renamed(s, name, topic) for s in topics[other] if name.search(s.text)]:
                return other, own
    return topic, []


def _renamed(sentence: Sentence, name: re.Pattern[str], new: str) -> Sentence:
    def renamed(text: str) -> str:
        return name.sub(lambda _: new, text)

    claims = (
        c.model_copy(update={"text": renamed(c.text), "source": c.source and renamed(c.source)})
        for c in sentence.claims
    )
    return Sentence(renamed(sentence.text), tuple(claims))


def repeat_sentences(sentences: Sequence[Sentence], number: int) -> list[Sentence]:
    """So many of them in order, from the first again where they do not suffice."""
    return [sentences[place % len(sentences)] for place in range(number)]


@dataclass(frozen=True)
class CorruptedDocument:
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


def claim_texts(source: Source, changes: Mapping[str, Change]) -> list[str]:
    """All claims of a document as they are to stand in its text."""
    made = CorruptedDocument(changes, Merged([]), source)
    return [made.text(claim) for claim in source.claims]


def build_clean_twin(source: Source) -> Document:
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


def build_corrupted(
    made: CorruptedDocument,
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


def _own_claims(made: CorruptedDocument, who: str) -> list[Claim]:
    sentences = made.merged.sentences
    texts = [made.text(claim) for claim in made.source.claims]
    if set(made.merged.how) <= {"listed"}:
        places = list(range(len(sentences)))
    else:
        places = locate_claims(texts, sentences)
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


def change_rows(made: CorruptedDocument) -> Iterator[dict]:
    """Each claim of a document: what it was, what became of it, and how it got into the text."""
    for claim, how in zip(made.source.claims, made.merged.how, strict=True):
        drawn = made.change(claim)
        change = drawn or Change()
        yield {
            "document": made.source.id,
            "claim": claim.id,
            "topic": made.source.topic,
            "original": claim.text,
            "text": made.text(claim),
            "label": "NS" if change.text else claim.label or "",
            "drawn": drawn is not None,
            "reason": change.reason or "",
            "refused": change.refused or "",
            "kind": change.kind or "",
            "old": change.old or "",
            "new": change.new or "",
            "in_text": how,
        }


def count_changes(every: Sequence[CorruptedDocument]) -> dict[str, object]:
    """How many claims there were, were to be changed and were, and how they were merged.

    ``invalid`` counts changes that were made and are not false; their claims stayed as they were.
    """
    drawn = [change for made in every for change in made.changes.values()]
    reasons = Counter(change.reason for change in drawn if change.text is None)
    kinds = Counter(change.kind or "by a model" for change in drawn if change.text is not None)
    changed = [any(c.text is not None for c in made.changes.values()) for made in every]
    failed = Counter(made.merged.failed for made in every if made.merged.failed is not None)
    return {
        "documents": len(every),
        "documents_without_a_supported_claim": sum(not made.source.supported for made in every),
        "documents_without_a_change": len(every) - sum(changed),
        "claims": sum(len(made.source.claims) for made in every),
        "claims_by_label": dict(
            sorted(Counter(c.label or "none" for m in every for c in m.source.claims).items())
        ),
        "to_be_changed": len(drawn),
        "changed": sum(kinds.values()),
        "invalid": sum(n for why, n in reasons.items() if why.startswith(STILL_TRUE)),
        "changed_by_kind": dict(sorted(kinds.items())),
        "stayed_by_reason": dict(sorted(reasons.items())),
        "claims_in_text": dict(sorted(Counter(h for m in every for h in m.merged.how).items())),
        "texts_not_merged_by_reason": dict(sorted(failed.items())),
    }
