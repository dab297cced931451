"""QuestEval (Scialom et al. 2021, 2103.12693, section 3), without the learned question weights.

Questions about each text are answered from the other text.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.encoding import Pair
from eval.models.local_seq2seq import LocalSeq2Seq
from eval.models.question_answering import Answerer
from eval.similarity import Measure
from eval.similarity.answer_spans import Span, SpanChooser, token_f1


@dataclass(eq=False)
class QuestEval(Measure):
    """Mean of recall (questions about the reference) and precision (about the candidate).

    Each question has two scores, token F1 and answerability. The score of a direction is the mean
    over all its scores, 0 for a text without answer spans, as in the released code
    (ThomasScialom/QuestEval; its newest version adds BERTScore). Differences: a pair fails if no
    question of a direction could be written or answered; questions are not weighted.

    Args:
        questions: model that writes a question for an answer in its sentence, e.g.
            ``ThomasNLG/t5-qg_squad1-en`` with the template ``sv1 </s> {asked} </s> {context}``.
        answerer: model that answers the question from the other text.
        spans: chooses the answer spans.
    """

    questions: LocalSeq2Seq
    answerer: Answerer
    spans: SpanChooser

    def score(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return scores of shape (n,) in [0, 1]; NaN if a pair failed."""
        back = [(candidate, reference) for reference, candidate in pairs]
        return np.mean([self._side_scores(pairs), self._side_scores(back)], axis=0)

    def _side_scores(self, pairs: Sequence[Pair]) -> list[float]:
        questions = write_questions(self.questions, self.spans, [text for text, _ in pairs])
        jobs = [
            (index, span, question, pairs[index][1])
            for index, group in enumerate(questions)
            for span, question in group
            if question
        ]
        answers = self.answerer.answers([(question, text) for _, _, question, text in jobs])
        answered = [(job, answer) for job, answer in zip(jobs, answers, strict=True) if answer]
        scores: list[list[float]] = [[] for _ in pairs]
        for (index, span, _, _), answer in answered:
            scores[index] += [token_f1(span.text, answer.text), answer.answerable]
        return [side_score(group, values) for group, values in zip(questions, scores, strict=True)]


SpanQuestions = list[tuple[Span, str | None]]


def write_questions(
    questions: LocalSeq2Seq,
    spans: SpanChooser,
    texts: Sequence[str],
    marks: tuple[str, str] | None = None,
) -> list[SpanQuestions]:
    """Write a question for each answer span of each text; ``None`` if that failed.

    ``marks`` are inserted around the answer in its sentence, for models that need them.
    """
    chosen = spans.spans(texts)
    inputs = [(span.text, _marked(span, marks)) for group in chosen for span in group]
    outputs = iter(questions.write(inputs))
    return [
        [(span, output.text or None if (output := next(outputs)) else None) for span in group]
        for group in chosen
    ]


def _marked(span: Span, marks: tuple[str, str] | None) -> str:
    if marks is None:
        return span.sentence
    # whole words, with any whitespace between them
    words = r"\s+".join(map(re.escape, span.text.split()))
    marked = f"{marks[0]} {span.text} {marks[1]}"
    return re.sub(rf"(?<!\w){words}(?!\w)", lambda _: marked, span.sentence, count=1)


def side_score(questions: SpanQuestions, scores: Sequence[float]) -> float:
    """Mean score; 0 for a text without answer spans, NaN if no question was answered."""
    if not questions:
        return 0.0
    return float(np.mean(scores)) if scores else math.nan
