"""Texts that state true sentences and mean something else, or hide falsehoods from the metric.

What such a text states is decided outside of the sentences that a metric judges. Gold counts what
a reader finds in the whole text.
"""

import random
import re

from jsonargparse.typing import PositiveInt

from data_builders.written.attacks.attack import (
    SizedAttack,
    false_versions_of,
    versions_of,
)
from data_builders.written.attacks.frames import DiscourseForm, HiddenForm, frames, hidden_forms
from data_builders.written.attacks.phrases import Bank
from data_builders.written.claims.clauses import (
    as_sentence,
    capitalise,
    clause_of,
    mid_sentence,
    name_of,
    strip_period,
)
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import (
    Attacked,
    NotApplicable,
    SentenceClaim,
    join_sentences,
)

# Falsehoods of a hidden form, by the number of statements of the text.
FALSEHOODS = 3
_VERB = re.compile(r"^(?:is|was|has|had|received|held|served as)\s+(?:been )?")


class Framed(SizedAttack):
    """True statements in a text that takes them back: no fact is stated of the topic.

    Args:
        form: a sentence ``before`` or ``after`` the statements, a ``heading``, another person to
            whom a ``pronoun`` refers, a question that is ``answered``, or a statement that is
            ``retracted``.
        bank: ``seen`` (may be trained on) or ``unseen`` (only reported).
        sentences: maximum number of statements; by default that of the document's claims.
    """

    family = "discourse"

    def __init__(self, form: DiscourseForm, bank: Bank, sentences: PositiveInt | None = None):
        super().__init__(sentences)
        self.form, self.bank = form, bank

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        true = [rng.choice(versions_of(c)) for c in source.claims if c.label == "S"]
        if not true:
            raise NotApplicable("no supported claim")
        texts = rng.sample(true, min(len(true), self.length(source)))
        framed, body = frame_statements(self.form, self.bank, texts, name_of(source.topic), rng)
        statements = join_sentences([SentenceClaim(text, "NS") for text in framed])
        return Attacked(body, statements.claims)


class Hidden(SizedAttack):
    """True statements and three times as many falsehoods in a form that a metric may not judge.

    Args:
        form: the form of the falsehoods.
        bank: ``seen`` (may be trained on) or ``unseen`` (only reported).
        sentences: maximum number of true statements; by default that of the document's claims.
    """

    family = "hidden"

    def __init__(self, form: HiddenForm, bank: Bank, sentences: PositiveInt | None = None):
        super().__init__(sentences)
        self.form, self.bank = form, bank

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        true = [claim for claim in source.claims if claim.label == "S"]
        true = rng.sample(true, min(len(true), self.length(source)))
        form = {"start": "", "end": "", "between": "\n"}
        form |= rng.choice(hidden_forms(self.form, self.bank))
        name = name_of(source.topic)
        versions = sorted({text for claim in source.claims for text in false_versions_of(claim)})
        # Gold counts falsehoods, so only those that the text can state are drawn.
        fitting = [text for text in versions if _fill(form["row"], text, name) is not None]
        falsehoods = rng.sample(fitting, min(len(fitting), FALSEHOODS * len(true)))
        rows = [_fill(form["row"], text, name, n + 1) for n, text in enumerate(falsehoods)]
        if not true or not rows:
            raise NotApplicable("no true claims, or no false versions that fit the form")
        stated = [SentenceClaim(rng.choice(versions_of(c)), "S", (c.id,)) for c in true]
        claims = join_sentences([*stated, *(SentenceClaim(t, "NS") for t in falsehoods)]).claims
        body = join_sentences(stated).text
        if self.form == "run_on":
            start = form["start"].format(X=name)
            hidden = as_sentence(capitalise(f"{start} {form['between'].join(rows)}".strip()))
            return Attacked(f"{body} {hidden}", claims)
        parts = [form["start"], form["between"].join(rows), form["end"]]
        return Attacked("\n\n".join([body, "\n".join(filter(None, parts))]), claims)


def frame_statements(
    form: DiscourseForm, bank: str, texts: list[str], name: str, rng: random.Random
) -> tuple[list[str], str]:
    """The statements as the text has them, and the text, in a frame of a bank."""
    templates = frames("discourse", bank, form)
    frame = rng.choice(templates)
    if form in ("answered", "retracted"):
        texts = [_fill(rng.choice(templates), text, name) for text in texts]
    elif form == "pronoun":
        pronoun, _, frame = frame.partition(" | ")
        texts = [with_pronoun(text, name, pronoun) for text in texts]
    body = join_sentences([SentenceClaim(text, "NS") for text in texts]).text
    match form:
        case "before" | "pronoun":
            body = f"{frame.format(X=name)} {body}"
        case "after":
            body = f"{body} {frame}"
        case "heading":
            lines = [f"- {as_sentence(text)}" for text in texts]
            body = "\n".join([frame.format(X=name), "", *lines])
    return texts, body


def with_pronoun(text: str, name: str, pronoun: str) -> str:
    """Replace the name at the start of a statement by a pronoun, ``He`` or ``She``."""
    possessive = {"He": "His", "She": "Her"}[pronoun]
    text = re.sub(rf"^{re.escape(name)}(?:['’]s|['’])(?= )", possessive, text)
    return re.sub(rf"^{re.escape(name)}\b", pronoun, text)


def _fill(template: str, text: str, name: str, number: int = 0) -> str | None:
    """Put a statement into a form; ``None`` if the form needs a clause about the topic."""
    text = strip_period(text)
    clause = clause_of(text, name)
    if clause is None and re.search(r"\{(?:rest|v)\}", template):
        return None
    slots = {"X": name, "n": number, "p": mid_sentence(text), "P": text}
    if clause is not None:
        slots |= {"rest": clause.rest, "v": _VERB.sub("", clause.rest)}
    return template.format(**slots)
