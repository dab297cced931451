"""Who makes a supported subclaim false: the contract, and a prompted model.

The rule-based corrupter, which needs no model, is ``swap.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from components.sentences import split_sentences
from data_builders.written.adversarial import PROMPTS, names_topic, paragraph
from data_builders.written.claims.labelled import Source
from eval.models.chat import Answer, Writer
from eval.prompting.prompts import Prompt
from eval.stages import EntailmentModel, entails
from records import Document
from records.abstention import responds

NOTHING_TO_CHANGE = "nothing to change"
# Reasons for which a change was made and is none: what it says is true, or may be.
STILL_TRUE = "still true: "
# A change of one detail leaves the claim about as long as it was.
MAX_LENGTH_RATIO = 2.0

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
        refused: what was proposed and is not false.
    """

    text: str | None = None
    reason: str | None = None
    kind: str | None = None
    old: str | None = None
    new: str | None = None
    refused: str | None = None

    def but(self, why: str) -> Change:
        """The same as a change that is none, since what it says is true."""
        return Change(reason=STILL_TRUE + why, refused=self.text)


class Corrupter(Protocol):
    """Makes claims false.

    ``identity`` holds everything that decides the changes; ``source`` says who made them, e.g.
    ``rule: another value``.
    """

    identity: dict[str, Any]
    source: str

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        """One change a claim, in order."""


class Knowledge(Protocol):
    """Knows what is true of a topic, e.g. ``ValueSwap``."""

    identity: dict[str, Any]

    def still_true(self, claims: Sequence[ToChange], changed: Sequence[str]) -> list[bool]:
        """Whether what is new in each changed claim is true of its topic as well."""


class PromptedCorrupter:
    """A language model changes one detail of each claim (Core, appendix B.2).

    Temperature, length and, without a ``domain``, the prompt are the published ones; the model was
    gpt-3.5-turbo-0125.

    Args:
        writer: the language model, by ``class_path``.
        prompt: file with the fields ``claim``, ``topic`` and ``domain``; null takes a shipped one.
        domain: what the topics are: ``person``, ``place``, ``film`` or another word; the prompt
            then names it and shows examples, which smaller models need. Null takes the published
            prompt, without examples and for any domain.
        temperature: of sampling; 0 takes the likeliest token.
        top_p: share of probability of the nucleus.
        max_new_tokens: most tokens of a claim.
        knowledge: refuses changes that its knowledge base holds to be true, e.g. ``ValueSwap``.
    """

    def __init__(
        self,
        writer: Writer,
        prompt: Path | None = None,
        domain: str | None = None,
        temperature: float = 0.0,
        top_p: float = 0.95,
        max_new_tokens: int = 128,
        knowledge: Knowledge | None = None,
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
        self.knowledge = knowledge

    @property
    def identity(self) -> dict[str, Any]:
        """The model, the prompt, the sampling and who checks."""
        return {
            "corrupter": "prompted",
            "writer": self.writer.identity,
            "prompt": self.prompt.sha256,
            "domain": self.domain,
            "knowledge": self.knowledge and self.knowledge.identity,
            **self.sampling,
        }

    @property
    def source(self) -> str:
        """The model's name."""
        return f"prompted: {self.writer.identity.get('model')}"

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        """One change a claim; an answer that is no changed claim is none."""
        prompts = [
            self.prompt.messages(topic=c.topic, claim=c.text, domain=self.domain or "")
            for c in claims
        ]
        answers = self.writer.answer(prompts, seed=seed, **self.sampling)
        changes = [read_change(c, *own) for c, own in zip(claims, answers, strict=True)]
        if self.knowledge is None:
            return changes
        made = [place for place, change in enumerate(changes) if change.text is not None]
        refused = self.knowledge.still_true(
            [claims[place] for place in made], [changes[place].text for place in made]
        )
        for place, true in zip(made, refused, strict=True):
            if true:
                changes[place] = changes[place].but("the knowledge base holds it")
        return changes


def read_change(claim: ToChange, answer: Answer) -> Change:
    """The changed claim in a model's answer, or why there is none."""
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
    """The lines of an answer that say something, each without a list's mark."""
    found = (paragraph(line) for line in answer.splitlines())
    return [line for line in found if line and not line.endswith(":")]


def lowercase_words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return _WORD.findall(text.casefold())


STATED_BY_ANOTHER = "another supported claim says it"


ENTAILED_BY_ANOTHER = "a supported claim entails it"


UNJUDGED = "the relation model could not judge it"


def refuse_true_changes(
    sources: Sequence[Source],
    changes: Mapping[str, Mapping[str, Change]],
    entailment: EntailmentModel | None,
) -> dict[str, dict[str, Change]]:
    """Document to its changes, without those whose claim a supported one of the document says.

    Args:
        changes: document to claim to its change.
        entailment: also refuses what a supported claim entails, and what it fails to judge; without
            it the words decide.
    """
    found = {source.id: dict(changes[source.id]) for source in sources}
    for source in sources:
        supported = {tuple(lowercase_words(text)) for text in source.supported}
        for name, change in found[source.id].items():
            if change.text is not None and tuple(lowercase_words(change.text)) in supported:
                found[source.id][name] = change.but(STATED_BY_ANOTHER)
    if entailment is None:
        return found
    asked = [
        (source, name, premise)
        for source in sources
        for name, change in found[source.id].items()
        if change.text is not None
        for premise in source.supported
    ]
    pairs = [(premise, found[source.id][name].text) for source, name, premise in asked]
    table = entailment.relations(pairs) if pairs else []
    for (source, name, _), row in zip(asked, table, strict=True):
        change = found[source.id][name]
        why = UNJUDGED if np.isnan(row).any() else ENTAILED_BY_ANOTHER if entails(row) else None
        if why is not None and change.text is not None:
            found[source.id][name] = change.but(why)
    return found
