"""``bleached``: statements that are true of almost any member of a domain.

Core (2407.03572, section 3) calls them bleached claims and takes the informativeness of a claim
as −ln max_h p(c | h) over them. ``eval/select/bleached/`` has hand-written ones of some domains;
for another one they come from what its knowledge base says of nearly every member, or from a
prompted language model, or from both. Topics that have little in common, such as questions, get
claims of their own, from the model alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from clients.polite import SECONDS_PER_REQUEST
from clients.sparql import SparqlClient
from data_builders.builder import AskingBuilder, Made, Step, Work, option_errors
from data_builders.dataset import Card
from data_builders.journal import model_name, write_texts
from data_builders.kb.graph import POPULATION, PREFIXES, WD, check_population, labels_of
from data_builders.kb.language.wording import with_article
from data_builders.kb.server import sparql
from data_builders.sampled import sampling_of
from data_builders.topics import read_topics
from eval.models.chat import Answer, Writer
from eval.prompting.prompts import Prompt
from eval.select.weights import TOPIC, normalise
from records import UserError, escape_markdown

PROMPTS = Path(__file__).parent / "prompts"
DIRECT = "http://www.wikidata.org/prop/direct/"
# How some properties are told; the others by their label.
PROPERTY_CLAIMS = {
    "P19": "{topic} was born somewhere.",
    "P20": "{topic} died somewhere.",
    "P21": "{topic} has a sex or gender.",
    "P27": "{topic} belongs or belonged to some country.",
    "P106": "{topic} does or did some kind of work.",
    "P569": "{topic} was born at some time.",
    "P570": "{topic} died at some time.",
    "P577": "{topic} came out at some time.",
    "P571": "{topic} came into being at some time.",
    "P17": "{topic} lies in some country.",
    "P625": "{topic} can be found somewhere on a map.",
}
# What is said of every item of a knowledge base, and says nothing even of a kind.
GENERIC_PROPERTIES = ("P31", "P279")
# Properties of these types lead out of the knowledge base; they are no facts in words.
NON_FACT_TYPES = ("ExternalId", "CommonsMedia", "Url", "Math", "TabularData", "GeoShape")


@dataclass
class Bleached(AskingBuilder):
    """Statements that are true of almost any member of a domain, for Core's informativeness.

    Args:
        output: folder of the dataset; ``bleached.txt`` in it is what Core's ``bleached`` takes, of
            ``topics`` it is ``bleached.json``.
        domain: one member of the domain in words, e.g. ``a film``; asked of the writer, and said
            in the file's head.
        endpoint: ``snapshot`` for the embedded file behind a local server, the path of another
            Turtle file (``.ttl``), the URL of a SPARQL service, or null for no knowledge base.
        population: SPARQL patterns that bind ``?item``; narrow it on a big endpoint.
        threshold: least share of the population that has a fact.
        writer: a language model to ask, too; null for none.
        samples: how many answers it gives.
        number: how many statements an answer is to have.
        temperature: of sampling.
        top_p: share of probability of the nucleus.
        max_new_tokens: of an answer.
        most: at most so many claims in ``bleached.txt``, or of a topic; Core takes any number, and
            asks its models about each.
        topics: files of records with ``topic``, or ``.txt`` files with one a line, e.g. questions:
            the writer is asked about each of them, and ``domain`` does not count. Null for claims
            about any member of the domain.
        seed: of sampling.
        limit: only the first so many topics, or properties and values of the knowledge base, for a
            trial.
    """

    domain: str = "a person"
    endpoint: str | None = "snapshot"
    population: str = POPULATION
    threshold: float = 0.9
    writer: Writer | None = None
    samples: int = 5
    number: int = 12
    temperature: float = 0.8
    top_p: float = 0.95
    max_new_tokens: int = 400
    most: int = 12
    topics: list[str] | None = None

    reads = ("topics",)
    asks = ("endpoint",)
    least: ClassVar = dict.fromkeys(("samples", "number", "max_new_tokens", "most"), 1)

    def faults(self) -> Iterable[str]:
        yield from option_errors(check_population, self.population)
        if self.endpoint is None and self.writer is None:
            yield "endpoint: null needs a writer; give one, or an endpoint"
        if self.topics is not None and (self.writer is None or self.endpoint is not None):
            yield "topics: a writer alone is asked about them; give one, and endpoint null"
        if not 0 < self.threshold <= 1:
            yield f"threshold: {self.threshold}; give a share in (0, 1]"

    def files(self) -> dict[str, dict[str, str]]:
        return {"bleached": {"train": "bleached.jsonl"}}

    def plan(self) -> list[Step]:
        steps = []
        if self.endpoint is not None:
            what = "counts of members, classes, properties and values; labels"
            steps.append(Step(what, self.endpoint, 8, seconds=8 * SECONDS_PER_REQUEST))
        if self.writer is not None:
            number = self.samples * (1 if self.topics is None else len(self._topics()))
            steps.append(Step("statements", model_name(self.writer), number, "texts"))
        return steps

    def make(self, work: Work) -> Made:
        if self.topics is not None:
            return self._make_by_topic(work)
        claims: list[BleachedClaim] = []
        found = {}
        if self.endpoint is not None:
            claims += self._from_facts(sparql(work, self.endpoint), work.dropped)
        if self.writer is not None:
            prompt = Prompt(PROMPTS / "bleached.jinja")
            found = {"prompt_sha256": prompt.sha256}
            asked = [prompt.messages(domain=self.domain, number=self.number)]
            (answers,) = self.writer.answer(asked, **sampling_of(self, self.samples))
            claims += from_answers(answers, work.dropped)
        claims = distinct(claims, work.dropped)
        if not claims and self.endpoint is None:
            raise UserError(f"no statement is left ({work.dropped_summary()}); give another model")
        if not claims:
            raise UserError(
                f"nothing holds for {self.threshold:.0%} of {self.domain}; lower threshold, or "
                "widen population"
            )
        chosen = choose(claims, self.most)
        licence = "cc0-1.0" if self.writer is None else "other"
        card = _card(self.domain, claims, len(claims) - len(chosen), licence)
        pages = {"bleached.txt": text_file(self.domain, chosen)}
        return Made({"bleached.jsonl": claims}, card, pages, found)

    def _make_by_topic(self, work: Work) -> Made:
        prompt = Prompt(PROMPTS / "bleached_topic.jinja")
        prompts = {t: prompt.messages(topic=t, number=self.number) for t in self._topics()}
        sampling = sampling_of(self, self.samples)
        decides = (self.writer.identity, prompt.sha256, self.number, sampling)
        journal = work.journal("topics", *decides)
        answers = write_texts(self.writer, prompts, sampling, journal)
        rows: list[BleachedClaim] = []
        by_topic: dict[str, list[str]] = {}
        for topic, own in answers.items():
            found = distinct(from_answers(own, work.dropped, topic), work.dropped)
            rows += found
            if found:
                by_topic[topic] = [claim.text for claim in found[: self.most]]
        work.dropped["topic without a statement"] += len(answers) - len(by_topic)
        if not rows:
            raise UserError(f"no statement is left ({work.dropped_summary()}); give another model")
        text = json.dumps(by_topic, indent=2, ensure_ascii=False) + "\n"
        card = Card(
            pretty_name="Bleached claims by topic",
            license="other",
            task_categories=("text-generation",),
            tags=("factuality", "informativeness"),
            text=TOPICS_CARD.format(topics=len(by_topic), claims=len(rows)),
        )
        found = {"prompt_sha256": prompt.sha256}
        return Made({"bleached.jsonl": rows}, card, {"bleached.json": text}, found)

    def _topics(self) -> list[str]:
        return list(read_topics(self.topics))[: self.limit]

    def _from_facts(self, client: SparqlClient, dropped: Counter[str]) -> list[BleachedClaim]:
        members = f"{{ SELECT DISTINCT ?item WHERE {{ {self.population} }} }}"
        query = f"{PREFIXES}SELECT (COUNT(DISTINCT ?item) AS ?n) WHERE {{ {members} }}"
        total = int(client.select(query, "members")[0]["n"])
        if not total:
            raise UserError(f"population: {self.population!r} selects nothing")
        least = self.threshold * total
        classes = self._shares(
            client, f"{members} ?item wdt:P31/wdt:P279* ?value .", "?value", least, "classes"
        )
        is_fact = f'FILTER(STRSTARTS(STR(?prop), "{DIRECT}P"))'
        properties = self._shares(
            client, f"{members} ?item ?prop ?value . {is_fact}", "?prop", least, "properties"
        )
        values = self._shares(
            client, f"{members} ?item ?prop ?value . {is_fact}", "?prop ?value", least, "values"
        )
        untold = self._untold(client, [row["prop"] for row in properties], dropped)
        known = labels_of(
            client,
            sorted(
                {WD + row["prop"].removeprefix(DIRECT) for row in properties}
                | {row["value"] for row in [*classes, *values] if row["value"].startswith("http")}
            ),
            "labels",
        )
        found = []
        for kind, rows in (("class", classes), ("property", properties), ("value", values)):
            for row in rows:
                prop = row.get("prop", f"{DIRECT}P31").removeprefix(DIRECT)
                if kind == "class" or (prop not in GENERIC_PROPERTIES and prop not in untold):
                    claim = _claim(kind, prop, row, total, known)
                    dropped["fact without an English label"] += claim is None
                    found.extend([claim] if claim else [])
        return found

    def _shares(
        self, client: SparqlClient, patterns: str, what: str, least: float, family: str
    ) -> list[dict[str, str]]:
        query = (
            f"{PREFIXES}SELECT {what} (COUNT(DISTINCT ?item) AS ?n) WHERE {{ {patterns} }}\n"
            f"GROUP BY {what} HAVING (COUNT(DISTINCT ?item) >= {least:.3f})"
        )
        rows = client.select(query, family)
        rows.sort(key=lambda row: (-int(row["n"]), row.get("prop", ""), row.get("value", "")))
        return rows[: self.limit]

    def _untold(
        self, client: SparqlClient, properties: Sequence[str], dropped: Counter[str]
    ) -> set[str]:
        if not properties:
            return set()
        block = " ".join(f"<{iri}>" for iri in properties)
        query = (
            "PREFIX wikibase: <http://wikiba.se/ontology#>\n"
            f"SELECT DISTINCT ?prop ?type WHERE {{ VALUES ?prop {{ {block} }}\n"
            "  ?entity wikibase:directClaim ?prop ; wikibase:propertyType ?type . }"
        )
        found = {
            row["prop"].removeprefix(DIRECT)
            for row in client.select(query, "property types")
            if row["type"].rpartition("#")[2] in NON_FACT_TYPES
        }
        dropped["property that is no fact in words"] += len(found)
        return found


def _claim(
    kind: str, prop: str, row: dict[str, str], total: int, known: dict[str, str]
) -> BleachedClaim | None:
    value = row.get("value", "")
    text = _in_words(kind, prop, value, known)
    return text and BleachedClaim(
        text=text,
        source=f"kb/{kind}",
        share=round(int(row["n"]) / total, 4),
        count=int(row["n"]),
        of=total,
        fact=f"{prop}={value.removeprefix(WD)}" if value else prop,
    )


def _in_words(kind: str, prop: str, value: str, known: dict[str, str]) -> str | None:
    if kind == "property" and prop in PROPERTY_CLAIMS:
        return PROPERTY_CLAIMS[prop]
    label = known.get(WD + prop)
    told = known.get(value)
    if kind == "class":
        return told and f"{TOPIC} is {with_article(told)}."
    if kind == "property":
        return label and f"{TOPIC} has {with_article(label)}."
    return label and told and f"The {label} of {TOPIC} is {told}."


def _card(domain: str, claims: Sequence[BleachedClaim], left_out: int, licence: str) -> Card:
    rows = "\n".join(
        f"| {escape_markdown(claim.text)} | {escape_markdown(claim.source)} | "
        f"{escape_markdown(claim.fact or '')} | {claim.count} / {claim.of} |"
        for claim in claims
    )
    return Card(
        pretty_name=f"Bleached claims: {domain}",
        license=licence,
        task_categories=("text-generation",),
        tags=("factuality", "informativeness", "wikidata"),
        text=CARD.format(domain=domain, rows=rows, left_out=left_out, total=len(claims)),
    )


CARD = """\
Statements that are true of almost anything that is {domain}, with `{{topic}}` for its name. Core
(2407.03572, section 3) asks how likely a claim is given such a statement: what is likely says
little. `bleached.txt` is the file for its `bleached` option; it has room for {total} − {left_out}
of these:

