"""What stands in the test wiki: pages of people of the snapshot, in the shapes that Wikipedia has.

Facts about people come from the snapshot and nothing else; the sentences are ours. What is made up
is only the shape around them: each disambiguation page may also name a ship, a film or an album,
which exist in this wiki alone and whose pages say so.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from tests.kb_people import Person, Value

CATEGORY = "Category:Human name disambiguation pages"
NAMES_OF_TWO = 15  # names that three share are all in, of those that two share the first so many
MOMENT = "2024-01-01T00:00:00Z"
MONTHS = [f"{year}{month:02}" for year in (2023, 2024) for month in range(1, 13)]

TEMPLATES = {
    # Wikipedia's marks a page in the same way: the switch and the category come from the template.
    "Template:Hndis": "<includeonly>{{Human name box}}__DISAMBIG__"
    f"[[{CATEGORY}|{{{{{{1|}}}}}}]]</includeonly>",
    "Template:Human name box": '<div class="noprint">This page lists people of one name.</div>',
    "Template:Infobox person": '{| class="infobox"\n! {{{name}}}\n|-\n| Born || {{{born|}}}\n'
    "|-\n| Died || {{{died|}}}\n|}",
    "Template:Other people": '<div class="hatnote">For others of this name, see [[{{{1}}}]].</div>',
}


@dataclass
class Pages:
    """The wiki's contents.

    Attributes:
        texts: title to wikitext, in the order of the page ids.
        people: title of each person's page to the person.
        names: title of each page of ``CATEGORY`` to the titles of the people linked there,
            redirects followed, sorted; people of another name under "See also" are not among them.
        redirects: title to its target.
        views: title to its page views by month (``202301`` …); a month without a view is absent,
            and so is a page without any.
    """

    texts: dict[str, str] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    views: dict[str, dict[str, int]] = field(default_factory=dict)

    def dump(self) -> str:
        """All pages as MediaWiki's XML export."""
        pages = "\n".join(
            f"<page><title>{escape(title)}</title><ns>{_namespace(title)}</ns><id>{number}</id>"
            f"<revision><id>{number}</id><timestamp>{MOMENT}</timestamp>"
            "<contributor><username>Maker</username></contributor>"
            "<model>wikitext</model><format>text/x-wiki</format>"
            f'<text xml:space="preserve">{escape(text)}</text></revision></page>'
            for number, (title, text) in enumerate(self.texts.items(), 1)
        )
        return (
            '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" '
            f'xml:lang="en">\n{pages}\n</mediawiki>\n'
        )


def make_pages(people: Sequence[Person]) -> Pages:
    """The contents for the snapshot's people; the same people give the same pages."""
    by_name: defaultdict[str, list[Person]] = defaultdict(list)
    for person in sorted(people, key=lambda p: p.title):
        by_name[person.name].append(person)
    taken = {person.title for person in people} | set(by_name)
    shared = {
        name: people_of_name
        for name, people_of_name in sorted(by_name.items())
        if len(people_of_name) > 1
    }
    threes = [name for name, people_of_name in shared.items() if len(people_of_name) > 2]
    twos = [name for name, people_of_name in shared.items() if len(people_of_name) == 2][
        :NAMES_OF_TWO
    ]
    alone = next(
        name for name, people_of_name in sorted(by_name.items()) if len(people_of_name) == 1
    )
    made = Pages(texts=dict(TEMPLATES))
    for number, name in enumerate(sorted([*threes, *twos, alone])):
        _add_name(made, name, by_name[name], number, taken)
    _add_the_rest(made)
    made.views = _views(made)
    return made


def _add_name(made: Pages, name: str, people: list[Person], number: int, taken: set[str]) -> None:
    """The people's pages, their disambiguation page, and what else it links to."""
    plain = any(person.title == name for person in people)
    title = f"{name} (disambiguation)" if plain else name
    if not plain and number % 4 == 0:
        made.redirects[f"{name} (disambiguation)"] = name
    for person in people:
        made.people[person.title] = person
        made.texts[person.title] = _article(person, people, title)
    made.names[title] = sorted(person.title for person in people)
    links = {person.title: f"[[{person.title}]]" for person in people}
    for person in people:
        alias = next((a for a in person.aliases if a not in taken | set(made.redirects)), None)
        if alias and person.title != name and number % 4 == 1:
            made.redirects[alias] = person.title
            links[person.title] = f"[[{alias}]]"  # only through the redirect
    # As on Wikipedia, "See also" may lead to somebody of a similar name.
    other = next(iter(made.people)) if number % 8 == 5 else None
    made.texts[title] = _disambiguation(name, people, links, number, other)
    if number % 3 == 0:
        made.texts[f"MV {name}"] = _stand_in("a ship")
    for source in [s for s in made.redirects if s not in made.texts]:
        made.texts[source] = f"#REDIRECT [[{made.redirects[source]}]]"


