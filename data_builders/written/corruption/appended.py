"""The adversarial sentences that are put behind a text, topic by topic."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from components.sentences import split_sentences, without_citations
from data_builders.written.corruption.sources import labelled
from records import BadInput, Claim, Document, UserError
from records.abstention import responds

Files = dict[str, list[str]] | list[str]


class Sentence(NamedTuple):
    """A sentence that is appended, and what it claims, with labels where its file has them."""

    text: str
    claims: tuple[Claim, ...]


# Kind of text to topic to its sentences, in the order in which they are appended.
Appended = dict[str, dict[str, list[Sentence]]]


def read_appended(files: Files, kinds: Sequence[str], verdict: str | None) -> Appended:
    """The distinct sentences of all texts on a topic, in the files' order, by kind of text.

    A sentence of a file with claims (a known truth, labels, verdicts) comes with them, and one of
    these files that says nothing is left out; any other sentence is one claim without a label.
    Of a text that does not respond nothing is taken.

    Args:
        files: kind to files, or files whose rows say their kind.
        kinds: those that are taken of files whose rows say it.
        verdict: as for the documents.

    Raises:
        BadInput: a row without a kind, or of another one than its file is given for.
    """
    by_kind = files if isinstance(files, Mapping) else {None: files}
    wanted = list(files) if isinstance(files, Mapping) else list(kinds)
    found: dict[str, dict[str, dict[str, Sentence]]] = {kind: {} for kind in wanted}
    for given, paths in by_kind.items():
        for path in paths:
            for place, row in enumerate(labelled(path, verdict), 1):
                kind = _kind(f"{path}:{place}", row, given)
                if kind in found and responds(row):
                    own = found[kind].setdefault(row.topic, {})
                    for sentence in _sentences(row):
                        own.setdefault(sentence.text.casefold(), sentence)
    missing = [kind for kind, topics in found.items() if not topics]
    if missing:
        raise UserError(f"adversarial: the files have no text of kind {missing[0]!r}")
    return {
        kind: {topic: list(own.values()) for topic, own in topics.items()}
        for kind, topics in found.items()
    }


def _kind(where: str, row: Document, given: str | None) -> str:
    if given is None and row.kind is None:
        say = "say it for the file, as adversarial: {info: [FILE]}"
        raise BadInput([f"{where}: kind: field required; {say}"])
    if given is not None and row.kind not in (None, given):
        said = f"{row.kind!r}, but the file is given for {given!r}"
        raise BadInput([f"{where}: kind: {said}; give a list of files, and `kinds`"])
    return given or row.kind


def _sentences(row: Document) -> list[Sentence]:
    if row.claims is None:
        told = split_sentences(without_citations(row.text))
        claims = [Claim(id="a", text=text, source=text, labelled_by="none") for text in told]
        return [Sentence(c.text, (c,)) for c in claims]
    by_sentence: dict[int, list[Claim]] = {}
    for claim in row.claims:
        by_sentence.setdefault(claim.sentence, []).append(claim)
    return [
        Sentence(own[0].source or own[0].text, tuple(own)) for _, own in sorted(by_sentence.items())
    ]


def told_of(
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


def repeated(sentences: Sequence[Sentence], number: int) -> list[Sentence]:
    """So many of them in order, from the first again where they do not suffice."""
    return [sentences[place % len(sentences)] for place in range(number)]
