"""QAFactEval: questions about the candidate, answered from the reference (2112.08542)."""

from collections.abc import Sequence
from dataclasses import dataclass

from components.encoding import Pair
from eval.models.lerc import Lerc
from eval.models.local_seq2seq import LocalSeq2Seq
from eval.models.question_answering import Answerer
from eval.similarity import Measure
from eval.similarity.answer_spans import SpanChooser, token_f1
from eval.similarity.questeval import side_score, write_questions

_ANSWERABLE = 0.5


@dataclass(eq=False)
class QAFactEval(Measure):
    """Mean agreement of the reference's answers with the candidate's (Fabbri et al. 2022).

    As in the released code (salesforce/QAFactEval), a question is used if its answer from the
    candidate has a token F1 above 0.6; questions that the reference does not answer score 0, as do
    candidates without noun phrases. If the filter removes all questions, the pair fails here and
    scores 0 there.

    The released models are BART-large for questions (an AllenNLP archive, which must be converted),
    ELECTRA-large for answers (:class:`eval.models.question_answering.SpanAnswers`) and QuIP for
    LERC.

    Args:
        questions: model that writes a question for an answer in its sentence.
        answerer: model that answers the question from either text.
        spans: chooses the answer spans; noun chunks in the paper.
        compare: learned comparison of two answers; null: token F1.
        least_f1: minimum token F1 of the answer from the candidate; below 0: no filter.
        marks: inserted around the answer in its sentence, for question models that need them, such
            as the released one.
    """

    questions: LocalSeq2Seq
    answerer: Answerer
    spans: SpanChooser
    compare: Lerc | None = None
    least_f1: float = 0.6
    marks: tuple[str, str] | None = None

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return token F1 in [0, 1] or LERC's score per pair; NaN if no question was answered."""
        candidates = [candidate for _, candidate in pairs]
        questions = write_questions(self.questions, self.spans, candidates, self.marks)
        jobs = [
            (index, span.text, question)
            for index, group in enumerate(questions)
            for span, question in group
            if question
        ]
        if self.least_f1 >= 0:
            on_candidates = self.answerer.answers([(q, pairs[i][1]) for i, _, q in jobs])
            jobs = [
                job
                for job, answer in zip(jobs, on_candidates, strict=True)
                if answer
                and answer.answerable > _ANSWERABLE
                and token_f1(job[1], answer.text) > self.least_f1
            ]
        answers = self.answerer.answers([(q, pairs[i][0]) for i, _, q in jobs])
        answered = [(job, answer) for job, answer in zip(jobs, answers, strict=True) if answer]
        agreement = iter(
            self._agreement(
                [
                    (question, expected, answer.text, pairs[index][0])
                    for (index, expected, question), answer in answered
                    if answer.answerable > _ANSWERABLE
                ]
            )
        )
        scores: list[list[float]] = [[] for _ in pairs]
        for (index, _, _), answer in answered:
            is_answerable = answer.answerable > _ANSWERABLE
            scores[index].append(float(next(agreement)) if is_answerable else 0.0)
        return [side_score(group, values) for group, values in zip(questions, scores, strict=True)]

    def _agreement(self, rows: Sequence[tuple[str, str, str, str]]) -> Sequence[float]:
        if self.compare is not None:
            return self.compare.compare(rows) if rows else []
        return [token_f1(expected, answer) for _, expected, answer, _ in rows]
