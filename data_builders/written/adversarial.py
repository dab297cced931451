"""``adversarial``: uninformative and repetitive texts that a prompted model writes.

Core (arXiv 2407.03572, section 5.1 and appendix B.3) attacks factual precision with texts that say
what is true of anyone ("info") and with texts that say one thing over and over ("repetitive").
They are the training data of the LoRA adversaries and the input of the robustness experiments.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from components.sentences import split_sentences
from data_builders.dataset import Card, write_dataset
from data_builders.plan import Step
from data_builders.splits import SPLITS
from data_builders.topics import Stratum, Topics, split_topics
from eval.models.chat import Answer, Writer
from eval.prompting.prompts import Prompt
from records import (
    Document,
    Generation,
    JsonlAppender,
    UserError,
    sha256_text,
)
from records.abstention import responds

PROMPTS = Path(__file__).parent / "prompts"
KINDS = ("info", "repetitive")
# What a kill loses at most.
TOPICS_A_WRITE = 16

# A model that goes on with the next example, an opening ("Sure, here it is:"), a list's marks.
_NEXT = re.compile(r"\n\s*(Person|User|Assistant)\s*:.*", re.DOTALL)
_OPENING = re.compile(r"(?i)^(sure|certainly|of course|okay|ok|here)\b[^\n]*[:!]\s*\n+")
_MARK = re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s+")
_WORD = re.compile(r"\w+")
_CAPITAL = re.compile(r"(?<=[\w,;’'\"] )[A-Z]\w+")


class Adversarial:
    """Uninformative and repetitive texts on topics, written by a prompted model.

    Args:
        output: folder of the dataset.
        topics: files of records with ``topic``, or ``.txt`` files with a topic a line; or
            ``{train: [files], dev: [files], test: [files]}``, which keeps those splits.
        writer: the language model, by ``class_path``.
        prompts: kind to its prompt file with the field ``topic``; null takes the shipped ``info``
            and ``repetitive``, which are about people.
        per_topic: texts of each kind a topic.
        temperature: of sampling.
        top_p: share of probability of the nucleus.
        max_new_tokens: most tokens of a text.
        least_sentences: a text of fewer sentences is dropped.
        shares: topics of train, dev and test, where the files have no splits.
        seed: of sampling and of the splits.
        limit: only the first so many topics of each split, for a trial.

    Raises:
        UserError: a number below 1, or no such prompt file.
    """

    def __init__(
        self,
        output: Path,
        topics: list[str] | dict[str, list[str]],
        writer: Writer,
        prompts: dict[str, str] | None = None,
        per_topic: int = 5,
        temperature: float = 1.0,
        top_p: float = 0.95,
        max_new_tokens: int = 256,
        least_sentences: int = 3,
        shares: tuple[int, int, int] = (8, 1, 1),
        seed: int = 0,
        limit: int | None = None,
    ):
        if min(per_topic, max_new_tokens, least_sentences, *shares) < 1:
            raise UserError(
                "per_topic, max_new_tokens, least_sentences and shares: at least 1 each"
            )
        if limit is not None and limit < 1:
            raise UserError("limit: at least 1")
        self.output = Path(output)
        self.topics = topics
        self.writer = writer
        self.prompts = shipped_prompts() if prompts is None else _read_prompts(prompts)
        self.sampling = {
            "n": per_topic,
            "temperature": temperature,
            "top_p": top_p,
            "max_new_tokens": max_new_tokens,
            "seed": seed,
        }
        self.least_sentences = least_sentences
        self.shares = tuple(shares)
        self.seed = seed
        self.limit = limit

    def plan(self) -> list[Step]:
        """One step a kind: how many texts are to be written."""
        number = sum(len(own) for own in self._topics().values()) * self.sampling["n"]
        model = _name(self.writer)
        return [Step(f"{kind} texts", model, number, "texts") for kind in self.prompts]

    def writes(self) -> list[str]:
        """Names of the files of records that a build writes."""
        return [f"{kind}_{split}.jsonl" for kind in self.prompts for split in SPLITS]

    def build(self) -> Path:
        """Write the texts, sift them, write the folder; returns the manifest's path."""
        topics = self._topics()
        every = [topic for own in topics.values() for topic in own]
        dropped: Counter[str] = Counter()
        files: dict[str, list[Generation]] = {}
        figures = {}
        journals = []
        for kind, prompt in self.prompts.items():
            journals.append(journal := self.output / f".{kind}.{self._key(prompt)}.partial.jsonl")
            answers = write_texts(self.writer, prompt, every, self.sampling, journal)
            for split, own in topics.items():
                texts = [
                    (topic, text)
                    for topic in own
                    for text in sift(kind, topic, answers[topic], self.least_sentences, dropped)
                ]
                name = f"{kind}_{split}.jsonl"
                files[name] = [self._record(kind, topic, own[topic], text) for topic, text in texts]
                figures[name] = statistics(texts)
        self._check(files, dropped)
        manifest = write_dataset(
            self.output,
            files,
            declared=self.writes(),
            card=self._card(files),
            clients=[],
            dropped=dropped,
            config=self._config(),
            seed=self.seed,
            inputs=self._files(),
            pages={"statistics.json": json.dumps(figures, indent=2) + "\n"},
        )
        for journal in journals:
            journal.unlink()
        return manifest

    def _files(self) -> list[str]:
        if isinstance(self.topics, Mapping):
            return [path for split in SPLITS for path in self.topics.get(split, ())]
        return list(self.topics)

    def _topics(self) -> dict[str, Topics]:
        found = split_topics(self.topics, self.shares, self.seed)
        return {split: dict(list(own.items())[: self.limit]) for split, own in found.items()}

    def _record(self, kind: str, topic: str, stratum: Stratum, text: str) -> Generation:
        name = _name(self.writer)
        return Generation(topic=topic, text=text, kind=kind, generator=name, **stratum.known())

    def _check(self, files: Mapping[str, Sequence[Generation]], dropped: Counter[str]) -> None:
        """A kind without a single text is no dataset."""
        for kind in self.prompts:
            if not any(files[f"{kind}_{split}.jsonl"] for split in SPLITS):
                why = ", ".join(f"{n} x {reason}" for reason, n in sorted(dropped.items()))
                raise UserError(f"no {kind} text is left ({why}); give another model or prompt")

    def _key(self, prompt: Prompt) -> str:
        """Of whatever decides a topic's texts."""
        whole = [self.writer.identity, prompt.sha256, self.sampling]
        return sha256_text(json.dumps(whole, sort_keys=True))[:16]

    def _config(self) -> dict[str, object]:
        """What decides the records, without the folder they go to."""
        topics = self.topics
        if isinstance(topics, Mapping):
            topics = {split: [Path(p).name for p in paths] for split, paths in topics.items()}
        else:
            topics = [Path(path).name for path in topics]
        return {
            "topics": topics,
            "writer": self.writer.identity,
            "prompts": {kind: prompt.sha256 for kind, prompt in self.prompts.items()},
            "sampling": self.sampling,
            "least_sentences": self.least_sentences,
            "shares": list(self.shares),
            "limit": self.limit,
        }

    def _card(self, files: Mapping[str, Sequence[Generation]]) -> Card:
        # The Hub's viewer cannot read a split without rows.
        configs = {
            kind: {s: f"{kind}_{s}.jsonl" for s in SPLITS if files[f"{kind}_{s}.jsonl"]}
            for kind in self.prompts
        }
        return Card(
            pretty_name="Uninformative and repetitive texts",
            configs=configs,
            license="other",
            task_categories=("text-generation",),
            tags=("factuality", "adversarial"),
            text=CARD,
        )


