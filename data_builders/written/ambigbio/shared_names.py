"""Names that several people share, from a wiki's disambiguation pages (2402.05629, section 2.1).

The pages of the category are read in a seeded order until enough qualify, which samples uniformly
without reading the whole category. A page qualifies if it links to at least two people who share
its name: see :func:`shares_name`.
"""

import re
from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import Field
from tqdm import tqdm

from clients.mediawiki import TITLES_PER_REQUEST, MediaWiki, Page
from clients.pageviews import PageViews
from clients.polite import chunks
from components.english import without_qualifier
from components.words import name_key
from records import UserError, read_records, sha256_text
from records.types import Record, Text

QUERY = "Tell me a bio of {name}"
LEAST_PEOPLE = 2

# Categories of people on the English Wikipedia and wikis with its conventions.
_PERSON = re.compile(
    r"\w+:((Possibly )?living people"
    r"|\d.* (births|deaths)"
    r"|(Year|Date|Place) of (birth|death) (missing|unknown|uncertain).*)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"\s*\(disambiguation\)$", re.IGNORECASE)
# Disambiguating parts of a title besides "(surgeon)": ", 1st Baronet", "Jr", "Sir".
_JUNIOR = re.compile(r",?\s+(Jr|Sr)\.?$")
_TITLES = re.compile(r"^(Sir|Dame|Lord|Lady)\s+", re.IGNORECASE)
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


class Candidate(Record):
    """The page of a person with a shared name; ``views`` are those of the requested months."""

    title: Text
    pageid: int | None = None
    revision: int | None = None
    wikibase_item: str | None = None
    views: int | None = None


class Name(Record):
    """A name that several people share, with its disambiguation page and their pages."""

    name: Text
    page: str | None = None
    revision: int | None = None
    candidates: list[Candidate] = Field(default_factory=list)
    group: str | None = None
    bin: str | None = None


def read_names(path: Path, limit: int | None) -> list[Name]:
    """Read names from a file of a build, or any file with one ``name`` per row."""
    names = read_records(path, Name)[:limit]
    duplicates = [name for name, count in Counter(n.name for n in names).items() if count > 1]
    if duplicates:
        raise UserError(f"{path}: {duplicates[0]!r} occurs more than once; keep one row")
    return names


def find_names(
    wiki: MediaWiki, category: str, sample: int, seed: int, dropped: Counter[str]
) -> list[Name]:
    """Sample names of a category's disambiguation pages, in a seeded order.

    Args:
        wiki: client of the wiki.
        category: title of the category.
        sample: number of names.
        seed: seed of the order.
        dropped: counts skipped pages (``name …``) and links (``link …``).
    """
    members = dict.fromkeys(wiki.members(category))
    titles = sorted(members, key=lambda title: (sha256_text(f"{seed}:{title}"), title))
    names: dict[str, Name] = {}
    seen = 0
    with tqdm(total=sample, desc="names", unit="name", disable=None) as bar:
        for part in chunks(titles, TITLES_PER_REQUEST):
            if len(names) >= sample:
                break
            seen += len(part)
            for name in _names_of(wiki, part, dropped):
                if name.name in names:
                    dropped["name that another page has too"] += 1
                elif len(names) >= sample:
                    dropped["name beyond the sample"] += 1
                else:
                    names[name.name] = name
                    bar.update()
    dropped["name beyond the sample"] += len(titles) - seen
    if not names:
        raise UserError(
            f"{category}: no name of {LEAST_PEOPLE} people on {len(titles)} pages; "
            "check category and api"
        )
    return list(names.values())


def _names_of(wiki: MediaWiki, titles: Sequence[str], dropped: Counter[str]) -> Iterator[Name]:
    params = {"prop": "links|revisions", "plnamespace": 0, "pllimit": "max", "rvprop": "ids"}
    skipped: Counter[str] = Counter()
    pages: dict[str, Page] = {}
    for _, page in wiki.pages(titles, params, "disambiguation pages", skipped):
        skipped["duplicate page"] += page["title"] in pages
        pages.setdefault(page["title"], page)
    _add_reasons(dropped, skipped, "name")
    links = list(dict.fromkeys(link for page in pages.values() for link in _links(page)))
    linked = _read_linked(wiki, links, dropped)
    people = {page["title"] for page in linked.values() if _is_person(page)}
    for page in pages.values():
        name = _SUFFIX.sub("", page["title"])
        candidates = []
        for other, titles in _linked_people(page, linked):
            if other["title"] not in people:
                dropped["link to a page that is not a person"] += 1
            elif not shares_name(name, titles):
                dropped["link to a person of another name"] += 1
            else:
                candidates.append(_candidate(other))
        if len(candidates) < LEAST_PEOPLE:
            dropped[f"name that fewer than {LEAST_PEOPLE} people share"] += 1
        else:
            revision = page["revisions"][0]["revid"]
            yield Name(name=name, page=page["title"], revision=revision, candidates=candidates)


def _linked_people(page: Page, linked: dict[str, Page]) -> list[tuple[Page, list[str]]]:
    linked_pages: dict[str, tuple[Page, list[str]]] = {}
    for link in _links(page):
        other = linked.get(link)
        if other is not None and other["title"] != page["title"]:
            titles = [other["title"], *(entry["title"] for entry in other.get("redirects", ()))]
            linked_pages.setdefault(other["title"], (other, titles))[1].append(link)
    return list(linked_pages.values())


def _read_linked(wiki: MediaWiki, links: Sequence[str], dropped: Counter[str]) -> dict[str, Page]:
    params = {
        "prop": "categories|pageprops|redirects|revisions",
        "cllimit": "max",
        "ppprop": "wikibase_item",
        "rdlimit": "max",
        "rdnamespace": 0,
        "rvprop": "ids",
    }
    skipped: Counter[str] = Counter()
    pages = dict(wiki.pages(links, params, "linked pages", skipped))
    _add_reasons(dropped, skipped, "link")
    return pages


def shares_name(name: str, titles: Iterable[str]) -> bool:
    """Return whether a person has exactly this name.

    The page's title or a redirect to it must equal the name after removing a final parenthesis,
    text after a comma, Sir, Dame, Lord, Lady, Jr and Sr, ignoring case and Unicode forms.
    "John Bruce Williamson" does not match "John Bruce".
    """
    return name_key(name) in {form for title in titles for form in _forms(title)}


def _forms(title: str) -> Iterator[str]:
    bare = without_qualifier(title)
    for form in (title, bare, _JUNIOR.sub("", bare), bare.partition(",")[0]):
        yield name_key(form)
        yield name_key(_TITLES.sub("", form))


def _is_person(page: Page) -> bool:
    return any(_PERSON.fullmatch(entry["title"]) for entry in page.get("categories", ()))


def _candidate(page: Page) -> Candidate:
    return Candidate(
        title=page["title"],
        pageid=page["pageid"],
        revision=page["revisions"][0]["revid"],
        wikibase_item=page.get("pageprops", {}).get("wikibase_item"),
    )


def _links(page: Page) -> list[str]:
    return [link["title"] for link in page.get("links", ())]


def _add_reasons(dropped: Counter[str], skipped: Counter[str], kind: str) -> None:
    for reason, count in skipped.items():
        dropped[f"{kind}: {reason}"] += count


def with_views(names: Sequence[Name], client: PageViews, months: tuple[str, str]) -> list[Name]:
    """Add page views to the candidates (2402.05629, section 5.3).

    Args:
        months: first and last month, ``YYYY-MM``.
    """
    first, last = (month.replace("-", "") for month in months)
    start, end = f"{first}01", f"{last}{monthrange(int(last[:4]), int(last[4:]))[1]:02}"
    titles = list(dict.fromkeys(c.title for name in names for c in name.candidates))
    bar = tqdm(titles, desc="page views", unit="page", disable=None)
    views = {title: client.views(title, start, end) for title in bar}
    return [
        name.model_copy(
            update={
                "candidates": [
                    c.model_copy(update={"views": views[c.title]}) for c in name.candidates
                ]
            }
        )
        for name in names
    ]


def check_months(months: tuple[str, str]) -> None:
    if not all(_MONTH.fullmatch(month) for month in months) or months[0] > months[1]:
        raise UserError(
            f"views: expected first and last month, e.g. [2023-01, 2023-12], got {list(months)}"
        )


def csv_text(names: Sequence[Name]) -> str:
    """Format names as in AmbigBio.csv: prompt, tab, a Python list with the name."""
    rows = ((QUERY.format(name=name.name), repr([name.name])) for name in names)
    return "".join(f"{prompt}\t{name_list}\n" for prompt, name_list in rows)
