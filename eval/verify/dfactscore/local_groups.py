"""Grouping without a language model: where a text goes on to another person.

A text that holds several biographies as a rule writes of one person after the other (so do all but
five of the 182 such texts in AmbigBio's two published files). A group is therefore a stretch of
sentences, and the question is at which sentences somebody new is introduced.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jsonargparse.typing import ClosedUnitInterval

from components.overlap import stems
from components.sentences import remove_citations, split_sentences
from eval.stages import EntailmentModel
from eval.verify.dfactscore.grouping import number_groups
from eval.verify.dfactscore.mentions import Person, evidence
from records import Claim, Document

# From so many points of evidence on, a sentence introduces somebody new.
_NEW = 3
# So many ask whether the claims before and after contradict each other.
_DOUBTFUL = 2


class Stretch(NamedTuple):
    """Sentences about one person, and whether it is doubtful that a new person begins here."""

    sentences: list[int]
    doubtful: bool


@dataclass(eq=False)
class LocalGroups:
    """Group claims by the stretch of the text that they come from (2402.05629, section 4.1).

    The paper groups with a prompt; this is ours. A sentence's subject that carries a word of the
    topic is a mention (spelling variants included); sentences without one follow the person at
    hand, as pronouns do. Points say that a mention is somebody new: a name that is no form of the
    names before, a disambiguating descriptor behind it ("(footballer)", ", a British painter,"),
    another year of birth, words like "another" or "on the other hand"
    (:func:`eval.verify.dfactscore.mentions.evidence`). A paragraph that merges two people without
    a word about it stays one group: that is what D-FActScore is there to punish.
    A text that never names its topic, as where a document's ``topic`` is no name, is one group too.

    A claim belongs to the sentence that shares most words with its ``source``, or with itself, in
    an order that never goes back.

    Args:
        entailment: a relation model for doubtful places: a new person begins there if a claim
            before and a claim behind contradict each other. Claims behind have no group where the
            model could not tell. Without a model, doubtful places do not split.
        contradiction: probability from which two claims contradict each other.
    """

    entailment: EntailmentModel | None = None
    contradiction: ClosedUnitInterval = 0.9

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        found, places = [], []
        for document, own in zip(documents, claims, strict=True):
            text = unicodedata.normalize("NFC", remove_citations(document.text))
            sentences = split_sentences(text) or [text]
            found.append(stretches(sentences, unicodedata.normalize("NFC", document.topic)))
            places.append(align_claims([claim.source or claim.text for claim in own], sentences))
        new = self._new_persons(found, places, claims)
        return [
            number_groups(_labels(own, at, begins))
            for own, at, begins in zip(found, places, new, strict=True)
        ]

    def _new_persons(
        self,
        found: Sequence[Sequence[Stretch]],
        places: Sequence[Sequence[int]],
        claims: Sequence[Sequence[Claim]],
    ) -> list[list[bool | None]]:
        new: list[list[bool | None]] = [[not one.doubtful for one in own] for own in found]
        if self.entailment is None:
            return new
        pairs, asked = [], []
        for row, (own, at) in enumerate(zip(found, places, strict=True)):
            texts = [
                [c.text for c, place in zip(claims[row], at, strict=True) if place in sentences]
                for sentences, _ in own
            ]
            for k, stretch in enumerate(own):
                if stretch.doubtful:
                    both = [(a, b) for a in texts[k - 1] for b in texts[k]]
                    pairs.extend(both)
                    asked.extend([(row, k)] * len(both))
        table = self.entailment.relations(pairs) if pairs else []
        for (row, k), answer in zip(asked, table, strict=True):
            if answer[2] >= self.contradiction:
                new[row][k] = True
            elif np.isnan(answer[2]) and not new[row][k]:
                new[row][k] = None
        return new


def stretches(sentences: Sequence[str], topic: str) -> list[Stretch]:
    """The sentences cut where somebody new is introduced, or may be."""
    found = [Stretch([], False)]
    person = Person()
    for place, sentence in enumerate(sentences):
        points = evidence(sentence, topic, person) if place else 0
        if points >= _DOUBTFUL:
            found.append(Stretch([], points < _NEW))
        if points >= _NEW:
            person = Person()
        person.read(sentence, topic)
        found[-1].sentences.append(place)
    return found


def _labels(
    own: Sequence[Stretch], places: Sequence[int], new: Sequence[bool | None]
) -> list[int | None]:
    """The number of the person that each claim is about; ``None`` where that was not told.

    What was not told holds until a new person begins: the stretches between go on from it.
    """
    person: dict[int, int | None] = {}
    number, told = 0, True
    for stretch, begins in zip(own, new, strict=True):
        number += begins is True
        told = begins is True or (told and begins is not None)
        person |= dict.fromkeys(stretch.sentences, number if told else None)
    return [person[place] for place in places]


def align_claims(claims: Sequence[str], sentences: Sequence[str]) -> list[int]:
    """The sentence of each claim: most shared stems over all claims, and never going back.

    Args:
        claims: in the order of the text.
        sentences: one or more.

    Returns:
        Indices into the sentences, ascending, shape (claims,).
    """
    having: dict[str, list[int]] = {}
    for k, sentence in enumerate(sentences):
        for stem in set(stems(sentence)):
            having.setdefault(stem, []).append(k)
    best = np.zeros(len(sentences))  # of the claims so far, the last one at sentence k
    steps = []
    for claim in claims:
        words = sorted(set(stems(claim)))
        shared = np.zeros(len(sentences))
        for word in words:
            if own := having.get(word):
                shared[own] += 1 / len(own)  # a stem counts the more, the fewer sentences have it
        top = np.maximum.accumulate(best)
        # Where the claim before stands if this one is at sentence k: the first place of the top.
        higher = np.diff(top, prepend=top[:1]) > 0
        steps.append(np.maximum.accumulate(np.where(higher, np.arange(len(top)), 0)))
        best = top + shared / (len(words) or 1)
    path = [int(np.argmax(best))] if steps else []
    for before in reversed(steps[1:]):
        path.append(int(before[path[-1]]))
    return path[::-1]
