"""``bleached``: statements that are true of almost any member of a domain.

Core (2407.03572, section 3) calls them bleached claims and defines the informativeness of a claim
as −ln max_h p(c | h) over them. ``eval/select/bleached/`` has hand-written ones for some domains.
For other domains this builder derives them from facts that hold for almost every member in a
knowledge base, from a prompted language model, or both. Topics with little in common, such as
questions, get one list per topic from the model.
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
from components.english import with_article
from data_builders.builder import AskingBuilder, Made, Step, Work, option_errors
from data_builders.dataset import Card, read_card
from data_builders.journal import model_name, write_texts
from data_builders.kb.graph import POPULATION, PREFIXES, WD, check_population, labels_of
from data_builders.kb.server import sparql
from data_builders.sampled import sampling_of
from data_builders.topics import read_topics
from eval.models.chat import Answer, Writer
from eval.prompting.prompts import Prompt
from eval.select.weights import TOPIC, normalise
from records import UserError, escape_markdown

PROMPTS = Path(__file__).parent / "prompts"
DIRECT = "http://www.wikidata.org/prop/direct/"
# Statements of some properties; others use their label.
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
# Classes, which every item has.
GENERIC_PROPERTIES = ("P31", "P279")
# Properties of these types are links out of the knowledge base.
NON_FACT_TYPES = ("ExternalId", "CommonsMedia", "Url", "Math", "TabularData", "GeoShape")


@dataclass
class Bleached(AskingBuilder):
    """Statements that are true of almost any member of a domain, for Core's informativeness.

    Args:
        output: folder of the dataset. Core's ``bleached`` option takes ``bleached.txt`` in it, or
            ``bleached.json`` if ``topics`` is set.
        domain: a member of the domain in words, e.g. ``a film``; for prompt and file header.
        endpoint: ``snapshot`` for the embedded Turtle file, the path of another Turtle file
            (``.ttl``), the URL of a SPARQL service, or null for no knowledge base.
        population: SPARQL patterns that bind ``?item``; restrict it on a large endpoint.
        threshold: least share of the population that has a fact.
        writer: a language model that writes statements; null for none.
        samples: number of answers sampled from it.
        number: number of statements requested per answer.
        temperature: sampling temperature.
        top_p: nucleus sampling threshold.
        max_new_tokens: maximum length of an answer in tokens.
        most: maximum number of claims in ``bleached.txt``, or per topic. Core scores each of them.
        topics: files of records with ``topic``, or ``.txt`` files with one topic per line, e.g.
            questions. The writer is prompted for each topic, and ``domain`` is ignored. Null for
            claims about any member of the domain.
        seed: sampling seed.
        limit: use only the first N topics, or properties and values, for a trial.
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
            yield "endpoint: null requires a writer; set one of them"
        if self.topics is not None and (self.writer is None or self.endpoint is not None):
            yield "topics: requires a writer and endpoint null"
        if not 0 < self.threshold <= 1:
            yield f"threshold: expected a share in (0, 1], got {self.threshold}"

    def files(self) -> dict[str, dict[str, str]]:
        return {"bleached": {"train": "bleached.jsonl"}}

    def plan(self) -> list[Step]:
        steps = []
        if self.endpoint is not None:
            purpose = "counts of members, classes, properties and values; labels"
            steps.append(Step(purpose, self.endpoint, 8, seconds=8 * SECONDS_PER_REQUEST))
        if self.writer is not None:
            number = self.samples * (1 if self.topics is None else len(self._topics()))
            steps.append(Step("statements", model_name(self.writer), number, "texts"))
        return steps

    def make(self, work: Work) -> Made:
        if self.topics is not None:
            return self._make_by_topic(work)
        claims: list[BleachedClaim] = []
        details = {}
        if self.endpoint is not None:
            claims += self._from_facts(sparql(work, self.endpoint), work.dropped)
        if self.writer is not None:
            prompt = Prompt(PROMPTS / "bleached.jinja")
            details = {"prompt_sha256": prompt.sha256}
            prompts = [prompt.messages(domain=self.domain, number=self.number)]
            (answers,) = self.writer.answer(prompts, **sampling_of(self, self.samples))
            claims += from_answers(answers, work.dropped)
        claims = deduplicate(claims, work.dropped)
        if not claims and self.endpoint is None:
            raise UserError(f"no statement left ({work.dropped_summary()}); use another model")
        if not claims:
            raise UserError(
                f"no fact (wdt:P…) holds for {self.threshold:.0%} of {self.domain} "
                f"({work.dropped_summary()}); lower threshold or widen population"
            )
        chosen = choose_claims(claims, self.most)
        licence = "cc0-1.0" if self.writer is None else "other"
        card = _card(self.domain, claims, len(claims) - len(chosen), licence)
        pages = {"bleached.txt": text_file(self.domain, chosen)}
        return Made({"bleached.jsonl": claims}, card, pages, details)

    def _make_by_topic(self, work: Work) -> Made:
        prompt = Prompt(PROMPTS / "bleached_topic.jinja")
        prompts = {t: prompt.messages(topic=t, number=self.number) for t in self._topics()}
        sampling = sampling_of(self, self.samples)
        decides = (self.writer, prompt.sha256, self.number, sampling)
        journal = work.journal("topics", *decides)
        answers = write_texts(self.writer, prompts, sampling, journal)
        rows: list[BleachedClaim] = []
        by_topic: dict[str, list[str]] = {}
        for topic, samples in answers.items():
            statements = deduplicate(from_answers(samples, work.dropped, topic), work.dropped)
            rows += statements
            if statements:
                by_topic[topic] = [claim.text for claim in statements[: self.most]]
        work.dropped["topic without a statement"] += len(answers) - len(by_topic)
        if not rows:
            raise UserError(f"no statement left ({work.dropped_summary()}); use another model")
        text = json.dumps(by_topic, indent=2, ensure_ascii=False) + "\n"
        card = read_card("bleached_topics", topics=len(by_topic), claims=len(rows))
        statements = {"prompt_sha256": prompt.sha256}
        return Made({"bleached.jsonl": rows}, card, {"bleached.json": text}, statements)

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
        excluded = self._link_properties(client, [row["prop"] for row in properties], dropped)
        labels = labels_of(
            client,
            sorted(
                {WD + row["prop"].removeprefix(DIRECT) for row in properties}
                | {row["value"] for row in [*classes, *values] if row["value"].startswith("http")}
            ),
            "labels",
        )
        claims = []
        for kind, rows in (("class", classes), ("property", properties), ("value", values)):
            for row in rows:
                prop = row.get("prop", f"{DIRECT}P31").removeprefix(DIRECT)
                if kind == "class" or (prop not in GENERIC_PROPERTIES and prop not in excluded):
                    claim = _claim(kind, prop, row, total, labels)
                    dropped["fact without an English label (rdfs:label)"] += claim is None
                    claims.extend([claim] if claim else [])
        return claims

    def _shares(
        self, client: SparqlClient, patterns: str, variables: str, least: float, family: str
    ) -> list[dict[str, str]]:
        query = (
            f"{PREFIXES}SELECT {variables} (COUNT(DISTINCT ?item) AS ?n) WHERE {{ {patterns} }}\n"
            f"GROUP BY {variables} HAVING (COUNT(DISTINCT ?item) >= {least:.3f})"
        )
        rows = client.select(query, family)
        rows.sort(key=lambda row: (-int(row["n"]), row.get("prop", ""), row.get("value", "")))
        return rows[: self.limit]

    def _link_properties(
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
        excluded = {
            row["prop"].removeprefix(DIRECT)
            for row in client.select(query, "property types")
            if row["type"].rpartition("#")[2] in NON_FACT_TYPES
        }
        dropped["property that links out of the knowledge base"] += len(excluded)
        return excluded


def _claim(
    kind: str, prop: str, row: dict[str, str], total: int, labels: dict[str, str]
) -> BleachedClaim | None:
    value = row.get("value", "")
    text = _in_words(kind, prop, value, labels)
    return text and BleachedClaim(
        text=text,
        source=f"kb/{kind}",
        share=round(int(row["n"]) / total, 4),
        count=int(row["n"]),
        of=total,
        fact=f"{prop}={value.removeprefix(WD)}" if value else prop,
    )


def _in_words(kind: str, prop: str, value: str, labels: dict[str, str]) -> str | None:
    if kind == "property" and prop in PROPERTY_CLAIMS:
        return PROPERTY_CLAIMS[prop]
    label = labels.get(WD + prop)
    value_label = labels.get(value)
    if kind == "class":
        return value_label and f"{TOPIC} is {with_article(value_label)}."
    if kind == "property":
        return label and f"{TOPIC} has {with_article(label)}."
    return label and value_label and f"The {label} of {TOPIC} is {value_label}."


def _card(domain: str, claims: Sequence[BleachedClaim], unused: int, licence: str) -> Card:
    rows = "\n".join(
        f"| {escape_markdown(claim.text)} | {escape_markdown(claim.source)} | "
        f"{escape_markdown(claim.fact or '')} | {claim.count} / {claim.of} |"
        for claim in claims
    )
    numbers = {"unused": unused, "total": len(claims)}
    return read_card("bleached", domain=domain, licence=licence, rows=rows, **numbers)


_ITEM = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,3}[.):])\s+(.*)$")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<![.!?]\s)\b[A-Z]\w*")


