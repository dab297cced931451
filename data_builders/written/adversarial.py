"""``adversarial``: uninformative and repetitive texts that a prompted model writes.

Core (arXiv 2407.03572, section 5.1 and appendix B.3) attacks factual precision with texts that say
what is true of anyone ("info") and with texts that say one thing over and over ("repetitive").
They are the training data of the LoRA adversaries and the input of the robustness experiments.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from components.sentences import split_sentences
from data_builders.builder import Builder, Made, Step, Work, complaint
from data_builders.dataset import Card
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

# A model that goes on with the next example, an opening ("Sure, here it is:"), a list's marks.
_NEXT = re.compile(r"\n[^\S\n]*(Person|Name|User|Assistant)\s*:.*", re.DOTALL)
_OPENING = re.compile(r"(?i)^(sure|certainly|of course|okay|ok|here)\b[^\n]*[:!]\s*\n+")
_MARK = re.compile(r"(?m)^[^\S\n]*(?:[-*•]|\d+[.)])\s+")
_WORD = re.compile(r"\w+")
_CAPITAL = re.compile(r"(?<=[\w,;’'\"] )[A-Z]\w+")


@dataclass
class Adversarial(Builder):
    """Uninformative and repetitive texts on topics, written by a prompted model.

    Args:
        topics: files of records with ``topic``, or ``.txt`` files with a topic a line; or
            ``{train: [files], dev: [files], test: [files]}``, which keeps those splits.
        writer: the language model, by ``class_path``.
        prompts: kind to its prompt, a file with the field ``topic`` or the name of a shipped one:
            ``info`` and ``repetitive``, which null takes, or as Core's paper words them
            (``core_info``, ``core_repetitive``). All are about people.
        per_topic: texts of each kind a topic.
        temperature: of sampling.
        top_p: share of probability of the nucleus.
        max_new_tokens: most tokens of a text.
        least_sentences: a text of fewer sentences is dropped.
        shares: topics of train, dev and test, where the files have no splits.
        seed: of sampling and of the splits.
        limit: only the first so many topics of each split, for a trial.
    """

    topics: list[str] | dict[str, list[str]]
    writer: Writer
    prompts: dict[str, str] | None = None
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
        return complaint(lambda: self._prompts)

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: by_split(kind) for kind in self._prompts}

    def plan(self) -> list[Step]:
        number = sum(len(own) for own in self._topics().values()) * self.per_topic
        model = model_name(self.writer)
        return [Step(f"{kind} texts", model, number, "texts") for kind in self._prompts]

    def config(self) -> dict[str, object]:
        return super().config() | {"prompts": {k: p.sha256 for k, p in self._prompts.items()}}

    @cached_property
    def _prompts(self) -> dict[str, Prompt]:
        paths = {kind: kind for kind in KINDS} if self.prompts is None else self.prompts
        if not paths or not all(re.fullmatch(r"\w+", kind) for kind in paths):
            raise UserError("prompts: give at least one kind, of letters only, with its file")
        return {kind: prompt_of(path) for kind, path in paths.items()}

    def make(self, work: Work) -> Made:
        topics = self._topics()
        files: dict[str, list[Generation]] = {}
        figures = {}
        for kind, prompt in self._prompts.items():
            answers = self._answers(kind, prompt, topics, work)
            for split, own in topics.items():
                texts = [
                    (topic, text)
                    for topic in own
                    for text in sift(
                        kind, topic, answers[topic], self.least_sentences, work.dropped
                    )
                ]
                name = f"{kind}_{split}.jsonl"
                files[name] = [self._record(kind, topic, own[topic], text) for topic, text in texts]
                figures[name] = statistics(texts)
            if not any(files[f"{kind}_{split}.jsonl"] for split in SPLITS):
                raise UserError(
                    f"no {kind} text is left ({work.why()}); give another model or prompt"
                )
        return Made(files, CARD, {"statistics.json": json.dumps(figures, indent=2) + "\n"})

    def _answers(
        self, kind: str, prompt: Prompt, topics: Mapping[str, Topics], work: Work
    ) -> dict[str, list[Answer]]:
        sampling = sampling_of(self, self.per_topic)
        prompts = {t: prompt.messages(topic=t) for own in topics.values() for t in own}
        journal = work.journal(kind, self.writer.identity, prompt.sha256, sampling)
        return write_texts(self.writer, prompts, sampling, journal)

    def _topics(self) -> dict[str, Topics]:
        found = split_topics(self.topics, self.shares, self.seed)
        return {split: dict(list(own.items())[: self.limit]) for split, own in found.items()}

    def _record(self, kind: str, topic: str, stratum: Stratum, text: str) -> Generation:
        name = model_name(self.writer)
        return Generation(topic=topic, text=text, kind=kind, generator=name, **stratum.known())


def prompt_of(given: str | Path) -> Prompt:
    """A prompt by its file, or, where that is one word, a shipped one by its name."""
    shipped = PROMPTS / f"{given}.jinja"
    return Prompt(shipped if re.fullmatch(r"\w+", str(given)) else given)


def sift(
    kind: str, topic: str, answers: Sequence[Answer], least: int, dropped: Counter[str]
) -> Iterator[str]:
    """The texts among a topic's answers; what is none is counted with its reason."""
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
    """A model's answer as one paragraph: without an opening, a list's marks, another example."""
    text = _OPENING.sub("", _NEXT.sub("", answer.strip()), count=1)
    return " ".join(_MARK.sub("", text).split())


