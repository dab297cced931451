"""Citation recall and precision: do the cited passages support the sentences? (ALCE, 2305.14627.)

Definitions (ALCE, section 3; 2402.05629 reports the recall):

- a sentence has recall 1 where its cited passages, one after the other, entail it; 0 without a
  citation, or where it cites a passage that is not there;
- a citation is precise where its sentence has recall 1 and it is not irrelevant: it is irrelevant
  where its passage alone does not entail the sentence and the others do so without it;
- a text's recall is the mean over its sentences, its precision the mean over its citations (0 for a
  text without any); a generator's are the means over its texts.

We depart from ALCE's code where it departs from these: numbers behind the full stop belong to the
sentence before it (there: to the next one), ``[1, 2]`` and ``[1-3]`` name two and three passages
(there: one), a passage that a sentence cites twice counts once, and the citations of a sentence
that cites a passage which is not there count as imprecise (there: not at all). ALCE reads the first
line of a text only; all of them are read here.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel

from components.sentences import CITATION_NUMBERS, split_sentences
from eval.stages import EntailmentModel, entails
from records import Document, UserError

_NUMBERS = re.compile(rf"(?<![ \t])[ \t]*\[({CITATION_NUMBERS})\]")
# The numbers with the blank that they leave before a full stop or comma: "in 1915 [1] ."
_MARKS = re.compile(rf"(?<![ \t])(?:[ \t]*\[{CITATION_NUMBERS}\])+(?:[ \t]+(?=[.,;:!?](?:\s|$)))?")
# "… in 1915. [1][2] She": the numbers belong to the sentence before them.
_NUMBERS_AFTER_STOP = re.compile(rf"([.!?][\"”’)]*)((?:[ \t]*\[{CITATION_NUMBERS}\])+)(?=\s|$)")
_RANGE = re.compile(r"(\d+)\s*[–-]\s*(\d+)")
# AmbigBio's cited passages: sections of pages, one after the other, each under its page's title.
_SECTION_STARTS = re.compile(r"(?:\A|\n)(?=Title: )")


class Cited(NamedTuple):
    """A sentence and the passages that it names.

    Attributes:
        claim: the sentence without its brackets; empty where nothing stands before them.
        numbers: of the passages, from 1, each once, in the order of the text.
    """

    claim: str
    numbers: list[int]


def cited_sentences(text: str) -> list[Cited]:
    """The sentences of a text, each with the numbers in its brackets."""
    moved = _NUMBERS_AFTER_STOP.sub(lambda m: f"{m[2]}{m[1]}", text)
    sentences = []
    # A line of nothing but numbers is no sentence for the splitter, but a citation of nothing.
    for line in filter(None, map(str.strip, moved.splitlines())):
        for sentence in split_sentences(line):
            numbers = [n for group in _NUMBERS.findall(sentence) for n in _numbers(group)]
            sentences.append(Cited(without_numbers(sentence), list(dict.fromkeys(numbers))))
    return sentences


def _numbers(group: str) -> list[int]:
    numbers = []
    for part in re.split(r"\s*[,;]\s*", group):
        ends = _RANGE.fullmatch(part)
        low, high = (int(ends[1]), int(ends[2])) if ends else (0, -1)
        whole = range(low, high + 1) if low <= high else map(int, re.findall(r"\d+", part))
        numbers.extend(whole)
    return numbers


def without_numbers(text: str) -> str:
    """A text without the bracketed numbers and without blanks at the ends of its lines."""
    return "\n".join(line.strip() for line in _MARKS.sub("", text).splitlines()).strip()


class CitedSentence(BaseModel):
    """A sentence with what was found out about its citations.

    Attributes:
        text: without brackets; empty where numbers stand behind no words.
        numbers: of the cited passages, at most as many as were asked for.
        missing: those among all cited numbers that no passage has.
        recalled: whether the cited passages entail it; ``None`` where the model failed.
        p: probability that they do; ``None`` where nothing was asked.
        precise: of each citation whether it is precise; ``None`` where the model failed.
    """

    text: str
    numbers: list[int]
    missing: list[int] = []
    recalled: bool | None = False
    p: float | None = None
    precise: list[bool | None] = []

    @property
    def failed(self) -> bool:
        """Whether the model failed on the sentence or on one of its citations."""
        return self.recalled is None or None in self.precise


def recall(sentences: Sequence[CitedSentence]) -> float | None:
    """Share of the sentences that their citations entail; ``None`` without a judged sentence."""
    judged = [s.recalled for s in sentences if s.text and s.recalled is not None]
    return sum(judged) / len(judged) if judged else None


def precision(sentences: Sequence[CitedSentence]) -> float | None:
    """Share of precise citations; 0 without a citation, ``None`` where none could be judged."""
    flags = [precise for sentence in sentences for precise in sentence.precise]
    judged = [precise for precise in flags if precise is not None]
    if flags and not judged:
        return None
    return sum(judged) / len(judged) if judged else 0.0 if recall(sentences) is not None else None


class Citations:
    """Judges the citations of texts.

    ``[1]`` is the first of a document's ``passages``. The brackets are read in ``cited_text`` where
    a document has that field (as ``data_builders ambigbio`` writes it), else in its text. Of
    AmbigBio's published files and ALCE's scores the ``citations`` are judged as they are given;
    sentences that are in none of them have none.

    Args:
        entailment: the relation model; a row of it with a NaN is a failure.
        threshold: least entailment probability that counts; without it entailment must be likelier
            than both other relations.
        at_most: citations of a sentence that are judged, the first ones (ALCE: 3); null for all.
    """

    def __init__(
        self,
        entailment: EntailmentModel,
        threshold: float | None = None,
        at_most: int | None = 3,
    ):
        if threshold is not None and not 0 < threshold <= 1:
            raise UserError(f"threshold: {threshold}; give a probability in (0, 1]")
        if at_most is not None and at_most < 1:
            raise UserError(f"at_most: {at_most}; give at least 1, or null for all")
        self.entailment = entailment
        self.threshold = threshold
        self.at_most = at_most

    def __call__(self, documents: Sequence[Document]) -> list[list[CitedSentence]]:
        read = [[self._sentence(*s) for s in _read(document)] for document in documents]
        cited = [(s, texts) for rows in read for s, texts in rows if texts]
        joint = self._entailed([("\n".join(texts), s.text) for s, texts in cited])
        for (sentence, texts), (entailed, p) in zip(cited, joint, strict=True):
            sentence.recalled, sentence.p = entailed, p
            sentence.precise = [entailed] * len(texts)
        several = [(s, texts) for s, texts in cited if s.recalled and len(texts) > 1]
        self._mark_irrelevant(several)
        return [[sentence for sentence, _ in rows] for rows in read]

    def _sentence(
        self, claim: str, numbers: list[int], texts: dict[int, str]
    ) -> tuple[CitedSentence, list[str]]:
        kept = numbers[: self.at_most]
        missing = [number for number in numbers if number not in texts]
        text = _claim_words(claim)
        sentence = CitedSentence(
            text=text, numbers=kept, missing=missing, precise=[False] * len(kept)
        )
        return sentence, [texts[number] for number in kept] if text and not missing else []

    def _mark_irrelevant(self, several: Sequence[tuple[CitedSentence, list[str]]]) -> None:
        places = [(s, texts, i) for s, texts in several for i in range(len(texts))]
        alone = self._entailed([(texts[i], s.text) for s, texts, i in places])
        open_ones = []
        for place, (entailed, _) in zip(places, alone, strict=True):
            place[0].precise[place[2]] = entailed
            if entailed is False:
                open_ones.append(place)
        pairs = [("\n".join(t[:i] + t[i + 1 :]), s.text) for s, t, i in open_ones]
        for (sentence, _, i), (entailed, _) in zip(open_ones, self._entailed(pairs), strict=True):
            sentence.precise[i] = None if entailed is None else not entailed

    def _entailed(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[bool | None, float | None]]:
        """Whether each premise entails its hypothesis, and the probability."""
        answers: list[tuple[bool | None, float | None]] = []
        for row in self.entailment.relations(pairs) if pairs else []:
            if np.isnan(row).any():
                answers.append((None, None))
            else:
                answers.append((bool(entails(row, self.threshold)), float(row[0])))
        return answers


def _claim_words(claim: str) -> str:
    return claim if claim.strip(" .,;:!?") else ""


def _read(document: Document) -> list[tuple[str, list[int], dict[int, str]]]:
    if fault := citations_fault(document):
        raise UserError(f"document {document.id!r}: {fault}")
    citations = given_citations(document)
    if citations is None:
        passages = enumerate(document.passages or [], 1)
        texts = {n: f"Title: {p.title}\n{p.text}" if p.title else p.text for n, p in passages}
        text = (document.model_extra or {}).get("cited_text") or document.text
        return [(claim, numbers, texts) for claim, numbers in cited_sentences(text)]
    rows = []
    for citation in citations:
        sections = sections_of(citation)
        numbered = dict(enumerate(sections, 1))
        rows.append((citation["claim"], list(numbered), numbered))
    uncited = _uncited(document.text, [citation["claim"] for citation in citations])
    return rows + [(sentence, [], {}) for sentence in uncited]


def given_sentences(document: Document) -> list[CitedSentence] | None:
    """The sentences of a text with the verdicts that its ``citations`` bring (``entailed``).

    Nothing is asked. Sentences that are in no citation have none, and recall 0. The verdicts are on
    all passages of a sentence together, so that ``precise`` is not told.

    Returns:
        ``None`` where a citation has no verdict, or the document has no ``citations``.
    """
    citations = given_citations(document)
    if citations is None or any(citation.get("entailed") not in (0, 1) for citation in citations):
        return None
    labels = [bool(citation["entailed"]) for citation in citations]
    read = _read(document)
    labels += [False] * (len(read) - len(citations))
    return [
        CitedSentence(text=_claim_words(claim), numbers=numbers, recalled=label)
        for (claim, numbers, _), label in zip(read, labels, strict=True)
    ]


def given_citations(document: Document) -> list | None:
    """AmbigBio's citations of a document; ``None`` where its text's brackets are to be read."""
    extra = document.model_extra or {}
    listed = extra.get("citations")
    return (
        None if isinstance(extra.get("cited_text"), str) or not isinstance(listed, list) else listed
    )


def citations_fault(document: Document) -> str | None:
    """What is wrong with a document's citations, and the mend; ``None`` where nothing is."""
    if not isinstance((document.model_extra or {}).get("cited_text"), str | None):
        return "cited_text: a text required; without the field the document's own text is read"
    for place, citation in enumerate(given_citations(document) or []):
        fields = citation if isinstance(citation, dict) else {}
        passage = fields.get("passage")
        texts = passage if isinstance(passage, list) else [passage]
        if not isinstance(fields.get("claim"), str) or not all(isinstance(t, str) for t in texts):
            fault = "claim, passage: texts required; without the field the brackets are read"
            return f"citations[{place}]: {fault}"
    return None


def sections_of(citation: dict) -> list[str]:
    """The passages of one of AmbigBio's citations, which stand one after the other in a text."""
    passage = citation["passage"]
    whole = passage if isinstance(passage, str) else "\n".join(passage)
    return [section for section in _SECTION_STARTS.split(whole) if section] or [whole]


def _uncited(text: str, claims: Sequence[str]) -> list[str]:
    """The sentences of a text that no cited claim says, whatever their blanks and marks.

    A claim may be longer than a sentence, or a part of it: claims say a sentence of which they
    cover half the letters, so that a short one does not stand for all that is said beside it.
    """
    cited_letters = [letters for claim in claims if (letters := _letters(claim))]
    uncited = []
    for sentence in split_sentences(text):
        letters = _letters(sentence)
        covered = sum(len(k) * letters.count(k) for k in set(cited_letters))
        if not any(letters in k for k in cited_letters) and 2 * covered < len(letters):
            uncited.append(sentence)
    return uncited


def _letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())
