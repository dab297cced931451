"""Claims that came with the documents: human atomic facts, or another decomposer's output."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from components.overlap import stems
from components.sentences import remove_citations, split_sentences
from eval.stages import Decomposer, run_decomposer
from records import Claim, Document, UserError


@dataclass(eq=False)
class Given:
    """Use each document's own claims.

    Args:
        irrelevant: keep claims that the annotators labelled irrelevant (IR).
        field: the documents' field that holds them. FActScore's labelled biographies have the
            humans' facts in ``claims`` and the model's in ``model_claims``.
        otherwise: decomposes the documents that bring none; without it such a document is an error.
        align: give a claim that does not say where it comes from the sentence of its text that
            shares most with it, as its source; for Core, which else asks whether the whole text
            entails it, and for atoms whose release names no sentence (HALoGEN).
    """

    irrelevant: bool = False
    field: str = "claims"
    otherwise: Decomposer | None = None
    align: bool = False

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        without = [document for document in documents if not self.has(document)]
        if without and self.otherwise is None:
            raise UserError(
                f"document {without[0].id}: no claims; give a `{self.field}` field or choose "
                "another decomposer, e.g. eval.decompose.sentences.Sentences"
            )
        others = iter(run_decomposer(self.otherwise, without) if without else ())
        return [
            self._own(document) if self.has(document) else next(others) for document in documents
        ]

    def _own(self, document: Document) -> list[Claim]:
        claims = [c for c in self._claims(document) if self.irrelevant or c.label != "IR"]
        return aligned(claims, document.text) if self.align else claims

    def has(self, document: Document) -> bool:
        """Whether the document brings claims; an empty list is one that says nothing."""
        return getattr(document, self.field, None) is not None

    def _claims(self, document: Document) -> list[Claim]:
        claims: list[Claim] = []
        try:
            for claim in getattr(document, self.field):
                claims.append(Claim.model_validate(claim))
            if len({claim.id for claim in claims}) == len(claims):
                return claims
            what = "ids must be unique within a document"
        except ValidationError as error:
            fault = error.errors()[0]
            what = f"{'.'.join(map(str, (len(claims), *fault['loc'])))}: {fault['msg']}"
        except TypeError as error:
            what = str(error)
        raise UserError(f"document {document.id}: {self.field}: no claims ({what})")


def aligned(claims: Sequence[Claim], text: str) -> list[Claim]:
    """Claims without a source with the sentence of a text that shares most stems with each.

    A stem counts the more, the fewer sentences have it, log(1 + sentences / those that have it);
    of equal ones the first sentence is taken, and a claim that shares nothing stays as it is.
    """
    sentences = split_sentences(remove_citations(text))
    own = [frozenset(stems(sentence)) for sentence in sentences]
    having = Counter(stem for one in own for stem in one)
    weight = {stem: math.log(1 + len(own) / count) for stem, count in having.items()}
    found = []
    for claim in claims:
        if claim.source is not None or not own:
            found.append(claim)
            continue
        known = frozenset(stems(claim.text))
        # Rounded once: the order of a set, which is another in each process, decides no tie.
        shared = [math.fsum(weight[stem] for stem in known & one) for one in own]
        best = max(range(len(own)), key=shared.__getitem__)
        if shared[best] > 0:
            claim = claim.model_copy(update={"source": sentences[best], "sentence": best})
        found.append(claim)
    return found
