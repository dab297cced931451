"""Grouping without a language model: split a text into segments about one person."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jsonargparse.typing import ClosedUnitInterval

from components.english import stems
from components.sentences import split_sentences
from eval.stages import EntailmentModel
from eval.verify.dfactscore.grouping import number_groups
from eval.verify.dfactscore.mentions import Person, score_new_person
from records import Claim, Document

# Points of evidence from which a sentence introduces a new person.
_NEW_PERSON = 3
# Points from which the relation model decides whether the claims before and after conflict.
_MAYBE_NEW = 2


class Segment(NamedTuple):
    """Sentences about one person, and whether it is doubtful that they start a new person."""

    sentences: list[int]
    doubtful: bool


@dataclass(eq=False)
class LocalGroups:
    """Group claims by the text segment that they come from (2402.05629, section 4.1).

    Our own method; the paper uses a prompt. Groups are runs of consecutive sentences, since 177 of
    182 texts in AmbigBio's files describe one person after the other. A mention is a subject that
    shares a word with the topic (or a spelling variant). Sentences without a mention continue the
    current person. Evidence for a new person is a name that is not a form of the previous names, a
    descriptor after the name ("(footballer)", ", a British painter,"), another year of birth, and
    words like "another". A paragraph that merges two people without such evidence is one group,
    which D-FActScore penalizes. A text that never mentions its topic is one group, too.

    A claim is aligned to the sentence that shares most words with its ``source`` or its text; the
    alignment is monotonic.

    Args:
        entailment: a relation model for doubtful boundaries: a new person starts there if a claim
            before and a claim after it contradict each other. If the model returns no answer, the
            claims after it have no group. Without a model, doubtful boundaries do not split.
        contradiction: probability from which two claims contradict each other.
    """

    entailment: EntailmentModel | None = None
    contradiction: ClosedUnitInterval = 0.9

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        segments, alignments = [], []
        for document, listed in zip(documents, claims, strict=True):
            text = unicodedata.normalize("NFC", document.text)
            sentences = split_sentences(text) or [text]
            segments.append(split_segments(sentences, unicodedata.normalize("NFC", document.topic)))
            alignments.append(align_claims([c.source or c.text for c in listed], sentences))
        is_new = self._is_new(segments, alignments, claims)
        return [
            number_groups(_labels(listed, alignment, starts))
            for listed, alignment, starts in zip(segments, alignments, is_new, strict=True)
        ]

    def _is_new(
        self,
        segments: Sequence[Sequence[Segment]],
        alignments: Sequence[Sequence[int]],
        claims: Sequence[Sequence[Claim]],
    ) -> list[list[bool | None]]:
        new: list[list[bool | None]] = [[not s.doubtful for s in listed] for listed in segments]
        if self.entailment is None:
            return new
        pairs, boundaries = [], []
        for row, (listed, at) in enumerate(zip(segments, alignments, strict=True)):
            texts = [
                [c.text for c, index in zip(claims[row], at, strict=True) if index in sentences]
                for sentences, _ in listed
            ]
            for k, segment in enumerate(listed):
                if segment.doubtful:
                    crossed = [(a, b) for a in texts[k - 1] for b in texts[k]]
                    pairs.extend(crossed)
                    boundaries.extend([(row, k)] * len(crossed))
        table = self.entailment.relations(pairs) if pairs else []
        for (row, k), answer in zip(boundaries, table, strict=True):
            if answer[2] >= self.contradiction:
                new[row][k] = True
            elif np.isnan(answer[2]) and not new[row][k]:
                new[row][k] = None
        return new


def split_segments(sentences: Sequence[str], topic: str) -> list[Segment]:
    """Split the sentences before each introduction, or possible introduction, of a person."""
    segments = [Segment([], False)]
    person = Person()
    for index, sentence in enumerate(sentences):
        points = score_new_person(sentence, topic, person) if index else 0
        if points >= _MAYBE_NEW:
            segments.append(Segment([], points < _NEW_PERSON))
        if points >= _NEW_PERSON:
            person = Person()
        person.add_sentence(sentence, topic)
        segments[-1].sentences.append(index)
    return segments


def _labels(
    segments: Sequence[Segment], alignment: Sequence[int], is_new: Sequence[bool | None]
) -> list[int | None]:
    # A segment with an unknown start makes the following ones unknown until a new person starts.
    person: dict[int, int | None] = {}
    number, certain = 0, True
    for segment, starts in zip(segments, is_new, strict=True):
        number += starts is True
        certain = starts is True or (certain and starts is not None)
        person |= dict.fromkeys(segment.sentences, number if certain else None)
    return [person[index] for index in alignment]


def align_claims(claims: Sequence[str], sentences: Sequence[str]) -> list[int]:
    """Align claims to sentences monotonically, maximizing the shared stems.

    Args:
        claims: in the order of the text.
        sentences: at least one.

    Returns:
        Ascending indices into the sentences, one per claim.
    """
    sentences_with: dict[str, list[int]] = {}
    for k, sentence in enumerate(sentences):
        for stem in set(stems(sentence)):
            sentences_with.setdefault(stem, []).append(k)
    best = np.zeros(
        len(sentences)
    )  # best score of the claims so far, with the last one at sentence k
    steps = []
    for claim in claims:
        words = sorted(set(stems(claim)))
        shared = np.zeros(len(sentences))
        for word in words:
            if matches := sentences_with.get(word):
                shared[matches] += 1 / len(matches)  # weight by rarity
        top = np.maximum.accumulate(best)
        # Sentence of the previous claim if this one is at sentence k: the first maximum.
        higher = np.diff(top, prepend=top[:1]) > 0
        steps.append(np.maximum.accumulate(np.where(higher, np.arange(len(top)), 0)))
        best = top + shared / (len(words) or 1)
    path = [int(np.argmax(best))] if steps else []
    for before in reversed(steps[1:]):
        path.append(int(before[path[-1]]))
    return path[::-1]