def _disambiguation(
    name: str, people: list[Person], links: dict[str, str], number: int, other: str | None
) -> str:
    """As on Wikipedia: whoever has the plain title stands before the list, things come after."""
    *first_names, family = name.split()
    first = [person for person in people if person.title == name]
    lines = [f"{_bold(links[name])} {_years(p)} was {_kinds(p)}.\n" for p in first]
    lines.append(f"'''{name}''' may {'also ' if first else ''}refer to:\n")
    for index, person in enumerate(p for p in people if p.title != name):
        link = links[person.title]
        if index == 0 and number % 5 == 1:
            link = link.replace("]]", "#Life|" + name + "]]")
        countries = " and ".join(f"[[{v.label}]]" for v in person.facts.get("P27", ()))
        source = f" from {countries}" if countries and number % 2 else ""
        lines.append(f"* {link} {_years(person)}, {_kinds(person)}{source}")
    if number % 3 == 0:
        lines.append(f"* [[MV {name}]], a ship")
    if number % 3 == 1:
        lines.append(f"* ''[[The {family} Story]]'', a film about [[{people[0].title}|{name}]]")
    if number % 4 == 2:
        lines.append("* ''[[Songs of a Test Wiki]]'', an album")
    lines.append(f"\n== See also ==\n* [[{family} (surname)]]\n* [[Mercury (disambiguation)]]")
    lines += [f"* [[{other}]]"] if other else []
    lines.append(f"\n{{{{hndis|{family}, {' '.join(first_names)}}}}}")
    return "\n".join(lines)


def _add_the_rest(made: Pages) -> None:
    made.texts["Songs of a Test Wiki"] = _stand_in("an album")
    # A disambiguation page, but of no human name.
    made.texts["Mercury (disambiguation)"] = (
        "'''Mercury''' may refer to:\n* [[Mercury (planet)]]\n* [[Mercury (element)]]\n\n"
        "__DISAMBIG__\n[[Category:Disambiguation pages]]"
    )
    # Members of the category that are no pages of names: a category within it, and a talk page.
    made.texts[CATEGORY] = "Pages that list people of one name."
    made.texts["Category:Human name disambiguation pages in need of work"] = f"[[{CATEGORY}]]"
    made.texts["Talk:Robert Taylor"] = f"Is this page needed? [[{CATEGORY}]]"


def _article(person: Person, namesakes: list[Person], disambiguation: str) -> str:
    born, died = (_dates(person, prop) for prop in ("P569", "P570"))
    key = person.iri.rsplit("/", 1)[1]
    parts = [
        f"{{{{Other people|{disambiguation}}}}}" if len(namesakes) > 1 else "",
        f"{{{{Infobox person|name={person.name}|born={born}|died={died}}}}}"
        f"{{{{#wikibaseitem:{key}}}}}",
        f"'''{person.name}''' {_years(person)} was {_kinds(person)}{_from(person)}."
        f"<ref>Entry ''{key}'' of the embedded snapshot.</ref>{_known_as(person)}",
        "== Life ==",
        *_life(person),
        "== Work ==",
        *_work(person),
    ]
    other_people = [other for other in namesakes if other is not person]
    if other_people:
        parts += ["== People of the same name ==", *(_beside(person, o) for o in other_people)]
    parts += ["== References ==\n<references />", _categories(person)]
    return "\n\n".join(part for part in parts if part)


def _life(person: Person) -> Iterable[str]:
    he, his = _pronouns(person)
    name = person.name
    for event, prop, where in (("born", "P569", "P19"), ("died", "P570", "P20")):
        verb = "was born" if event == "born" else "died"
        when = " or ".join(_on(value) for value in person.facts.get(prop, ()))
        places = _linked(person.facts.get(where, ()), " or ")
        if not when and not places:
            continue
        text = f"{name} {verb}{' ' + when if when else ''}{' in ' + places if places else ''}."
        if places:
            text += f" The place where {he} {verb} is given as {places} in the snapshot."
        if when and (years := [v.year for v in person.facts[prop] if v.year > 0]):
            text += f" The year {years[0]} belongs to the {_century(years[0])} century."
        yield text
    born, died = (_year(person, prop) for prop in ("P569", "P570"))
    if born and died:
        yield (
            f"From the year of {his} birth to the year of {his} death {died - born} years went by. "
            f"In {died - (died - born) // 2}, in the middle of that time, {he} was about "
            f"{(died - born + 1) // 2} years old."
        )
    if schools := _linked(person.facts.get("P69", ())):
        yield f"As a student {name} went to {schools}. No other school is named in the snapshot."


