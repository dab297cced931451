"""A clean text, and its corrupted version followed by more and more adversarial sentences."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from components.gold import credited_texts
from components.sentences import split_sentences
from data_builders.written.claims.clauses import as_sentence
from data_builders.written.claims.labelled import Source, read_labelled
from data_builders.written.corruption.corrupters import STILL_TRUE, Change
from data_builders.written.corruption.merging import Merged, locate_claims
from records import Claim, Document, UserError, gold_scores
from records.abstention import responds
from records.cleaning import clean


class AppendedSentence(NamedTuple):
    """An appended sentence and its claims, labelled if its file has labels."""

    text: str
    claims: tuple[Claim, ...]


# Kind of text to topic to its sentences, in the order of appending.
Appended = dict[str, dict[str, list[AppendedSentence]]]


def read_appended(files: Mapping[str, Sequence[str]], verdict: str | None) -> Appended:
    """Read the distinct sentences of all texts on a topic, in file order, by kind of text.

    Sentences of a file with claims keep these claims; a sentence without claims is skipped there.
    In other files each sentence is one unlabelled claim. Texts that do not respond are skipped.

    Rows that state another kind than their file are skipped.
    """
    appended: Appended = {}
    for kind, paths in files.items():
        topics: dict[str, dict[str, AppendedSentence]] = {}
        for row in (row for path in paths for row in read_labelled(path, verdict)):
            if row.kind in (None, kind) and responds(row):
                sentences = topics.setdefault(row.topic, {})
                for sentence in _sentences(row):
                    sentences.setdefault(sentence.text.casefold(), sentence)
        if not topics:
            raise UserError(f"adversarial: the files have no text of kind {kind!r}")
        appended[kind] = {topic: list(texts.values()) for topic, texts in topics.items()}
    return appended


def _sentences(row: Document) -> list[AppendedSentence]:
    if row.claims is None:
        texts = split_sentences(clean(row.text).text)
        claims = [Claim(id="a", text=text, source=text, labelled_by="none") for text in texts]
        return [AppendedSentence(c.text, (c,)) for c in claims]
    by_sentence: dict[int, list[Claim]] = {}
    for claim in row.claims:
        by_sentence.setdefault(claim.sentence, []).append(claim)
    groups = (tuple(claims) for _, claims in sorted(by_sentence.items()))
    return [AppendedSentence(claims[0].source or claims[0].text, claims) for claims in groups]


def sentences_for_topic(
    topic: str, topics: Mapping[str, Sequence[AppendedSentence]], of_anyone: bool, seed: int
) -> tuple[str, list[AppendedSentence]]:
    """Return the sentences to append to a text on a topic, and the topic that they come from.

    With ``of_anyone`` a topic without sentences takes those of another topic, drawn by the seed and
    the topic's name, with the name replaced. Sentences without the other's full name are skipped.
    """
    if topics.get(topic):
        return topic, list(topics[topic])
    if of_anyone:
        rng = random.Random(f"{seed}:anyone:{topic}")
        for other in rng.sample(sorted(topics), len(topics)):
            name = re.compile(rf"(?<!\w){re.escape(other)}(?!\w)")
            sentences = [s for s in topics[other] if name.search(s.text)]
            if sentences:
                return other, [_rename_topic(s, name, topic) for s in sentences]
    return topic, []


def _rename_topic(sentence: AppendedSentence, name: re.Pattern[str], new: str) -> AppendedSentence:
    def renamed(text: str) -> str:
        return name.sub(lambda _: new, text)

    claims = (
        c.model_copy(update={"text": renamed(c.text), "source": c.source and renamed(c.source)})
        for c in sentence.claims
    )
    return AppendedSentence(renamed(sentence.text), tuple(claims))


def repeat_sentences(sentences: Sequence[AppendedSentence], number: int) -> list[AppendedSentence]:
    """Return ``number`` sentences in order, starting over if there are too few."""
    return [sentences[index % len(sentences)] for index in range(number)]


@dataclass(frozen=True)
class CorruptedDocument:
    """A document after corruption; ``changes`` has the ids of the drawn claims."""

    changes: Mapping[str, Change]
    merged: Merged
    source: Source = field(repr=False)

    def change(self, claim: Claim) -> Change | None:
        """A claim's change, shared by claims of the same text; ``None`` if it was not drawn."""
        if claim.label != "S":
            return None
        return self.changes.get(self.source.supported[claim.text])

    def text(self, claim: Claim) -> str:
        """The claim as stated in the corrupted text."""
        change = self.change(claim)
        return change.text if change and change.text else claim.text


def claim_texts(source: Source, changes: Mapping[str, Change]) -> list[str]:
    """Return all claims of a document as the corrupted text is to state them."""
    document = CorruptedDocument(changes, Merged([]), source)
    return [document.text(claim) for claim in source.claims]


def build_clean_twin(source: Source) -> Document:
    """Return the unchanged text with its claims and labels."""
    original = source.document
    return Document(
        id=source.id,
        kind="clean",
        text=original.text,
        claims=original.claims,
        document=source.id,
        gold=original.gold,
        **_shared_fields(original),
    )


