"""Claims to a text: one after the other, or merged by a language model that may lose none."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from components.sentences import split_sentences
from data_builders.journal import identity_of
from data_builders.written.adversarial import PROMPTS, names_topic, paragraph
from data_builders.written.claims.clauses import as_sentence, has_negation, stems
from eval.models.chat import Answer, Message, Writer
from eval.prompting.prompts import Prompt
from eval.stages import EntailmentModel, entails
from records import Document
from records.abstention import responds

# A sentence holds a claim if it has this share of its words, and its names, numbers and changes.
MIN_SHARED_WORDS = 0.6

_WORD = re.compile(r"\w+")
_DETAIL = re.compile(r"(?<=\S )[A-Z]\w+|\w*\d\w*")


class ToMerge(NamedTuple):
    """The claims of a text.

    Attributes:
        topic: whom or what they are about.
        claims: as they are to stand in the text.
        originals: the same before they were made false.
    """

    topic: str
    claims: Sequence[str]
    originals: Sequence[str]


@dataclass
class Merged:
    """A text made of claims.

    Attributes:
        sentences: of the text.
        how: of each claim: ``merged``; ``again``, where it was lost first; ``appended`` behind the
            text, where it was lost every time; ``listed``, where there is no merged text.
        failed: why the model gave no text.
    """

    sentences: list[str]
    how: list[str] = field(default_factory=list)
    failed: str | None = None

    def row(self) -> dict[str, Any]:
        """For the journal."""
        return asdict(self)


def list_claims(claims: Sequence[str], failed: str | None = None) -> Merged:
    """The claims one after the other."""
    return Merged([as_sentence(text) for text in claims], ["listed"] * len(claims), failed)


@dataclass
class Merger:
    """A language model merges claims, and is asked again for those that it lost.

    Attributes:
        writer: the language model.
        prompt: of the text, with the fields ``topic``, ``claims`` and ``instruction``.
        instruction: what the text answers, a template with ``{topic}``.
        sampling: the keywords of ``Writer.answer``.
        again: how often lost claims are asked for.
        entailment: tells whether a sentence holds a claim; without it their words do.
    """

    writer: Writer
    prompt: Prompt
    instruction: str
    sampling: Mapping[str, object]
    again: int
    entailment: EntailmentModel | None

    @cached_property
    def _prompt_again(self) -> Prompt:
        return Prompt(PROMPTS / "merge_again.jinja")

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the texts."""
        return {
            "writer": self.writer.identity,
            "prompts": [self.prompt.sha256, self._prompt_again.sha256],
            "instruction": self.instruction,
            "sampling": dict(self.sampling),
            "again": self.again,
            "entailment": identity_of(self.entailment),
        }

    def merge(self, every: Sequence[ToMerge]) -> list[Merged]:
        """One text each, with all its claims."""
        talks = [self._first(one) for one in every]
        best: list[Merged | None] = [None] * len(every)
        fails: list[str | None] = [None] * len(every)
        # Of each claim, whether the best text so far holds it.
        there: list[list[bool]] = [[False] * len(one.claims) for one in every]
        todo = list(range(len(every)))
        for turn in range(self.again + 1):
            answers = self.writer.answer([talks[place] for place in todo], **self.sampling)
            texts = [
                self._read(every[p].topic, own) for p, (own,) in zip(todo, answers, strict=True)
            ]
            found = self._held([every[p] for p in todo], [sentences for sentences, _ in texts])
            still = []
            for place, (sentences, failed), own in zip(todo, texts, found, strict=True):
                if failed is not None:
                    fails[place] = failed
                    continue  # the same again
                if best[place] is None or sum(own) > sum(there[place]):
                    how = "again" if turn else "merged"
                    before = best[place].how if best[place] else [how] * len(own)
                    new = [b if was else how for b, was in zip(before, there[place], strict=True)]
                    best[place], there[place] = Merged(sentences, new), own
                if not all(there[place]):
                    talks[place] = self._again(talks[place], every[place], sentences, own)
                    still.append(place)
            todo = still
            if not todo:
                break
        return [
            list_claims(one.claims, fails[place])
            if best[place] is None
            else _completed(one, best[place], there[place])
            for place, one in enumerate(every)
        ]

    def _first(self, one: ToMerge) -> list[Message]:
        instruction = self.instruction.replace("{topic}", one.topic)
        return self.prompt.messages(topic=one.topic, claims=one.claims, instruction=instruction)

    def _again(
        self, talk: list[Message], one: ToMerge, sentences: Sequence[str], held: Sequence[bool]
    ) -> list[Message]:
        lost = [claim for claim, there in zip(one.claims, held, strict=True) if not there]
        asked = self._prompt_again.messages(topic=one.topic, claims=lost)
        first = talk[: len(self._first(one))]
        return [*first, {"role": "assistant", "content": " ".join(sentences)}, *asked]

    def _read(self, topic: str, answer: Answer) -> tuple[list[str], str | None]:
        text, failed = paragraph(answer.text), answer.failed
        if failed is None and not responds(Document(id="x", topic=topic, text=text)):
            failed = "refused in words"
        return ([] if failed else split_sentences(text)), failed

    def _held(self, every: Sequence[ToMerge], texts: Sequence[Sequence[str]]) -> list[list[bool]]:
        if self.entailment is None:
            return [
                find_claims(one, sentences) for one, sentences in zip(every, texts, strict=True)
            ]
        pairs = [
            (s if names_topic(s, one.topic) else f"{one.topic}. {s}", claim)
            for one, sentences in zip(every, texts, strict=True)
            for claim in one.claims
            for s in sentences
        ]
        found = iter(entails(self.entailment.relations(pairs)) if pairs else np.array([]))
        return [
            [any([next(found) for _ in sentences]) for _ in one.claims]
            for one, sentences in zip(every, texts, strict=True)
        ]


def _completed(one: ToMerge, text: Merged, there: Sequence[bool]) -> Merged:
    how = [was if held else "appended" for was, held in zip(text.how, there, strict=True)]
    lost = [claim for claim, held in zip(one.claims, there, strict=True) if not held]
    return Merged([*text.sentences, *map(as_sentence, dict.fromkeys(lost))], how)


def find_claims(one: ToMerge, sentences: Sequence[str]) -> list[bool]:
    """Whether the words of a sentence hold each claim; those of the topic's name do not count."""
    told = [stems(sentence) for sentence in sentences]
    topic = stems(one.topic)
    found = []
    for claim, original in zip(one.claims, one.originals, strict=True):
        words = stems(claim) - topic
        details = set().union(*map(stems, _DETAIL.findall(claim)), words - stems(original)) - topic
        denied = has_negation(claim)
        found.append(
            any(
                details <= own
                and len(words & own) >= MIN_SHARED_WORDS * len(words)
                and denied == has_negation(sentence)
                for sentence, own in zip(sentences, told, strict=True)
            )
        )
    return found


def locate_claims(claims: Sequence[str], sentences: Sequence[str]) -> list[int]:
    """For each claim the sentence that has most of its words; of equals the first."""
    told = [stems(sentence) for sentence in sentences]
    shared = [[len(own & words) for words in told] for own in map(stems, claims)]
    return [own.index(max(own)) for own in shared]
