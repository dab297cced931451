"""Who makes a supported subclaim false: the contract, and a prompted model.

The rule-based corrupter, which needs no model, is ``swap.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from components.sentences import split_sentences
from data_builders.written.adversarial import names_topic, paragraph, prompt_of
from eval.models.chat import Answer, Writer
from records import Document
from records.abstention import responds

NOTHING = "nothing to change"
# A change of one detail leaves the claim about as long as it was.
LONGEST = 2.0

_WORD = re.compile(r"\w+")
_LABEL = re.compile(r"(?i)^(changed|false|corrupted|new|answer|output)( sentence| claim)?\s*:\s*")


class ToChange(NamedTuple):
    """A supported subclaim that is to be made false.

    Attributes:
        key: of the claim in its dataset; random choices depend on it and the seed alone.
        topic: whom or what the document is about.
        text: the claim.
        person: IRI of the topic in the knowledge base, where its document says so.
    """

    key: str
    topic: str
    text: str
    person: str | None = None


@dataclass(frozen=True)
class Change:
    """What became of a claim.

    Attributes:
        text: the false claim; ``None`` where it could not be made.
        reason: why not, in a few words that are counted.
        kind: what was changed, e.g. ``P106``; of a rule.
        old, new: the words that were exchanged; of a rule.
    """

    text: str | None = None
    reason: str | None = None
    kind: str | None = None
    old: str | None = None
    new: str | None = None


class Corrupter(Protocol):
    """Makes claims false.

    ``identity`` holds everything that decides the changes; ``source`` says who made them, e.g.
    ``rule: another value``.
    """

    identity: dict[str, Any]
    source: str

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        """One change a claim, in order."""


class PromptedCorrupter:
    """A language model changes one detail of each claim (Core, appendix B.2).

    Args:
        writer: the language model, by ``class_path``.
        prompt: file with the fields ``topic`` and ``claim``, or the name of a shipped one:
            ``corrupt``, or as Core's paper words it, without demonstrations, ``core_corrupt``.
        temperature: of sampling.
        top_p: share of probability of the nucleus.
        max_new_tokens: most tokens of a claim.
    """

    def __init__(
        self,
        writer: Writer,
        prompt: Path | str = "corrupt",
        temperature: float = 0.7,
        top_p: float = 0.95,
        max_new_tokens: int = 64,
    ):
        self.writer = writer
        self.prompt = prompt_of(prompt)
        self.sampling = {
            "temperature": temperature,
            "top_p": top_p,
            "max_new_tokens": max_new_tokens,
        }

    @property
    def identity(self) -> dict[str, Any]:
        """The model, the prompt and the sampling."""
        return {
            "corrupter": "prompted",
            "writer": self.writer.identity,
            "prompt": self.prompt.sha256,
            **self.sampling,
        }

    @property
    def source(self) -> str:
        """The model's name."""
        return f"prompted: {self.writer.identity.get('model')}"

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        """One change a claim; an answer that is no changed claim is none."""
        prompts = [self.prompt.messages(topic=c.topic, claim=c.text) for c in claims]
        answers = self.writer.answer(prompts, seed=seed, **self.sampling)
        return [read_change(c, *own) for c, own in zip(claims, answers, strict=True)]


def read_change(claim: ToChange, answer: Answer) -> Change:
    """The changed claim in a model's answer, or why there is none."""
    if answer.failed is not None:
        return Change(reason=answer.failed)
    lines = [line.strip() for line in paragraph_lines(answer.text)]
    text = _LABEL.sub("", lines[0]).strip("\"“”'` ") if lines else ""
    if not responds(Document(id="x", topic=claim.topic, text=text)):
        return Change(reason="refused in words")
    if len(split_sentences(text)) != 1 or len(text.split()) > LONGEST * len(claim.text.split()) + 3:
        return Change(reason="no single sentence")
    if _words(text) == _words(claim.text):
        return Change(reason="the claim as it was")
    if names_topic(claim.text, claim.topic) and not names_topic(text, claim.topic):
        return Change(reason="another topic")
    return Change(text=text if text[-1] in ".!?" else f"{text}.")


def paragraph_lines(answer: str) -> list[str]:
    """The lines of an answer that say something, each without a list's mark."""
    found = (paragraph(line) for line in answer.splitlines())
    return [line for line in found if line and not line.endswith(":")]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
