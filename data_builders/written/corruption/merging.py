"""Merging claims into a text: one after the other, or by a language model that must keep all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from components.english import content_stems, has_negation
from components.sentences import split_sentences
from data_builders.written.adversarial import PROMPTS, names_topic, paragraph
from data_builders.written.claims.clauses import as_sentence
from data_builders.written.claims.validity import names_and_numbers
from eval.models.chat import Answer, Message, Writer
from eval.prompting.prompts import Prompt
from eval.stages import EntailmentModel, entails
from records import Document
from records.abstention import responds

# A sentence contains a claim if it has this share of its words, and its names, numbers, changes.
MIN_SHARED_WORDS = 0.6


class ToMerge(NamedTuple):
    """The claims of a text, and the same claims before some were made false."""

    topic: str
    claims: Sequence[str]
    originals: Sequence[str]


@dataclass
class Merged:
    """A text made of claims."""

    sentences: list[str]
    # Per claim: ``merged``; ``again``: merged after a retry; ``appended``: lost by each try;
    # ``lost``: not in the text, which is kept if there are no retries; ``listed``: not merged.
    how: list[str] = field(default_factory=list)
    failed: str | None = None  # why there is no merged text


def list_claims(claims: Sequence[str], failed: str | None = None) -> Merged:
    """Write the claims one after the other."""
    return Merged([as_sentence(text) for text in claims], ["listed"] * len(claims), failed)


@dataclass
class Merger:
    """Merges claims with a language model, and retries claims that the text lost."""

    writer: Writer
    prompt: Prompt  # with the fields ``topic``, ``claims`` and ``instruction``
    instruction: str  # the question that the text answers, a template with ``{topic}``
    sampling: Mapping[str, object]  # keyword arguments of ``Writer.answer``
    retries: int
    entailment: EntailmentModel | None  # decides which claims a sentence contains; else its words

    @cached_property
    def _prompt_again(self) -> Prompt:
        return Prompt(PROMPTS / "merge_again.jinja")

    def merge(self, batch: Sequence[ToMerge]) -> list[Merged]:
        """Return one text per item, with all its claims."""
        chats = [self._first_prompt(item) for item in batch]
        best: list[Merged | None] = [None] * len(batch)
        failures: list[str | None] = [None] * len(batch)
        # Per claim, whether the best text so far contains it.
        contained: list[list[bool]] = [[False] * len(item.claims) for item in batch]
        todo = list(range(len(batch)))
        for turn in range(self.retries + 1):
            answers = self.writer.answer([chats[i] for i in todo], **self.sampling)
            texts = [
                self._read(batch[i].topic, answer)
                for i, (answer,) in zip(todo, answers, strict=True)
            ]
            found_claims = self._find_claims(
                [batch[i] for i in todo], [sentences for sentences, _ in texts]
            )
            incomplete = []
            for i, (sentences, failed), new in zip(todo, texts, found_claims, strict=True):
                if failed is not None:
                    failures[i] = failed
                    continue  # a retry would send the same prompt
                if best[i] is None or sum(new) > sum(contained[i]):
                    how = "again" if turn else "merged"
                    before = best[i].how if best[i] else [how] * len(new)
                    hows = [b if had else how for b, had in zip(before, contained[i], strict=True)]
                    best[i], contained[i] = Merged(sentences, hows), new
                if not all(contained[i]):
                    chats[i] = self._retry_prompt(chats[i], batch[i], sentences, new)
                    incomplete.append(i)
            todo = incomplete
            if not todo:
                break
        return [
            list_claims(item.claims, failures[i])
            if best[i] is None
            else _append_lost(item, best[i], contained[i], self.retries > 0)
            for i, item in enumerate(batch)
        ]

    def _first_prompt(self, item: ToMerge) -> list[Message]:
        instruction = self.instruction.replace("{topic}", item.topic)
        return self.prompt.messages(topic=item.topic, claims=item.claims, instruction=instruction)

    def _retry_prompt(
        self, chat: list[Message], item: ToMerge, sentences: Sequence[str], kept: Sequence[bool]
    ) -> list[Message]:
        lost = [claim for claim, is_kept in zip(item.claims, kept, strict=True) if not is_kept]
        messages = self._prompt_again.messages(topic=item.topic, claims=lost)
        first = chat[: len(self._first_prompt(item))]
        return [*first, {"role": "assistant", "content": " ".join(sentences)}, *messages]

    def _read(self, topic: str, answer: Answer) -> tuple[list[str], str | None]:
        text, failed = paragraph(answer.text), answer.failed
        if failed is None and not responds(Document(id="x", topic=topic, text=text)):
            failed = "refused in words"
        return ([] if failed else split_sentences(text)), failed

    def _find_claims(
        self, batch: Sequence[ToMerge], texts: Sequence[Sequence[str]]
    ) -> list[list[bool]]:
        if self.entailment is None:
            return [find_claims(*pair) for pair in zip(batch, texts, strict=True)]
        pairs = [
            (s if names_topic(s, item.topic) else f"{item.topic}. {s}", claim)
            for item, sentences in zip(batch, texts, strict=True)
            for claim in item.claims
            for s in sentences
        ]
        entailed = iter(entails(self.entailment.relations(pairs)) if pairs else np.array([]))
        return [
            [any([next(entailed) for _ in sentences]) for _ in item.claims]
            for item, sentences in zip(batch, texts, strict=True)
        ]


def _append_lost(item: ToMerge, text: Merged, kept: Sequence[bool], append: bool) -> Merged:
    state = "appended" if append else "lost"
    how = [h if is_kept else state for h, is_kept in zip(text.how, kept, strict=True)]
    if not append:
        return Merged(text.sentences, how)
    lost = [claim for claim, is_kept in zip(item.claims, kept, strict=True) if not is_kept]
    return Merged([*text.sentences, *map(as_sentence, dict.fromkeys(lost))], how)


def find_claims(item: ToMerge, sentences: Sequence[str]) -> list[bool]:
    """Return per claim whether one sentence has its words, apart from those of the topic's name."""
    sentence_stems = [content_stems(sentence) for sentence in sentences]
    topic = content_stems(item.topic)
    results = []
    for claim, original in zip(item.claims, item.originals, strict=True):
        words = content_stems(claim) - topic
        details = content_stems(" ".join(names_and_numbers(claim))) - topic
        details |= words - content_stems(original)
        negated = has_negation(claim)
        results.append(
            any(
                details <= present
                and len(words & present) >= MIN_SHARED_WORDS * len(words)
                and negated == has_negation(sentence)
                for sentence, present in zip(sentences, sentence_stems, strict=True)
            )
        )
    return results


def locate_claims(claims: Sequence[str], sentences: Sequence[str]) -> list[int]:
    """Return per claim the first sentence that has most of its words."""
    sentence_stems = [content_stems(sentence) for sentence in sentences]
    shared = [
        [len(content_stems(claim) & present) for present in sentence_stems] for claim in claims
    ]
    return [counts.index(max(counts)) for counts in shared]
