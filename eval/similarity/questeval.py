"""QuestEval: what can be asked about one text is asked of the other, in both directions.

Scialom et al. 2021 (2103.12693), section 3, without the learned weights of questions.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.encoding import Pair
from eval.models.answers import Answerer
from eval.models.text2text import Text2Text
from eval.similarity import Measure
from eval.similarity.answers import Span, SpanChooser, token_f1


@dataclass(eq=False)
class QuestEval(Measure):
    """Mean of recall (questions about the reference) and precision (about the candidate).

    Each question has two scores: token F1 of the answers, and answerability. A side's score is the
    mean over all scores of its questions, 0 where the text has nothing to ask about; the released
    code (ThomasScialom/QuestEval) does the same; its newest version has a third score, BERTScore.
    Where it differs: a pair has failed here when no question on a side could be asked; there are no
    cached questions and no weighting of questions.

    Args:
        questions: writes a question for an answer in its sentence; ``ThomasNLG/t5-qg_squad1-en``
            with the template ``sv1 </s> {asked} </s> {context}``.
        answerer: answers it from the other text.
        spans: chooses what is asked about.
    """

    questions: Text2Text
    answerer: Answerer
    spans: SpanChooser

    def score(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Scores of shape (n,) in [0, 1]; NaN where nothing could be asked."""
        back = [(candidate, reference) for reference, candidate in pairs]
        return np.mean([self._side(pairs), self._side(back)], axis=0)

    def _side(self, pairs: Sequence[Pair]) -> list[float]:
        asked = questions_about(self.questions, self.spans, [about for about, _ in pairs])
        jobs = [
            (place, span, question, pairs[place][1])
            for place, own in enumerate(asked)
            for span, question in own
            if question
        ]
        answers = self.answerer.answers([(question, text) for _, _, question, text in jobs])
        known = [(job, answer) for job, answer in zip(jobs, answers, strict=True) if answer]
        scores: list[list[float]] = [[] for _ in pairs]
        for (place, span, _, _), answer in known:
            scores[place] += [token_f1(span.text, answer.text), answer.answerable]
        return [side_score(own, found) for own, found in zip(asked, scores, strict=True)]


Asked = list[tuple[Span, str | None]]


def questions_about(
    questions: Text2Text,
    spans: SpanChooser,
    texts: Sequence[str],
    marks: tuple[str, str] | None = None,
) -> list[Asked]:
    """Per text its answers with a question each; ``None`` where no question could be written.

    Args:
        questions: writes them from an answer and its sentence.
        spans: chooses the answers.
        texts: what is asked about.
        marks: put around the answer in its sentence, for models that read it there.
    """
    chosen = spans.spans(texts)
    wanted = [(span.text, _marked(span, marks)) for own in chosen for span in own]
    written = iter(questions.write(wanted))
    return [
        [(span, one.text or None if (one := next(written)) else None) for span in own]
        for own in chosen
    ]


def _marked(span: Span, marks: tuple[str, str] | None) -> str:
    if marks is None:
        return span.sentence
    # As a whole word, and whatever blanks the sentence has between the words of the answer.
    words = r"\s+".join(map(re.escape, span.text.split()))
    marked = f"{marks[0]} {span.text} {marks[1]}"
    return re.sub(rf"(?<!\w){words}(?!\w)", lambda _: marked, span.sentence, count=1)


def side_score(asked: Asked, scores: Sequence[float]) -> float:
    """Mean score; 0 for a text with nothing to ask about, NaN where no question was answered."""
    if not asked:
        return 0.0
    return float(np.mean(scores)) if scores else math.nan