| statement | source | fact | holds for |
|---|---|---|---|
{rows}

`kb/…`: counted over the population of the manifest's `config`; a share below one means that the
knowledge base does not hold it of some, not that it is false of them. `model`: written by the
language model of the manifest, counted over its answers, with the licence of its output; **nobody
checked that they are true of every member**, so read them before use. No member's name and no label
is in here.
"""

TOPICS_CARD = """\
{claims} statements about {topics} topics, e.g. questions, that are true whatever the facts are.
Core (2407.03572, section 3) asks how likely a claim is given such a statement: what is likely says
little. `bleached.json` (topic to statements) is the file for its `bleached` option.

They were written by the language model of the manifest's `config` and counted over its answers;
**nobody checked that they are true**, so read them before use. The licence is that of the model's
output.
"""


_ITEM = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,3}[.):])\s+(.*)$")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<![.!?]\s)\b[A-Z]\w*")


class BleachedClaim(BaseModel):
    """A bleached claim and what it rests on.

    Attributes:
        text: with ``{topic}``; of a single topic without.
        source: ``kb/class`` or ``kb/value`` (an instance of, a value), ``kb/property`` (some value
            of a property), or ``model``.
        share: of the population for which the knowledge base holds it; of the model's answers
            that have it.
        count: how many those are.
        of: how many members, or answers, there are.
        fact: property and value, e.g. ``P31=Q5``; ``None`` for a model's.
        topic: what alone it is about; ``None`` for any member of the domain.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    source: str
    share: float
    count: int
    of: int
    fact: str | None = None
    topic: str | None = None