def build_corrupted(
    document: CorruptedDocument,
    origin: str,
    kind: str,
    appended: Sequence[AppendedSentence],
    assumed: str | None,
    ks: Sequence[int],
) -> Iterator[Document]:
    """Yield the corrupted text with each number k of ``appended`` sentences.

    ``origin`` is ``labelled_by`` of changed claims, ``assumed`` the label of unlabelled sentences.
    """
    source, sentences = document.source, document.merged.sentences
    text_claims = _text_claims(document, origin)
    appended_claims = [
        list(_appended_claims(index, len(sentences), kind, sentence, assumed))
        for index, sentence in enumerate(appended)
    ]
    honest = source.document.gold
    credited = credited_texts(text_claims)
    for k in ks:
        # Appended sentences credit nothing.
        extra: list[set[str]] = [set() for claims in appended_claims[:k] for _ in claims]
        yield Document(
            id=f"{source.id} {kind} k={k}",
            kind="corrupted",
            text=" ".join([*sentences, *(as_sentence(s.text) for s in appended[:k])]),
            claims=[*text_claims, *(c for claims in appended_claims[:k] for c in claims)],
            document=source.id,
            clean=source.id,
            k=k,
            appended=kind,
            gold=honest and gold_scores([*credited, *extra], honest.k, honest.source),
            **_shared_fields(source.document),
        )


def _shared_fields(document: Document) -> dict[str, object]:
    names = ("topic", "group", "bin", "generator", "passages")
    return {name: getattr(document, name) for name in names}


def _text_claims(document: CorruptedDocument, origin: str) -> list[Claim]:
    sentences = document.merged.sentences
    texts = [document.text(claim) for claim in document.source.claims]
    if set(document.merged.how) <= {"listed"}:
        indices = list(range(len(sentences)))
    else:
        indices = locate_claims(texts, sentences)
    claims = []
    for claim, text, index in zip(document.source.claims, texts, indices, strict=True):
        change = document.change(claim)
        update: dict[str, object] = {"text": text, "sentence": index, "source": sentences[index]}
        update["kind"] = "kept"
        if change is not None and change.text is not None:
            update |= {"label": "NS", "kind": "changed", "labelled_by": origin}
        claims.append(claim.model_copy(update=update))
    return claims


def _appended_claims(
    index: int, before: int, kind: str, sentence: AppendedSentence, assumed: str | None
) -> Iterator[Claim]:
    for number, claim in enumerate(sentence.claims):
        name = f"a{index}" if len(sentence.claims) == 1 else f"a{index}.{number}"
        if claim.label is None and assumed is not None:
            claim = claim.model_copy(update={"label": assumed, "labelled_by": "assumed"})
        where = {"id": name, "sentence": before + index, "source": sentence.text}
        yield claim.model_copy(update={**where, "kind": kind, "contexts": None})


def change_rows(document: CorruptedDocument) -> Iterator[dict]:
    """Yield one row per claim: before and after the change, and how it got into the text."""
    for claim, how in zip(document.source.claims, document.merged.how, strict=True):
        drawn = document.change(claim)
        change = drawn or Change()
        yield {
            "document": document.source.id,
            "claim": claim.id,
            "topic": document.source.topic,
            "original": claim.text,
            "text": document.text(claim),
            "label": "NS" if change.text else claim.label or "",
            "drawn": drawn is not None,
            "reason": change.reason or "",
            "refused": change.refused or "",
            "kind": change.kind or "",
            "old": change.old or "",
            "new": change.new or "",
            "in_text": how,
        }


def count_changes(documents: Sequence[CorruptedDocument]) -> dict[str, object]:
    """Count claims, drawn and changed claims, and how the claims were merged.

    ``invalid`` counts refused changes: they may be true, so their claims were not changed.
    """
    drawn = [change for d in documents for change in d.changes.values()]
    reasons = Counter(change.reason for change in drawn if change.text is None)
    kinds = Counter(change.kind or "by a model" for change in drawn if change.text is not None)
    changed = [any(c.text is not None for c in d.changes.values()) for d in documents]
    failed = Counter(d.merged.failed for d in documents if d.merged.failed is not None)
    return {
        "documents": len(documents),
        "documents_without_a_supported_claim": sum(not d.source.supported for d in documents),
        "documents_without_a_change": len(documents) - sum(changed),
        "claims": sum(len(d.source.claims) for d in documents),
        "claims_by_label": dict(
            sorted(Counter(c.label or "none" for d in documents for c in d.source.claims).items())
        ),
        "to_be_changed": len(drawn),
        "changed": sum(kinds.values()),
        "invalid": sum(n for why, n in reasons.items() if why.startswith(STILL_TRUE)),
        "changed_by_kind": dict(sorted(kinds.items())),
        "stayed_by_reason": dict(sorted(reasons.items())),
        "claims_in_text": dict(sorted(Counter(h for d in documents for h in d.merged.how).items())),
        "texts_not_merged_by_reason": dict(sorted(failed.items())),
    }
