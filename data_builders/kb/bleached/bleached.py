"""``bleached``: statements that are true of almost any member of a domain.

Core (2407.03572, section 4.2) calls them bleached claims and takes the informativeness of a claim
as −ln max_h p(c | h) over them. ``eval/select/bleached/`` has hand-written ones for people and
places; for another domain they come from what its knowledge base says of nearly every member, or
from a prompted language model, or from both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from clients.polite import SECONDS_A_REQUEST
from clients.sparql import SparqlClient
from data_builders.dataset import Card, kept_answers, write_dataset
from data_builders.kb.bleached.claims import (
    BleachedClaim,
    choose,
    distinct,
    from_answers,
    text_file,
)
from data_builders.kb.facts import PREFIXES, WD
from data_builders.kb.items import POPULATION, check_population, labels_of
from data_builders.kb.kb_pairs.wording import with_article
from data_builders.kb.server import open_client
from data_builders.plan import Step
from eval.models.chat import Writer
from eval.prompting.prompts import Prompt
from eval.select.weights import MAX_BLEACHED, TOPIC
from records import UserError

PROMPT = Path(__file__).parents[1] / "prompts" / "bleached.jinja"
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
UNSAID = ("P31", "P279")
# Properties of these types lead out of the knowledge base; they are no facts in words.
UNTOLD_TYPES = ("ExternalId", "CommonsMedia", "Url", "Math", "TabularData", "GeoShape")


class Bleached:
    """Statements that are true of almost any member of a domain, for Core's informativeness.

    Args:
        output: folder of the dataset; ``bleached.txt`` in it is what Core's ``bleached`` takes.
        domain: one member of the domain in words, e.g. ``a film``; asked of the writer, and said
            in the file's head.
        endpoint: ``snapshot`` for the embedded file behind a local server, the URL of a SPARQL
            service, or null for no knowledge base.
        population: SPARQL patterns that bind ``?item``; narrow it on a big endpoint.
        threshold: least share of the population that has a fact.
        writer: a language model to ask, too; null for none.
        samples: how many answers it gives.
        number: how many statements an answer is to have.
        temperature: of sampling.
        top_p: share of probability of the nucleus.
        max_new_tokens: of an answer.
        most: at most so many claims in ``bleached.txt``, no more than Core takes.
        user_agent: who asks, for a remote endpoint.
        cache_dir: folder of kept answers; null keeps them in ``output`` until the dataset is
            whole.
        seed: of sampling.
        limit: only the first so many properties and values of the knowledge base, for a trial.

    Raises:
        UserError: an option out of range, or neither endpoint nor writer.
    """

    def __init__(
        self,
        output: Path,
        domain: str = "a person",
        endpoint: str | None = "snapshot",
        population: str = POPULATION,
        threshold: float = 0.9,
        writer: Writer | None = None,
        samples: int = 5,
        number: int = 12,
        temperature: float = 0.8,
        top_p: float = 0.95,
        max_new_tokens: int = 400,
        most: int = MAX_BLEACHED,
        user_agent: str | None = None,
        cache_dir: Path | None = None,
        seed: int = 0,
        limit: int | None = None,
    ):
        check_population(population)
        if endpoint is None and writer is None:
            raise UserError("endpoint: null needs a writer; give one, or an endpoint")
        if not 0 < threshold <= 1:
            raise UserError(f"threshold: {threshold}; give a share in (0, 1]")
        if samples < 1 or number < 1 or (limit is not None and limit < 1):
            raise UserError("samples, number, limit: at least 1")
        if not 1 <= most <= MAX_BLEACHED:
            raise UserError(f"most: {most}; give 1 to {MAX_BLEACHED}, which is what Core takes")
        self.output = Path(output)
        self.domain = domain
        self.endpoint = endpoint
        self.population = population
        self.threshold = threshold
        self.writer = writer
        self.samples = samples
        self.number = number
        self.sampling = {
            "temperature": temperature,
            "top_p": top_p,
            "max_new_tokens": max_new_tokens,
        }
        self.most = most
        self.user_agent = user_agent
        self.cache_dir = cache_dir
        self.seed = seed
        self.limit = limit

    def plan(self) -> list[Step]:
        """What a build would ask."""
        steps = []
        if self.endpoint is not None:
            what = "counts of members, classes, properties and values; labels"
            steps.append(Step(what, self.endpoint, 8, seconds=8 * SECONDS_A_REQUEST))
        if self.writer is not None:
            name = str(self.writer.identity.get("model", type(self.writer).__name__))
            steps.append(Step("statements", name, self.samples, "texts"))
        return steps

    def writes(self) -> list[str]:
        """Names of the files of records that a build writes."""
        return ["bleached.jsonl"]

    def build(self) -> Path:
        """Count, ask, write the folder; returns the manifest's path."""
        dropped: Counter[str] = Counter()
        clients: list[SparqlClient] = []
        claims: list[BleachedClaim] = []
        if self.endpoint is not None:
            url = None if self.endpoint == "snapshot" else self.endpoint
            with (
                kept_answers(self.output, self.cache_dir) as answers,
                open_client(url, user_agent=self.user_agent, cache_dir=answers) as client,
            ):
                claims += self._from_facts(client, dropped)
                clients.append(client)
        if self.writer is not None:
            prompt = Prompt(PROMPT)
            messages = prompt.messages(domain=self.domain, number=self.number)
            (answers,) = self.writer.answer(
                [messages], n=self.samples, seed=self.seed, **self.sampling
            )
            claims += from_answers(answers, dropped)
        claims = distinct(claims, dropped)
        if not claims:
            raise UserError(
                f"nothing holds for {self.threshold:.0%} of {self.domain}; lower threshold, or "
                "widen population"
            )
        chosen = choose(claims, self.most)
        dropped_from_text = len(claims) - len(chosen)
        return write_dataset(
            self.output,
            {"bleached.jsonl": claims},
            declared=self.writes(),
            card=_card(self.domain, claims, dropped_from_text),
            clients=clients,
            dropped=dropped,
            config=self._config(),
            seed=self.seed,
            pages={"bleached.txt": text_file(self.domain, chosen)},
        )

    def _from_facts(self, client: SparqlClient, dropped: Counter[str]) -> list[BleachedClaim]:
        """What the knowledge base holds of enough members."""
        members = f"{{ SELECT DISTINCT ?item WHERE {{ {self.population} }} }}"
        total = self._count(client, members)
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
                if kind == "class" or (prop not in UNSAID and prop not in untold):
                    claim = _claim(kind, prop, row, total, known)
                    dropped["fact without an English label"] += claim is None
                    found.extend([claim] if claim else [])
        return found

    def _count(self, client: SparqlClient, members: str) -> int:
        query = f"{PREFIXES}SELECT (COUNT(DISTINCT ?item) AS ?n) WHERE {{ {members} }}"
        return int(client.select(query, "members")[0]["n"])

    def _shares(
        self, client: SparqlClient, patterns: str, what: str, least: float, family: str
    ) -> list[dict[str, str]]:
        """The classes, properties or values that enough members have, by falling number."""
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
        """Identifiers, pictures and the like, where the endpoint tells the properties' types."""
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
            if row["type"].rpartition("#")[2] in UNTOLD_TYPES
        }
        dropped["property that is no fact in words"] += len(found)
        return found

    def _config(self) -> dict[str, object]:
        shown = {
            "domain": self.domain,
            "endpoint": self.endpoint,
            "population": self.population,
            "threshold": self.threshold,
            "most": self.most,
            "limit": self.limit,
        }
        if self.writer is not None:
            shown["writer"] = {
                **self.writer.identity,
                "samples": self.samples,
                "number": self.number,
                **self.sampling,
                "prompt_sha256": Prompt(PROMPT).sha256,
            }
        return shown