def names_topic(text: str, topic: str) -> bool:
    """Whether the text has a word of the topic's name; initials do not count."""
    words = {word for word in _WORD.findall(topic.casefold()) if len(word) > 2}
    return bool((words or {topic.casefold()}) & set(_WORD.findall(text.casefold())))


def statistics(texts: Sequence[tuple[str, str]]) -> dict[str, float | int]:
    """What the texts look like; no text is left out for it.

    ``with_digits`` and ``with_names`` count texts that hold digits, or capitalised words inside a
    sentence that are not of the topic's name: in uninformative texts a sign that they say
    something after all. ``said_before`` is the mean share of a sentence's longer words that an
    earlier sentence of its text has, high in repetitive texts.
    """
    digits = names = sentences = 0
    repeated: list[float] = []
    for topic, text in texts:
        own = set(_WORD.findall(topic))
        digits += bool(re.search(r"\d", text))
        names += bool(set(_CAPITAL.findall(text)) - own)
        told: set[str] = set()
        found = split_sentences(text)
        sentences += len(found)
        for place, sentence in enumerate(found):
            words = {w.casefold() for w in _WORD.findall(sentence) if len(w) > 3} - {
                w.casefold() for w in own
            }
            if place and words:
                repeated.append(len(words & told) / len(words))
            told |= words
    number = max(1, len(texts))
    return {
        "texts": len(texts),
        "topics": len({topic for topic, _ in texts}),
        "sentences_a_text": round(sentences / number, 2),
        "with_digits": digits,
        "with_names": names,
        "said_before": round(sum(repeated) / max(1, len(repeated)), 3),
    }


CARD = Card(
    pretty_name="Uninformative and repetitive texts",
    license="other",
    task_categories=("text-generation",),
    tags=("factuality", "adversarial"),
    text="""\
Texts about topics, written by a prompted language model, to test whether a factuality metric can
be gamed and to train adversaries that try (Core, arXiv 2407.03572, section 5.1, appendix B.3).

- `info_*`: sentences that are to be true of anyone, so that a metric of factual precision finds
  them supported though they say nothing.
- `repetitive_*`: one thing about the topic, said over and over.
- `statistics.json`: for each file how many texts hold digits or other names (in `info_*` a sign
  that the model did say something), and how much of a sentence was said before it.

A topic belongs to one split. Texts that the model refused, that do not name their topic, that are
too short or that occur twice are left out; `manifest.json` counts them.

**Nobody checked the texts: those of either kind may state falsehoods about real people.** They are
no examples of good writing, and not made to train models that people read. The licence is that of
the model's output.
""",
)