class BleachedClaim(BaseModel):
    """A bleached claim and its evidence.

    Attributes:
        text: with ``{topic}``; without it if ``topic`` is set.
        source: ``kb/class`` (instance of), ``kb/value`` (a value), ``kb/property`` (any value of a
            property), or ``model``.
        share: share of the population with the fact, or of the model's answers with the statement.
        count: numerator of ``share``.
        of: denominator of ``share``.
        fact: property and value, e.g. ``P31=Q5``; ``None`` for a model's.
        topic: the single topic; ``None`` for any member of the domain.
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
    """Extract the statements of a model's answers that may be bleached claims.

    ``topic`` is the topic of the statements, or ``None`` for any member of a domain.
    """
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for answer in answers:
        if answer.failed is not None:
            dropped[f"model: no answer ({answer.failed})"] += 1
            continue
        seen = set()
        for line in filter(str.strip, answer.text.splitlines()):
            item = _ITEM.match(line)
            text = item[1].strip() if item else ""
            reason = "line outside the list" if item is None else _rejection(text, topic)
            if reason is None and normalise(text) in seen:
                reason = "statement twice in an answer"
            if reason is not None:
                dropped[f"model: {reason}"] += 1
                continue
            seen.add(normalise(text))
            spelled.setdefault(normalise(text), text)
        counts.update(seen)
    return [
        BleachedClaim(
            text=spelled[key],
            source="model",
            share=round(counts[key] / len(answers), 4),
            count=counts[key],
            of=len(answers),
            topic=topic,
        )
        for key in sorted(counts)
    ]


def _rejection(text: str, topic: str | None) -> str | None:
    """Return why a statement is not a bleached claim; ``None`` if it may be one.

    Numbers and names of the topic itself are allowed, since they add no information.
    """
    if topic is None and TOPIC not in text:
        return f"statement without {TOPIC}"
    rest = text.replace(TOPIC, "x") if topic is None else text
    allowed = "" if topic is None else topic
    if any(number not in _NUMBER.findall(allowed) for number in _NUMBER.findall(rest)):
        return "statement with a number"
    if "{" in rest or "#" in rest:
        return "statement with another placeholder"
    # The first word of a sentence is always capitalized.
    names = (match[0] for match in _NAME.finditer(rest, 1))
    if any(name not in _WORD.findall(allowed) for name in names):
        return "statement with a name"
    if not rest.endswith((".", "!")):
        return "statement that is not a sentence"
    return None


def deduplicate(claims: Sequence[BleachedClaim], dropped: Counter[str]) -> list[BleachedClaim]:
    """Remove duplicate statements; the most reliable come first."""
    order = {"kb/class": 0, "kb/property": 1, "kb/value": 2, "model": 3}
    unique: dict[str, BleachedClaim] = {}
    for claim in sorted(claims, key=lambda c: (order[c.source], -c.share, c.fact or "", c.text)):
        key = normalise(claim.text)
        dropped["duplicate statement"] += key in unique
        unique.setdefault(key, claim)
    return list(unique.values())


def choose_claims(claims: Sequence[BleachedClaim], most: int) -> list[BleachedClaim]:
    """Choose at most ``most`` claims, taking the sources in turn."""
    by_source: dict[str, list[BleachedClaim]] = {}
    for claim in claims:
        by_source.setdefault(claim.source, []).append(claim)
    chosen: list[BleachedClaim] = []
    while len(chosen) < most and any(by_source.values()):
        for queue in by_source.values():
            if queue and len(chosen) < most:
                chosen.append(queue.pop(0))
    return [claim for claim in claims if claim in chosen]


def text_file(domain: str, claims: Sequence[BleachedClaim]) -> str:
    head = (
        f"# Bleached claims: true of almost anything that is {domain}.\n"
        f"# One a line; {TOPIC} is the name. bleached.jsonl says whence.\n"
    )
    return head + "".join(f"{claim.text}\n" for claim in claims)