def _name(writer: Writer) -> str:
    model = writer.identity.get("model")
    return str(model["id"] if isinstance(model, Mapping) else model)


def shipped_prompts() -> dict[str, Prompt]:
    """The prompts about people, by kind."""
    return {kind: Prompt(PROMPTS / f"{kind}.jinja") for kind in KINDS}


def _read_prompts(paths: Mapping[str, str]) -> dict[str, Prompt]:
    bad = [kind for kind in paths if not re.fullmatch(r"\w+", kind)]
    if bad or not paths:
        raise UserError("prompts: give at least one kind, of letters only, with its file")
    return {kind: Prompt(path) for kind, path in paths.items()}


def write_texts(
    writer: Writer,
    prompt: Prompt,
    topics: Sequence[str],
    sampling: Mapping[str, object],
    journal: Path,
) -> dict[str, list[Answer]]:
    """The model's answers on each topic, kept in a journal while they grow.

    Args:
        writer: who writes.
        prompt: with the field ``topic``.
        topics: each once.
        sampling: the keywords of ``Writer.answer``.
        journal: a JSONL file; its name must depend on everything that decides the answers.
    """
    with JsonlAppender(journal, key="topic") as done:
        todo = [topic for topic in topics if topic not in done.done]
        bar = tqdm(total=len(topics), initial=len(topics) - len(todo), unit="topic", disable=None)
        with bar:
            for start in range(0, len(todo), TOPICS_A_WRITE):
                batch = todo[start : start + TOPICS_A_WRITE]
                prompts = [prompt.messages(topic=topic) for topic in batch]
                answers = writer.answer(prompts, **sampling)
                done.append(
                    {"topic": topic, "answers": own}
                    for topic, own in zip(batch, answers, strict=True)
                )
                bar.update(len(batch))
        return {topic: [Answer(*a) for a in done.done[topic]["answers"]] for topic in topics}


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


CARD = """\
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
"""
