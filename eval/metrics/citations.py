"""Citation recall and precision (ALCE, 2305.14627).

Definitions (ALCE, section 3; 2402.05629 reports the recall):

- A sentence has recall 1 if its concatenated cited passages entail it; 0 without a citation or if a
  cited passage is missing.
- A citation is precise if its sentence has recall 1 and it is relevant. It is irrelevant if its
  passage alone does not entail the sentence and the other passages do.
- Recall of a text is the mean over its sentences, precision the mean over its citations (0 without
  citations); values of a generator are means over its texts.

Departures from ALCE's code, which differs from these definitions: numbers after the full stop
belong to the preceding sentence (ALCE: the next), ``[1, 2]`` and ``[1-3]`` cite two and three
passages (ALCE: one), a passage cited twice in a sentence counts once, citations of a sentence with
a missing passage are imprecise (ALCE: not counted), and all lines are read (ALCE: the first).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel

from components.sentences import split_sentences
from eval.stages import EntailmentModel, entails
from records import Document, UserError
from records.cleaning import CITATION_NUMBERS, clean

_NUMBERS = re.compile(rf"(?<![ \t])[ \t]*\[({CITATION_NUMBERS})\]")
# Numbers with the space before a full stop or comma: "in 1915 [1] ."
_MARKS = re.compile(rf"(?<![ \t])(?:[ \t]*\[{CITATION_NUMBERS}\])+(?:[ \t]+(?=[.,;:!?](?:\s|$)))?")
# "… in 1915. [1][2] She": the numbers belong to the preceding sentence.
_NUMBERS_AFTER_STOP = re.compile(rf"([.!?][\"”’)]*)((?:[ \t]*\[{CITATION_NUMBERS}\])+)(?=\s|$)")
_RANGE = re.compile(r"(\d+)\s*[–-]\s*(\d+)")
# AmbigBio's cited passages: concatenated page sections, each with its page title.
_SECTION_STARTS = re.compile(r"(?:\A|\n)(?=Title: )")


class Cited(NamedTuple):
    """A sentence and its cited passages.

    Attributes:
        claim: the sentence without brackets; may be empty.
        numbers: distinct 1-based passage numbers in the order of the text.
    """

    claim: str
    numbers: list[int]


def cited_sentences(text: str) -> list[Cited]:
    """Split a text into sentences with the numbers in their brackets."""
    moved = _NUMBERS_AFTER_STOP.sub(lambda m: f"{m[2]}{m[1]}", text)
    sentences = []
    # The splitter drops a line of numbers only, which is a citation without a sentence.
    for line in clean(moved, "citations").text.splitlines():
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
    """Remove bracketed numbers and leading and trailing whitespace of lines."""
    return "\n".join(line.strip() for line in _MARKS.sub("", text).splitlines()).strip()


class CitedSentence(BaseModel):
    """A sentence with the verdicts on its citations.

    Attributes:
        text: without brackets; empty if there are only numbers.
        numbers: cited passages, at most ``at_most``.
        missing: cited numbers without a passage.
        recalled: whether the cited passages entail it; ``None`` if the model failed.
        p: probability of entailment; ``None`` if the model was not queried.
        precise: whether each citation is precise; ``None`` if the model failed.
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
    """Return the share of sentences entailed by their citations; ``None`` if none is judged."""
    judged = [s.recalled for s in sentences if s.text and s.recalled is not None]
    return sum(judged) / len(judged) if judged else None


def precision(sentences: Sequence[CitedSentence]) -> float | None:
    """Return the share of precise citations; 0 without citations, ``None`` if none is judged."""
    flags = [precise for sentence in sentences for precise in sentence.precise]
    judged = [precise for precise in flags if precise is not None]
    if flags and not judged:
        return None
    return sum(judged) / len(judged) if judged else 0.0 if recall(sentences) is not None else None


class Citations:
    """Judges the citations of texts.

    ``[1]`` is the first of a document's ``passages``. Brackets are read from ``cited_text`` if
    present (written by ``data_builders ambigbio``), else from the text. For AmbigBio's published
    files and ALCE's scores the field ``citations`` is used; other sentences have no citations.

    Args:
        entailment: the relation model; a row with NaN is a failure.
        threshold: minimum entailment probability; null: entailment must be the argmax.
        at_most: number of citations judged per sentence, from the first (ALCE: 3); null for all.
    """

    def __init__(
        self, entailment: EntailmentModel, threshold: float | None = None, at_most: int | None = 3
    ):
        if threshold is not None and not 0 < threshold <= 1:
            raise UserError(f"threshold: expected a probability in (0, 1], got {threshold}")
        if at_most is not None and at_most < 1:
            raise UserError(f"at_most: expected at least 1 or null, got {at_most}")
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
        """Return whether each premise entails its hypothesis, and the probability."""
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
    """Return a text's sentences with the recorded verdicts (``entailed``) of its ``citations``.

    Sentences without a citation have recall 0. The verdicts are on all passages of a sentence
    together, so ``precise`` is empty.

    Returns:
        ``None`` if a citation has no verdict, or the document has no ``citations``.
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
    """Return a document's ``citations`` (AmbigBio); ``None`` if brackets are read instead."""
    extra = document.model_extra or {}
    listed = extra.get("citations")
    return (
        None if isinstance(extra.get("cited_text"), str) or not isinstance(listed, list) else listed
    )


def citations_fault(document: Document) -> str | None:
    """Return the error in a document's citations, or ``None``."""
    if not isinstance((document.model_extra or {}).get("cited_text"), str | None):
        return "cited_text: expected a string; without the field, `text` is read"
    for place, citation in enumerate(given_citations(document) or []):
        fields = citation if isinstance(citation, dict) else {}
        passage = fields.get("passage")
        texts = passage if isinstance(passage, list) else [passage]
        if not isinstance(fields.get("claim"), str) or not all(isinstance(t, str) for t in texts):
            fault = "expected strings in claim and passage; without the field, brackets are read"
            return f"citations[{place}]: {fault}"
    return None


def sections_of(citation: dict) -> list[str]:
    """Split the concatenated passages of one of AmbigBio's citations."""
    passage = citation["passage"]
    whole = passage if isinstance(passage, str) else "\n".join(passage)
    return [section for section in _SECTION_STARTS.split(whole) if section] or [whole]


def _uncited(text: str, claims: Sequence[str]) -> list[str]:
    """Return the sentences that no cited claim covers, ignoring spaces and punctuation.

    Claims cover a sentence that is part of a claim, or of which they contain half the letters.
    """
    cited_letters = [letters for claim in claims if (letters := _letters(claim))]
    uncited = []
    for sentence in split_sentences(clean(text, "citations").text):
        letters = _letters(sentence)
        covered = sum(len(k) * letters.count(k) for k in set(cited_letters))
        if not any(letters in k for k in cited_letters) and 2 * covered < len(letters):
            uncited.append(sentence)
    return uncited


def _letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())
