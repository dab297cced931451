"""Making supported claims false: the protocol, and a prompted language model.

``swap.py`` has the rule-based corrupter, which needs no model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from components.sentences import split_sentences
from data_builders.journal import model_name
from data_builders.written.adversarial import PROMPTS, names_topic, paragraph
from data_builders.written.claims.labelled import Source
from eval.models.chat import Answer, Writer
from eval.prompting.prompts import Prompt
from eval.stages import EntailmentModel, entails
from records import Document
from records.abstention import responds

NOTHING_TO_CHANGE = "nothing to change"
# Prefix of the reasons of refused changes: the changed claim is true, or may be.
STILL_TRUE = "still true: "
# A change of one detail hardly changes the number of words.
MAX_LENGTH_RATIO = 2.0

_WORD = re.compile(r"\w+")
_LABEL = re.compile(r"(?i)^(changed|false|corrupted|new|answer|output)( sentence| claim)?\s*:\s*")


class ToChange(NamedTuple):
    """A supported subclaim that is to be made false."""

    key: str  # of the claim in its dataset; random choices depend only on it and the seed
    topic: str
    text: str


@dataclass(frozen=True)
class Change:
    """The result of changing a claim."""

    text: str | None = None  # the false claim
    reason: str | None = None  # why there is none; the builder counts these reasons
    kind: str | None = None  # what a rule changed, e.g. ``P106``
    old: str | None = None  # the words that a rule replaced, and their replacement
    new: str | None = None
    refused: str | None = None  # a proposed claim that is not false

    def refuse(self, why: str) -> Change:
        """Mark the change as refused because the claim is still true."""
        return Change(reason=STILL_TRUE + why, refused=self.text)


class Corrupter(Protocol):
    """Makes claims false.

    ``source`` names the origin of the changes in the dataset, e.g. ``rule: another value``.
    """

    source: str

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        """Return one change per claim, in order."""


class PromptedCorrupter:
    """A language model changes one detail of each claim (Core, appendix B.2).

    Temperature, length and, without a ``domain``, the prompt are the published ones. The paper's
    model was gpt-3.5-turbo-0125.

    Args:
        writer: the language model, by ``class_path``.
        prompt: prompt file with the fields ``claim``, ``topic`` and ``domain``; null for a shipped
            prompt.
        domain: kind of topic: ``person``, ``place``, ``film`` or another word; the prompt then
            names it and shows examples, which smaller models need. Null for the published prompt,
            which has no examples and fits any domain.
        temperature: sampling temperature; 0 for greedy decoding.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum number of tokens per claim.
    """

    def __init__(
        self,
        writer: Writer,
        prompt: Path | None = None,
        domain: str | None = None,
        temperature: float = 0.0,
        top_p: float = 0.95,
        max_new_tokens: int = 128,
    ):
        self.writer = writer
        shipped = "corrupt.jinja" if domain is None else "corrupt_shown.jinja"
        self.prompt = Prompt(prompt or PROMPTS / shipped)
        self.domain = domain
        self.sampling = {
            "temperature": temperature,
            "top_p": top_p,
            "max_new_tokens": max_new_tokens,
        }

    @property
    def identity(self) -> dict[str, Any]:
        """The model, the prompt and the sampling."""
        return {
            "writer": self.writer,
            "prompt": self.prompt,
            "domain": self.domain,
            **self.sampling,
        }

    @property
    def source(self) -> str:
        """The model's name."""
        return f"prompted: {model_name(self.writer)}"

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        """Return one change per claim; an unusable answer gives a change without text."""
        prompts = [
            self.prompt.messages(topic=c.topic, claim=c.text, domain=self.domain or "")
            for c in claims
        ]
        answers = self.writer.answer(prompts, seed=seed, **self.sampling)
        return [read_change(c, *texts) for c, texts in zip(claims, answers, strict=True)]


def read_change(claim: ToChange, answer: Answer) -> Change:
    """Read the changed claim out of a model's answer, or the reason why there is none."""
    if answer.failed is not None:
        return Change(reason=answer.failed)
    lines = [line.strip() for line in paragraph_lines(answer.text)]
    text = _LABEL.sub("", lines[0]).strip("\"“”'` ") if lines else ""
    if not responds(Document(id="x", topic=claim.topic, text=text)):
        return Change(reason="refused in words")
    if (
        len(split_sentences(text)) != 1
        or len(text.split()) > MAX_LENGTH_RATIO * len(claim.text.split()) + 3
    ):
        return Change(reason="no single sentence")
    if lowercase_words(text) == lowercase_words(claim.text):
        return Change(reason="the claim as it was")
    if names_topic(claim.text, claim.topic) and not names_topic(text, claim.topic):
        return Change(reason="another topic")
    return Change(text=text if text[-1] in ".!?" else f"{text}.")


def paragraph_lines(answer: str) -> list[str]:
    """Return the non-empty lines of an answer without list markers and headings."""
    lines = (paragraph(line) for line in answer.splitlines())
    return [line for line in lines if line and not line.endswith(":")]


def lowercase_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


STATED_BY_ANOTHER = "another supported claim says it"
ENTAILED_BY_ANOTHER = "a supported claim entails it"
UNJUDGED = "the relation model could not judge it"


def refuse_true_changes(
    sources: Sequence[Source],
    changes: Mapping[str, Mapping[str, Change]],
    entailment: EntailmentModel | None,
) -> dict[str, dict[str, Change]]:
    """Refuse changes whose claim another supported claim of the document states.

    ``changes`` maps document ids to claim ids to changes. With ``entailment`` also refuse claims
    that a supported claim entails or that the model fails to judge.
    """
    checked = {source.id: dict(changes[source.id]) for source in sources}
    for source in sources:
        supported = {tuple(lowercase_words(text)) for text in source.supported}
        for name, change in checked[source.id].items():
            if change.text is not None and tuple(lowercase_words(change.text)) in supported:
                checked[source.id][name] = change.refuse(STATED_BY_ANOTHER)
    if entailment is None:
        return checked
    candidates = [
        (source.id, name, (premise, change.text))
        for source in sources
        for name, change in checked[source.id].items()
        if change.text is not None
        for premise in source.supported
    ]
    table = entailment.relations([pair for *_, pair in candidates]) if candidates else []
    for (document, name, _), row in zip(candidates, table, strict=True):
        change = checked[document][name]
        why = UNJUDGED if np.isnan(row).any() else ENTAILED_BY_ANOTHER if entails(row) else None
        if why is not None and change.text is not None:
            checked[document][name] = change.refuse(why)
    return checked