def _claim(
    kind: str, prop: str, row: dict[str, str], total: int, known: dict[str, str]
) -> BleachedClaim | None:
    """A fact with its numbers; ``None`` where the knowledge base has no words for it."""
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
    """A fact as a template; ``None`` where the knowledge base has no words for it."""
    if kind == "property" and prop in PROPERTY_CLAIMS:
        return PROPERTY_CLAIMS[prop]
    label = known.get(WD + prop)
    told = known.get(value)
    if kind == "class":
        return told and f"{TOPIC} is {with_article(told)}."
    if kind == "property":
        return label and f"{TOPIC} has {with_article(label)}."
    return label and told and f"The {label} of {TOPIC} is {told}."


def _card(domain: str, claims: Sequence[BleachedClaim], left_out: int) -> Card:
    rows = "\n".join(
        f"| {claim.text} | {claim.source} | {claim.fact or ''} | {claim.count} / {claim.of} |"
        for claim in claims
    )
    return Card(
        pretty_name=f"Bleached claims: {domain}",
        configs={"bleached": {"train": "bleached.jsonl"}},
        task_categories=("text-generation",),
        tags=("factuality", "informativeness", "wikidata"),
        text=CARD.format(domain=domain, rows=rows, left_out=left_out, total=len(claims)),
    )


CARD = """\
Statements that are true of almost anything that is {domain}, with `{{topic}}` for its name. Core
(2407.03572, section 4.2) asks how likely a claim is given such a statement: what is likely says
little. `bleached.txt` is the file for its `bleached` option; it has room for {total} − {left_out}
of these:

| statement | source | fact | holds for |
|---|---|---|---|
{rows}

`kb/…`: counted over the population of the manifest's `config`; a share below one means that the
knowledge base does not hold it of some, not that it is false of them. `model`: written by the
language model of the manifest, counted over its answers; **nobody checked that they are true of
every member**, so read them before use. No member's name and no label is in here.
"""
