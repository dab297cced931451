"""Banks of in-context examples: sentences with their decompositions."""

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
    """A sentence, or a window with the sentence in ``<SOS>…<EOS>``, its subclaims and its parse."""

    text: str
    claims: tuple[str, ...]
    conllu: str | None = None

    @property
    def sentence(self) -> str:
        """The marked sentence, or the whole text if none is marked."""
        marked = _MARKED.search(self.text)
        return (marked.group(1) if marked else self.text).strip()


class Bank(PromptFile):
    """The examples of a file.

    An example is one or more lines of text, then one claim per line after ``- ``. Blank lines
    separate examples; lines that start with ``#`` are comments.
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
            raise UserError("static and retrieved: expected at least 0")
        if static + retrieved > len(self.examples):
            raise UserError(
                f"{self.name}: {len(self.examples)} examples, but static + retrieved = "
                f"{static + retrieved}"
            )

    def choose(
        self, sentences: Sequence[str], static: int, retrieved: int, from_all: bool = False
    ) -> list[tuple[Example, ...]]:
        """Choose the in-context examples of each sentence, without the sentence itself.

        Returns:
            Per sentence the ``static`` first examples of the bank and the ``retrieved`` nearest
            others (``from_all``: of all) by BM25, best first, filled up with the next ones of the
            bank.
        """
        self.check(static, retrieved)
        if not retrieved:
            hits: list[list[Passage]] = [[] for _ in sentences]
        else:
            hits = self._index.search(list(sentences), len(self.examples))
        return [
            self._chosen(sentence, [int(hit.id) for hit in nearest], static, retrieved, from_all)
            for sentence, nearest in zip(sentences, hits, strict=True)
        ]

    def _chosen(
        self, sentence: str, near: Sequence[int], static: int, retrieved: int, from_all: bool
    ) -> tuple[Example, ...]:
        usable = [i for i, e in enumerate(self.examples) if e.sentence != sentence.strip()]
        first, rest = usable[:static], usable if from_all else usable[static:]
        best = list(dict.fromkeys([i for i in near if i in rest] + rest))[:retrieved]
        return tuple(self.examples[i] for i in [*first, *best])


def _example(block: Sequence[str], path: Path) -> Example:
    texts = [line for line in block if not line.startswith("- ")]
    claims = block[len(texts) :]
    if not texts or not all(line.startswith("- ") for line in claims):
        raise UserError(
            f"{path}: {block[0]!r}: expected a sentence, then its claims after `- `; separate "
            "examples by a blank line"
        )
    return Example("\n".join(texts), tuple(line[2:].strip() for line in claims))
