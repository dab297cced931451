"""A checker of texts against evidence as a metric: AlignScore, MiniCheck, any NLI model."""

from collections.abc import Sequence

from eval.decompose.sentences import Sentences
from eval.metrics.text_metric import TextMetric
from eval.retrieve.given import Given
from eval.stages import EntailmentModel, Retriever, run_retriever, run_verifier
from eval.verify.nli import NLI
from records import Document


class CheckedText(TextMetric):
    """Mean over a text's sentences of the support by their best passage.

    AlignScore (2305.16739, section 3.3) and SummaC (2111.09525) score a text so. The probabilities
    are not cut at a threshold. A sentence without evidence or without an answer is left out; a text
    without any other sentence is a failure.

    Args:
        checker: ``eval.models.checker.Checker`` (MiniCheck and other two-class checkers) or
            ``eval.models.encoder.Entailment`` (a sequence classifier of three relations, such as an
            AlignScore checkpoint in that form; set its ``labels``).
        retrieve: finds evidence for each sentence; null uses the documents' passages.
        title_in_premise: prepend the passage's title to its text.
    """

    def __init__(
        self,
        checker: EntailmentModel,
        retrieve: Retriever | None = None,
        title_in_premise: bool = False,
    ):
        self.verifier = NLI(checker, title_in_premise=title_in_premise)
        self.retrieve = retrieve or Given()

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        claims, passages = run_retriever(self.retrieve, documents, Sentences()(documents))
        verdicts = run_verifier(self.verifier, documents, claims, passages)
        support = [[v.p for v in row if v.p is not None] for row in verdicts]
        return [sum(values) / len(values) if values else None for values in support]
