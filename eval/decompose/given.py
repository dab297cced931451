"""Claims that the documents contain: human atomic facts, or another decomposer's output."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from components.english import stems
from components.sentences import split_sentences
from eval.stages import Decomposer, run_decomposer
from records import Claim, Document, UserError


@dataclass(eq=False)
class Given:
    """Use each document's own claims.

    Args:
        irrelevant: keep claims that the annotators labelled irrelevant (IR).
        field: the documents' field with the claims. FActScore's labelled biographies have human
            facts in ``claims`` and the model's in ``model_claims``.
        otherwise: decomposer for documents without claims; null: such a document is an error,
            unless it does not respond (``responds: false``), and has no claims.
        align: set the source of a claim without one to the most similar sentence of its text. Core
            otherwise judges entailment by the whole text; HALoGEN's atoms name no sentence.
    """

    irrelevant: bool = False
    field: str = "claims"
    otherwise: Decomposer | None = None
    align: bool = False

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        without = [document for document in documents if not self.has(document)]
        if without and self.otherwise is None:
            raise UserError(
                f"document {without[0].id}: no claims; add a `{self.field}` field or use "
                "another decomposer, e.g. eval.decompose.sentences.Sentences"
            )
        decompositions = iter(run_decomposer(self.otherwise, without) if without else ())
        return [
            self._read_claims(document) if self.has(document) else next(decompositions)
            for document in documents
        ]

    def has(self, document: Document) -> bool:
        """Whether the claims are known: the field, or ``responds: false`` without the field."""
        return getattr(document, self.field, None) is not None or document.responds is False

    def _read_claims(self, document: Document) -> list[Claim]:
        claims: list[Claim] = []
        try:
            for claim in getattr(document, self.field, None) or []:
                claims.append(Claim.model_validate(claim))
            if len({claim.id for claim in claims}) == len(claims):
                kept = [claim for claim in claims if self.irrelevant or claim.label != "IR"]
                return add_sources(kept, document.text) if self.align else kept
            problem = "ids must be unique within a document"
        except ValidationError as error:
            fault = error.errors()[0]
            problem = f"{'.'.join(map(str, (len(claims), *fault['loc'])))}: {fault['msg']}"
        except TypeError as error:
            problem = str(error)
        raise UserError(f"document {document.id}: {self.field}: expected claims ({problem})")


def add_sources(claims: Sequence[Claim], text: str) -> list[Claim]:
    """Set the source of each claim without one to the sentence of ``text`` with most shared stems.

    A stem's weight is its IDF, log(1 + sentences / sentences with the stem). Ties go to the first
    sentence; a claim that shares no stem is unchanged.
    """
    sentences = split_sentences(text)
    sentence_stems = [frozenset(stems(sentence)) for sentence in sentences]
    counts = Counter(stem for stem_set in sentence_stems for stem in stem_set)
    weight = {stem: math.log(1 + len(sentences) / count) for stem, count in counts.items()}
    with_sources = []
    for claim in claims:
        if claim.source is None and sentences:
            claim_stems = frozenset(stems(claim.text))
            # fsum is exact, so that the order of a set, which varies by process, decides no tie
            shared = [
                math.fsum(weight[stem] for stem in claim_stems & stem_set)
                for stem_set in sentence_stems
            ]
            best = max(range(len(sentences)), key=shared.__getitem__)
            if shared[best] > 0:
                claim = claim.model_copy(update={"source": sentences[best], "sentence": best})
        with_sources.append(claim)
    return with_sources
