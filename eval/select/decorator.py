"""Core around a decomposer of your own: its subclaims go in, those that count come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper

from components.sentences import split_sentences
from eval.select.core import Core
from eval.stages import run_selector
from records import Claim, Document, UserError
from records.stage_outputs import class_path_of


class core:
    """Let Core select among the subclaims of a function from a sentence to its subclaims.

        @core(Core(entailment, unli, "eval/select/bleached/biographies.txt"))
        def decompose(sentence: str) -> list[str]: ...

        decompose("Ann Lee paints. She is a person.", topic="Ann Lee")   # the selected subclaims
        decompose.batch(texts, topics)   # the same for many texts, in one batch of model calls

    The text is split into sentences; each sentence is what its subclaims must follow from
    (document entailment).

    Args:
        selector: Core, or any selector stage.
    """

    def __init__(self, selector: Core):
        self.selector = selector

    def __call__(self, decompose: Callable[[str], Sequence[str]]) -> Selecting:
        return Selecting(decompose, self.selector)


class Selecting:
    """A decomposer followed by a selector; what :class:`core` makes of a function.

    Args:
        decompose: gives the subclaims of a sentence.
        selector: a selector stage.
    """

    def __init__(self, decompose: Callable[[str], Sequence[str]], selector: Core):
        update_wrapper(self, decompose)
        self.decompose = decompose
        self.selector = selector

    def __call__(self, text: str, topic: str) -> list[str]:
        return self.batch([text], [topic])[0]

    def batch(self, texts: Sequence[str], topics: Sequence[str]) -> list[list[str]]:
        """The selected subclaims of each text.

        Raises:
            ValueError: not as many topics as texts.
        """
        documents = [
            Document(id=str(place), topic=topic, text=text)
            for place, (text, topic) in enumerate(zip(texts, topics, strict=True))
        ]
        claims = [self._claims(text) for text in texts]
        selections = run_selector(self.selector, documents, claims)
        return [
            [claim.text for claim, s in zip(own, chosen, strict=True) if s.selected]
            for own, chosen in zip(claims, selections, strict=True)
        ]

    def _claims(self, text: str) -> list[Claim]:
        sentences = split_sentences(text)
        found = [self.decompose(sentence) for sentence in sentences]
        for own in found:
            if isinstance(own, str):  # each letter would become a claim
                raise UserError(
                    f"{class_path_of(self.decompose)}: gave {own!r:.60}; give a list of texts"
                )
        pairs = [(s, claim) for s, own in zip(sentences, found, strict=True) for claim in own]
        return [
            Claim(id=f"c{place}", text=claim, source=sentence)
            for place, (sentence, claim) in enumerate(pairs)
        ]
