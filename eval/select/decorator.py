"""A decorator that applies Core to a custom decomposer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper

from components.sentences import split_sentences
from eval.select.core import Core
from eval.stages import run_selector
from records import Claim, Document, UserError
from records.stage_outputs import class_path_of


class core:
    """Apply Core to a function that returns the subclaims of a sentence.

        @core(Core(entailment, unli, "eval/select/bleached/biographies.txt"))
        def decompose(sentence: str) -> list[str]: ...

        decompose("Ann Lee paints. She is a person.", topic="Ann Lee")   # the selected subclaims
        decompose.batch(texts, topics)   # several texts in one batch of model calls

    The text is split into sentences, which are the premises of document entailment.

    Args:
        selector: Core, or any selector stage.
    """

    def __init__(self, selector: Core):
        self.selector = selector

    def __call__(self, decompose: Callable[[str], Sequence[str]]) -> Selecting:
        return Selecting(decompose, self.selector)


class Selecting:
    """A decomposer followed by a selector; :class:`core` returns it."""

    def __init__(self, decompose: Callable[[str], Sequence[str]], selector: Core):
        update_wrapper(self, decompose)
        self.decompose = decompose
        self.selector = selector

    def __call__(self, text: str, topic: str) -> list[str]:
        return self.batch([text], [topic])[0]

    def batch(self, texts: Sequence[str], topics: Sequence[str]) -> list[list[str]]:
        """The selected subclaims of each text."""
        documents = [
            Document(id=str(index), topic=topic, text=text)
            for index, (text, topic) in enumerate(zip(texts, topics, strict=True))
        ]
        claims = [self._claims(text) for text in texts]
        selections = run_selector(self.selector, documents, claims)
        return [
            [claim.text for claim, s in zip(text_claims, chosen, strict=True) if s.selected]
            for text_claims, chosen in zip(claims, selections, strict=True)
        ]

    def _claims(self, text: str) -> list[Claim]:
        claims: list[Claim] = []
        for sentence in split_sentences(text):
            subclaims = self.decompose(sentence)
            if isinstance(subclaims, str):  # each letter would become a claim
                name = class_path_of(self.decompose)
                raise UserError(f"{name}: expected a list of texts, got {subclaims!r:.60}")
            for claim in subclaims:
                claims.append(Claim(id=f"c{len(claims)}", text=claim, source=sentence))
        return claims