def from_answers(
    answers: Sequence[Answer], dropped: Counter[str], topic: str | None = None
) -> list[BleachedClaim]:
    """The statements of a model's answers that may be bleached claims.

    Args:
        answers: each with a list, a statement an item.
        dropped: counts answers that failed and lines that are no such statement.
        topic: what the statements are about; ``None`` for any member of a domain.
    """
    said: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for answer in answers:
        if answer.failed is not None:
            dropped[f"model: no answer ({answer.failed})"] += 1
            continue
        own = set()
        for line in filter(str.strip, answer.text.splitlines()):
            item = _ITEM.match(line)
            text = item[1].strip() if item else ""
            reason = "line outside the list" if item is None else _fault(text, topic)
            if reason is None and normalise(text) in own:
                reason = "statement twice in an answer"
            if reason is not None:
                dropped[f"model: {reason}"] += 1
                continue
            own.add(normalise(text))
            spelled.setdefault(normalise(text), text)
        said.update(own)
    return [
        BleachedClaim(
            text=spelled[key],
            source="model",
            share=round(said[key] / len(answers), 4),
            count=said[key],
            of=len(answers),
            topic=topic,
        )
        for key in sorted(said)
    ]


def _fault(text: str, topic: str | None) -> str | None:
    """Why a model's statement is no bleached claim; ``None`` if it may be one.

    Numbers and names that stand in the topic itself say nothing new about it.
    """
    if topic is None and TOPIC not in text:
        return f"statement without {TOPIC}"
    rest = text.replace(TOPIC, "x") if topic is None else text
    known = "" if topic is None else topic
    if any(number not in _NUMBER.findall(known) for number in _NUMBER.findall(rest)):
        return "statement with a number"
    if "{" in rest or "#" in rest:
        return "statement with another placeholder"
    # The first word of a sentence has a capital anyway.
    names = (found[0] for found in _NAME.finditer(rest, 1))
    if any(name not in _WORD.findall(known) for name in names):
        return "statement with a name"
    if not rest.endswith((".", "!")):
        return "statement that is no whole sentence"
    return None


