"""Banks of in-context examples: sentences with their decomposition, static ones and retrieved."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eval.prompting.prompts import PromptFile
from eval.retrieve.bm25 import PassageIndex
from records import Passage, UserError

_MARKED = re.compile(r"<SOS>(.*?)<EOS>", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A sentence with its decomposition.

    Attributes:
        text: as it stands in the bank; a window where a sentence is marked ``<SOS>…<EOS>`` in it.
        claims: its subclaims; none where it says nothing that could be verified.
        conllu: its parse, where the prompt shows one.
    """

    text: str
    claims: tuple[str, ...]
    conllu: str | None = None

    @property
    def sentence(self) -> str:
        """The marked sentence; the whole text where none is marked."""
        marked = _MARKED.search(self.text)
        return (marked.group(1) if marked else self.text).strip()


class Bank(PromptFile):
    """The examples of a file.

    An example is its text, on one line or more, then its claims behind ``- ``; a blank line ends
    it. Lines that start with ``#`` are comments.
    """

    def __init__(self, path: Path | str):
        super().__init__(path)
        lines = [line.strip() for line in self.text.splitlines() if not line.startswith("#")]
        blocks = [block.split("\n") for block in re.split(r"\n{2,}", "\n".join(lines).strip())]
        self.examples = [_example(block, self.path) for block in blocks if any(block)]

    @cached_property
    def _index(self) -> PassageIndex:
        rows = enumerate(self.examples)
        return PassageIndex([Passage(id=str(i), text=example.sentence) for i, example in rows])

    def check(self, static: int, retrieved: int) -> None:
        if min(static, retrieved) < 0:
            raise UserError("static and retrieved count examples; give 0 for none")
        if static + retrieved >= len(self.examples):
            raise UserError(
                f"{self.name}: {len(self.examples)} examples, but static + retrieved = "
                f"{static + retrieved}; one more than these is needed, for a sentence of the bank"
            )

    def choose(
        self, sentences: Sequence[str], static: int, retrieved: int
    ) -> list[tuple[Example, ...]]:
        """The examples that each sentence is shown with.

        Args:
            sentences: to be decomposed.
            static: the first ones of the bank, for every sentence.
            retrieved: the nearest of the others by BM25, best first; where too few share a word
                with the sentence, the next ones of the bank.

        Returns:
            ``static + retrieved`` examples a sentence, static ones first. A sentence is never
            shown with itself.
        """
        self.check(static, retrieved)
        if not retrieved:
            hits: list[list[Passage]] = [[] for _ in sentences]
        else:
            hits = self._index.search(list(sentences), len(self.examples))
        return [
            self._chosen(sentence, [int(hit.id) for hit in own], static, retrieved)
            for sentence, own in zip(sentences, hits, strict=True)
        ]

    def _chosen(
        self, sentence: str, near: Sequence[int], static: int, retrieved: int
    ) -> tuple[Example, ...]:
        usable = [i for i, e in enumerate(self.examples) if e.sentence != sentence.strip()]
        first, rest = usable[:static], usable[static:]
        best = list(dict.fromkeys([i for i in near if i in rest] + rest))[:retrieved]
        return tuple(self.examples[i] for i in [*first, *best])


def _example(block: Sequence[str], path: Path) -> Example:
    text = "\n".join(line for line in block if not line.startswith("- "))
    if not text:
        raise UserError(f"{path}: claims without a sentence before them: {block[0]}")
    return Example(text, tuple(line[2:].strip() for line in block if line.startswith("- ")))
