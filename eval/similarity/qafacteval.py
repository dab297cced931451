"""QAFactEval: questions about the candidate, answered from the reference (2112.08542)."""

from collections.abc import Sequence
from dataclasses import dataclass

from components.encoding import Pair
from eval.models.answers import Answerer
from eval.models.lerc import Lerc
from eval.models.text2text import Text2Text
from eval.similarity import Measure
from eval.similarity.answers import SpanChooser, token_f1
from eval.similarity.questeval import questions_about, side_score

_ANSWERABLE = 0.5


@dataclass(eq=False)
class QAFactEval(Measure):
    """Mean agreement of the reference's answers with the candidate's (Fabbri et al. 2022).

    As in the released code (salesforce/QAFactEval): a question counts when it can be answered from
    the candidate itself with a token F1 above 0.6; on the reference, an unanswerable one has 0. A
    candidate without noun phrases has 0. Where it differs: one whose questions all fall to the
    filter has failed here, and has 0 there.

    The released models are BART-large for questions (an AllenNLP archive, which must be converted),
    ELECTRA-large for answers (:class:`eval.models.answers.SpanAnswers`) and QuIP for LERC.

    Args:
        questions: writes a question for an answer in its sentence.
        answerer: answers it from either text.
        spans: chooses what is asked about; noun chunks in the paper.
        compare: learned comparison of two answers; token F1 when not given.
        least_f1: of the question's answer on the candidate itself; below 0 for no filter.
        marks: put around the answer in its sentence, for a question model that reads it there, as
            the released one does.
    """

    questions: Text2Text
    answerer: Answerer
    spans: SpanChooser
    compare: Lerc | None = None
    least_f1: float = 0.6
    marks: tuple[str, str] | None = None

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair: token F1 in [0, 1] or LERC's own scale; NaN where nothing was asked."""
        candidates = [candidate for _, candidate in pairs]
        asked = questions_about(self.questions, self.spans, candidates, self.marks)
        jobs = [
            (place, span.text, question)
            for place, own in enumerate(asked)
            for span, question in own
            if question
        ]
        if self.least_f1 >= 0:
            own = self.answerer.answers([(q, pairs[place][1]) for place, _, q in jobs])
            jobs = [
                job
                for job, answer in zip(jobs, own, strict=True)
                if answer
                and answer.answerable > _ANSWERABLE
                and token_f1(job[1], answer.text) > self.least_f1
            ]
        answers = self.answerer.answers([(q, pairs[place][0]) for place, _, q in jobs])
        known = [(job, answer) for job, answer in zip(jobs, answers, strict=True) if answer]
        said = [answer.answerable > _ANSWERABLE for _, answer in known]
        rows = [
            (question, expected, answer.text, pairs[place][0])
            for (place, expected, question), answer in known
        ]
        scores: list[list[float]] = [[] for _ in pairs]
        agreement = iter(self._agreement([row for row, yes in zip(rows, said, strict=True) if yes]))
        for ((place, _, _), _), yes in zip(known, said, strict=True):
            scores[place].append(float(next(agreement)) if yes else 0.0)
        return [side_score(own, found) for own, found in zip(asked, scores, strict=True)]

    def _agreement(self, rows: Sequence[tuple[str, str, str, str]]) -> Sequence[float]:
        if self.compare is not None:
            return self.compare.compare(rows) if rows else []
        return [token_f1(expected, given) for _, expected, given, _ in rows]
