"""``adversarial``: uninformative and repetitive texts written by a prompted language model.

Core (arXiv 2407.03572, section 5.1 and appendix B.3) attacks factual precision with statements
that are true of anyone ("info") and with texts that repeat one statement ("repetitive"). They train
the LoRA adversaries and are inputs of the robustness experiments.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from components.encoding import fill_prompt
from components.sentences import split_sentences
from components.words import name_key
from data_builders.builder import Builder, Made, Step, Work, option_errors
from data_builders.dataset import read_card
from data_builders.journal import model_name, write_texts
from data_builders.sampled import sampling_of
from data_builders.splits import SPLITS, by_split
from data_builders.topics import Stratum, Topics, split_topics
from eval.models.chat import Answer, Writer
from eval.prompting.prompts import Prompt
from records import Document, Generation, UserError
from records.abstention import responds

PROMPTS = Path(__file__).parent / "prompts"
KINDS = ("info", "repetitive")

# A further example that the model appended, an opening ("Sure, here it is:"), list markers.
_NEXT = re.compile(r"\n[^\S\n]*(Person|Name|User|Assistant)\s*:.*", re.DOTALL)
_OPENING = re.compile(r"(?i)^(sure|certainly|of course|okay|ok|here)\b[^\n]*[:!]\s*\n+")
_MARK = re.compile(r"(?m)^[^\S\n]*(?:[-*•]|\d+[.)])\s+")
_WORD = re.compile(r"\w+")


@dataclass
class Adversarial(Builder):
    """Uninformative and repetitive texts on topics, written by a prompted language model.

    Args:
        topics: files of records with ``topic``, or ``.txt`` files with one topic per line; or
            ``{train: [files], dev: [files], test: [files]}`` to keep existing splits.
        writer: the language model, by ``class_path``.
        prompts: kind of text to a prompt file with the field ``topic``, or to a shipped prompt:
            ``info``, ``repetitive``, or Core's wording (``core_info``, ``core_repetitive``), all
            about people; its wording for others ends in ``_place``, ``_work`` or ``_question``.
            Default: ``info`` and ``repetitive``.
        subject: what a prompt names, e.g. ``{topic} in {group}`` for topics with a group.
        per_topic: texts per topic and kind.
        temperature: sampling temperature.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum tokens per text.
        least_sentences: skip texts with fewer sentences.
        shares: ratio of train, dev and test topics, if ``topics`` has no splits.
    """

    topics: list[str] | dict[str, list[str]]
    writer: Writer
    prompts: dict[str, str] | None = None
    subject: str = "{topic}"
    per_topic: int = 5
    temperature: float = 1.0
    top_p: float = 0.95
    max_new_tokens: int = 256
    least_sentences: int = 3
    shares: tuple[int, int, int] = (8, 1, 1)

    reads = ("topics",)
    least: ClassVar = {
        **dict.fromkeys(("per_topic", "max_new_tokens", "least_sentences", "shares"), 1),
        "temperature": 0,
    }
    probabilities = ("top_p",)

    def faults(self) -> Iterable[str]:
        return option_errors(lambda: self._prompts)

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: by_split(kind) for kind in self._prompts}

    def plan(self) -> list[Step]:
        number = sum(len(topics) for topics in self._topics().values()) * self.per_topic
        model = model_name(self.writer)
        return [Step(f"{kind} texts", model, number, "texts") for kind in self._prompts]

    def config(self) -> dict[str, object]:
        return super().config() | {"prompts": {k: p.sha256 for k, p in self._prompts.items()}}

    @cached_property
    def _prompts(self) -> dict[str, Prompt]:
        paths = {kind: kind for kind in KINDS} if self.prompts is None else self.prompts
        if not paths or not all(re.fullmatch(r"\w+", kind) for kind in paths):
            raise UserError(
                "prompts: expected at least one kind (letters, digits and _) with its file"
            )
        return {kind: load_prompt(path) for kind, path in paths.items()}

    def make(self, work: Work) -> Made:
        topics = self._topics()
        files: dict[str, list[Generation]] = {}
        figures = {}
        for kind, prompt in self._prompts.items():
            answers = self._answers(kind, prompt, topics, work)
            for split, strata in topics.items():
                texts = [
                    (topic, text)
                    for topic in strata
                    for text in filter_texts(
                        kind, topic, answers[topic], self.least_sentences, work.dropped
                    )
                ]
                name = f"{kind}_{split}.jsonl"
                files[name] = [self._record(kind, t, strata[t], text) for t, text in texts]
                figures[name] = statistics(texts)
            if not any(files[f"{kind}_{split}.jsonl"] for split in SPLITS):
                raise UserError(
                    f"no valid {kind} text ({work.dropped_summary()}); use another model or prompt"
                )
        return Made(
            files,
            read_card("adversarial"),
            {"statistics.json": json.dumps(figures, indent=2) + "\n"},
        )

    def _answers(
        self, kind: str, prompt: Prompt, topics: Mapping[str, Topics], work: Work
    ) -> dict[str, list[Answer]]:
        sampling = sampling_of(self, self.per_topic)
        prompts = {
            topic: prompt.messages(topic=self._subject_of(topic, stratum))
            for strata in topics.values()
            for topic, stratum in strata.items()
        }
        journal = work.journal(kind, self.writer, prompt.sha256, self.subject, sampling)
        return write_texts(self.writer, prompts, sampling, journal)

    def _subject_of(self, topic: str, stratum: Stratum) -> str:
        if "{group}" in self.subject and stratum.group is None:
            raise UserError(f"subject: {topic} has no group; remove {{group}} or the topic")
        return fill_prompt(self.subject, topic=topic, **stratum.as_fields())

    def _topics(self) -> dict[str, Topics]:
        topics = split_topics(self.topics, self.shares, self.seed)
        return {split: dict(list(strata.items())[: self.limit]) for split, strata in topics.items()}

    def _record(self, kind: str, topic: str, stratum: Stratum, text: str) -> Generation:
        name = model_name(self.writer)
        fields = {"kind": kind, "generator": name} | stratum.as_fields()
        return Generation(topic=topic, text=text, **fields)


def load_prompt(path: str | Path) -> Prompt:
    """Load a prompt file, or a shipped prompt if the path is a single word."""
    shipped = PROMPTS / f"{path}.jinja"
    return Prompt(shipped if re.fullmatch(r"\w+", str(path)) else path)


def filter_texts(
    kind: str, topic: str, answers: Sequence[Answer], least: int, dropped: Counter[str]
) -> Iterator[str]:
    """Yield the valid texts among a topic's answers; count the others by reason."""
    seen: set[str] = set()
    for answer in answers:
        text = paragraph(answer.text)
        if answer.failed is not None:
            reason = answer.failed
        elif not responds(Document(id="x", topic=topic, text=text)):
            reason = "refused in words"
        elif not names_topic(text, topic):
            reason = "does not name its topic"
        elif len(split_sentences(text)) < least:
            reason = "too few sentences"
        elif text in seen:
            reason = "the same text again"
        else:
            seen.add(text)
            yield text
            continue
        dropped[f"{kind} text: {reason}"] += 1


def paragraph(answer: str) -> str:
    """Strip openings, list markers and further examples; join the answer to one paragraph."""
    text = _OPENING.sub("", _NEXT.sub("", answer.strip()), count=1)
    return " ".join(_MARK.sub("", text).split())


def names_topic(text: str, topic: str) -> bool:
    """Return whether the text has a word of the topic's name; initials do not count."""
    words = {word for word in _WORD.findall(name_key(topic)) if len(word) > 2}
    return bool((words or {name_key(topic)}) & set(_WORD.findall(name_key(text))))


def statistics(texts: Sequence[tuple[str, str]]) -> dict[str, float | int]:
    """Count texts, topics and sentences."""
    sentences = sum(len(split_sentences(text)) for _, text in texts)
    return {
        "texts": len(texts),
        "topics": len({topic for topic, _ in texts}),
        "sentences_a_text": round(sentences / max(1, len(texts)), 2),
    }