def distinct(claims: Sequence[BleachedClaim], dropped: Counter[str]) -> list[BleachedClaim]:
    """Each statement once, the surest first."""
    order = {"kb/class": 0, "kb/property": 1, "kb/value": 2, "model": 3}
    found: dict[str, BleachedClaim] = {}
    for claim in sorted(claims, key=lambda c: (order[c.source], -c.share, c.fact or "", c.text)):
        key = normalise(claim.text)
        dropped["statement that was there already"] += key in found
        found.setdefault(key, claim)
    return list(found.values())


def choose(claims: Sequence[BleachedClaim], most: int) -> list[BleachedClaim]:
    """The claims for Core: those of each source in turn, so that none crowds out the others."""
    by_source: dict[str, list[BleachedClaim]] = {}
    for claim in claims:
        by_source.setdefault(claim.source, []).append(claim)
    chosen: list[BleachedClaim] = []
    while len(chosen) < most and any(by_source.values()):
        for own in by_source.values():
            if own and len(chosen) < most:
                chosen.append(own.pop(0))
    return [claim for claim in claims if claim in chosen]


def text_file(domain: str, claims: Sequence[BleachedClaim]) -> str:
    head = (
        f"# Bleached claims: true of almost anything that is {domain}.\n"
        f"# One a line; {TOPIC} is the name. bleached.jsonl says whence.\n"
    )
    return head + "".join(f"{claim.text}\n" for claim in claims)