def _work(person: Person) -> Iterable[str]:
    he, his = _pronouns(person)
    name = person.name
    jobs = person.facts.get("P106", ())
    for job in jobs:
        yield f"{name} was {_a(job.label)}. This page keeps {his} work as {_a(job.label)} apart."
    if countries := _linked(person.facts.get("P27", ())):
        yield (
            f"{he.capitalize()} was a citizen of {countries}. "
            f"The snapshot gives {his} citizenship coarsely: the state a reader would look under."
        )
    if awards := _linked(person.facts.get("P166", ())):
        yield f"{name} received {awards}. The snapshot's list of {his} awards need not be complete."
    if teams := _linked(person.facts.get("P54", ())):
        yield f"{he.capitalize()} was a member of {teams}."


def _beside(person: Person, other: Person) -> str:
    """A namesake, who makes passages of the two hard to tell apart, as on Wikipedia."""
    text = f"[[{other.title}|{other.name}]] {_years(other)} was another person, {_kinds(other)}"
    text += f"{_from(other)}."
    if places := _linked(other.facts.get("P19", ()), " or "):
        text += f" That {other.name} was born in {places}."
    birth_year, other_birth_year = _year(person, "P569"), _year(other, "P569")
    if birth_year and other_birth_year:
        gap = abs(birth_year - other_birth_year)
        order = "later" if other_birth_year > birth_year else "earlier"
        text += f" The two were born {gap} years apart; the other was born {order}." if gap else ""
    return text


def _categories(person: Person) -> str:
    category_lines = (
        [f"[[Category:{_year(person, 'P569')} births]]"] if _year(person, "P569") else []
    )
    category_lines += (
        [f"[[Category:{_year(person, 'P570')} deaths]]"] if _year(person, "P570") else []
    )
    category_lines += [f"[[Category:People from {v.label}]]" for v in person.facts.get("P27", ())]
    return "\n".join(category_lines)


def _views(made: Pages) -> dict[str, dict[str, int]]:
    """Page views by month: invented, more for the better known; one person has none."""
    views = {}
    unseen = min(made.people)
    for title in sorted({*made.people, *made.names, *made.redirects} - {unseen}):
        frequency = made.people[title].frequency // 4 if title in made.people else 0
        months = {month: frequency + _draw(title, month, 40) for month in MONTHS}
        views[title] = {month: count for month, count in months.items() if count}
    return views


def _draw(title: str, month: str, below: int) -> int:
    return int(hashlib.sha256(f"{title} {month}".encode()).hexdigest()[:8], 16) % below


def _stand_in(kind: str) -> str:
    return (
        f"This page stands for {kind} in a wiki made for tests. It tells nothing about the world."
    )


def _namespace(title: str) -> int:
    return {"Talk": 1, "Template": 10, "Category": 14}.get(title.split(":")[0], 0)


def _bold(text: str) -> str:
    return f"'''{text}'''"


def _a(noun: str) -> str:
    vowel = noun[0].lower() in "aeiou" and not noun.lower().startswith(("uni", "eu"))
    return f"{'an' if vowel else 'a'} {noun}"


def _kinds(person: Person) -> str:
    return " and ".join(_a(v.label) for v in person.facts.get("P106", ())) or "a person"


def _from(person: Person) -> str:
    countries = _linked(person.facts.get("P27", ()))
    return f" from {countries}" if countries else ""


def _known_as(person: Person) -> str:
    he, _ = _pronouns(person)
    return f" {he.capitalize()} is also known as {' and '.join(person.aliases)}." * bool(
        person.aliases
    )


def _linked(values: Iterable[Value], word: str = " and ") -> str:
    return word.join(f"[[{value.label}]]" for value in values)


def _pronouns(person: Person) -> tuple[str, str]:
    return ("she", "her") if person.sex == "female" else ("he", "his")


def _on(value: Value) -> str:
    return f"{'on' if ' ' in value.label.replace(' BC', '') else 'in'} {value.label}"


def _dates(person: Person, prop: str) -> str:
    return " or ".join(value.label for value in person.facts.get(prop, ())) or "?"


def _years(person: Person) -> str:
    return f"({_dates(person, 'P569')} – {_dates(person, 'P570')})"


def _year(person: Person, prop: str) -> int | None:
    return next((v.year for v in person.facts.get(prop, ()) if v.year and v.year > 0), None)


def _century(year: int) -> str:
    number = (year - 1) // 100 + 1
    tens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if tens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
