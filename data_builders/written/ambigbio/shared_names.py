"""Names that several people share, from a wiki's disambiguation pages (2402.05629, section 2.1).

The pages of the category are taken in a seeded order and looked at until enough of them are found
good, which draws evenly from all good ones without reading the whole category. A page is good when
at least two people are linked from it who share its name: see :func:`shares_name`.
"""

import re
import unicodedata
from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import Field
from tqdm import tqdm

from clients.mediawiki import TITLES_PER_REQUEST, MediaWiki, Page
from clients.pageviews import PageViews
from clients.polite import chunks
from records import UserError, read_records, sha256_text
from records.types import Record, Text

QUERY = "Tell me a bio of {name}"
LEAST_PEOPLE = 2

# Categories that only people have, on the English Wikipedia and on wikis made after it.
_PERSON = re.compile(
    r"\w+:((Possibly )?living people"
    r"|\d.* (births|deaths)"
    r"|(Year|Date|Place) of (birth|death) (missing|unknown|uncertain).*)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"\s*\(disambiguation\)$", re.IGNORECASE)
# What tells namesakes apart in a title: "(surgeon)", ", 1st Baronet", "Jr", "Sir".
_PARENTHESIS = re.compile(r"\s+\([^()]*\)$")
_JUNIOR = re.compile(r",?\s+(Jr|Sr)\.?$")
_TITLES = re.compile(r"^(Sir|Dame|Lord|Lady)\s+", re.IGNORECASE)
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


class Candidate(Record):
    """A person whom a name may mean.

    Attributes:
        title: of the page.
        pageid: its number in the wiki.
        revision: the page's revision when it was looked at.
        wikibase_item: id in Wikidata, where the wiki knows it.
        views: page views in the months that were asked for.
    """

    title: Text
    pageid: int | None = None
    revision: int | None = None
    wikibase_item: str | None = None
    views: int | None = None


class Name(Record):
    """A name that several people share.

    Attributes:
        page: title of the disambiguation page.
        revision: of that page when it was read.
        candidates: the people, in the order of the page's links.
        group, bin: group and bin of frequency, where a file of names says so.
    """

    name: Text
    page: str | None = None
    revision: int | None = None
    candidates: list[Candidate] = Field(default_factory=list)
    group: str | None = None
    bin: str | None = None


def read_names(path: Path, limit: int | None) -> list[Name]:
    """Names from a file that a build wrote, or any with a ``name`` a line.

    Raises:
        BadInput: a row that is no name.
    """
    found = read_records(path, Name)[:limit]
    twice = [name for name, count in Counter(n.name for n in found).items() if count > 1]
    if twice:
        raise UserError(f"{path}: {twice[0]!r} stands there more than once; keep one of them")
    return found


def find_names(
    wiki: MediaWiki,
    category: str,
    sample: int,
    seed: int,
    dropped: Counter[str],
) -> list[Name]:
    """A sample of the names of a category's disambiguation pages, in a seeded order.

    Args:
        wiki: where they are.
        category: its title.
        sample: how many.
        seed: of the order.
        dropped: counts pages (``name …``) and links (``link …``) that were left out.
    """
    members = dict.fromkeys(wiki.members(category))
    titles = sorted(members, key=lambda title: (sha256_text(f"{seed}:{title}"), title))
    found: dict[str, Name] = {}
    asked = 0
    with tqdm(total=sample, desc="names", unit="name", disable=None) as bar:
        for part in chunks(titles, TITLES_PER_REQUEST):
            if len(found) >= sample:
                break
            asked += len(part)
            for name in _names_of(wiki, part, dropped):
                if name.name in found:
                    dropped["name that another page has too"] += 1
                elif len(found) >= sample:
                    dropped["name beyond the sample"] += 1
                else:
                    found[name.name] = name
                    bar.update()
    dropped["name beyond the sample"] += len(titles) - asked
    if not found:
        raise UserError(
            f"{category}: {len(titles)} pages, none with {LEAST_PEOPLE} people of its name; "
            "check category and api"
        )
    return list(found.values())


def _names_of(
    wiki: MediaWiki,
    titles: Sequence[str],
    dropped: Counter[str],
) -> Iterator[Name]:
    params = {"prop": "links|revisions", "plnamespace": 0, "pllimit": "max", "rvprop": "ids"}
    gone: Counter[str] = Counter()
    pages: dict[str, Page] = {}
    for _, page in wiki.pages(titles, params, "disambiguation pages", gone):
        gone["page that two titles lead to"] += page["title"] in pages
        pages.setdefault(page["title"], page)
    _add(dropped, gone, "name")
    links = list(dict.fromkeys(link for page in pages.values() for link in _links(page)))
    linked = _linked(wiki, links, dropped)
    people = {page["title"] for page in linked.values() if _in_a_category_of_people(page)}
    for page in pages.values():
        name = _SUFFIX.sub("", page["title"])
        own = []
        for other, titles in _ends(page, linked):
            if other["title"] not in people:
                dropped["link to something else than a person"] += 1
            elif not shares_name(name, titles):
                dropped["link to a person of another name"] += 1
            else:
                own.append(_candidate(other))
        if len(own) < LEAST_PEOPLE:
            dropped[f"name that fewer than {LEAST_PEOPLE} people share"] += 1
        else:
            revision = page["revisions"][0]["revid"]
            yield Name(name=name, page=page["title"], revision=revision, candidates=own)


def _ends(page: Page, linked: dict[str, Page]) -> list[tuple[Page, list[str]]]:
    found: dict[str, tuple[Page, list[str]]] = {}
    for link in _links(page):
        other = linked.get(link)
        if other is not None and other["title"] != page["title"]:
            titles = [other["title"], *(entry["title"] for entry in other.get("redirects", ()))]
            found.setdefault(other["title"], (other, titles))[1].append(link)
    return list(found.values())


def _linked(wiki: MediaWiki, links: Sequence[str], dropped: Counter[str]) -> dict[str, Page]:
    params = {
        "prop": "categories|pageprops|redirects|revisions",
        "cllimit": "max",
        "ppprop": "wikibase_item",
        "rdlimit": "max",
        "rdnamespace": 0,
        "rvprop": "ids",
    }
    gone: Counter[str] = Counter()
    found = dict(wiki.pages(links, params, "linked pages", gone))
    _add(dropped, gone, "link")
    return found


def shares_name(name: str, titles: Iterable[str]) -> bool:
    """Whether a person has the very name.

    One of the titles that lead to the page must be the name: the page's own, or a redirect to it,
    without what stands in parentheses or after a comma at its end and without Sir, Dame, Lord,
    Lady, Jr and Sr. Case and Unicode forms do not count. "John Bruce Williamson" is no John Bruce.
    """
    return _plain(name) in {form for title in titles for form in _forms(title)}


def _forms(title: str) -> Iterator[str]:
    bare = _PARENTHESIS.sub("", title)
    for form in (title, bare, _JUNIOR.sub("", bare), bare.partition(",")[0]):
        yield _plain(form)
        yield _plain(_TITLES.sub("", form))


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _in_a_category_of_people(page: Page) -> bool:
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


def _add(dropped: Counter[str], gone: Counter[str], kind: str) -> None:
    for reason, count in gone.items():
        dropped[f"{kind}: {reason}"] += count


def with_views(names: Sequence[Name], client: PageViews, months: tuple[str, str]) -> list[Name]:
    """The names with the page views of their candidates (2402.05629, section 5.3).

    Args:
        months: the first and the last, ``YYYY-MM``.
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
    """Refuse what is no span of months."""
    if not all(_MONTH.fullmatch(month) for month in months) or months[0] > months[1]:
        raise UserError(
            f"views: {list(months)}; give the first and the last month, e.g. [2023-01, 2023-12]"
        )


def csv_text(names: Sequence[Name]) -> str:
    """The names in the form of AmbigBio.csv: prompt, tab, a Python list with the name."""
    rows = ((QUERY.format(name=name.name), repr([name.name])) for name in names)
    return "".join(f"{prompt}\t{listed}\n" for prompt, listed in rows)
