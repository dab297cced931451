"""Statements that the lead of an encyclopedia's article entails about its title, by rules.

Each rule reads one sentence; 195 of 200 statements that a language model read were right
(``tests/data_builders/lead_verdicts.csv``). A sentence that no rule reads yields nothing.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from components.english import with_article, without_qualifier
from components.sentences import split_sentences
from components.words import name_key
from data_builders.written.claims.clauses import capitalise, clause_of, strip_period

MAX_WORDS = 26  # of a statement that repeats a clause of the lead
_LIVED = re.compile(r"\((?P<born>\d{4}) ?[–-] ?(?P<died>\d{4})\)$")
_BORN = re.compile(r"\((?:born|b\.):? (?:\w+ )?(?P<born>\d{4})\)$", re.IGNORECASE)
_REIGNED = re.compile(
    r"(?P<v>[A-Z][\w’' -]+ (?:of|in) [\w’' -]+ from \d{3,4} (?:to|until) \d{3,4})"
)
_COPULA = re.compile(r"(?P<subject>[^;:()\"“]{2,160}?),? (?P<verb>was|is) (?P<rest>(?:an?|the) .+)")
_LIST_END = re.compile(
    r",? (?:who|whose|from|of|in|during|for|at|to|with|best|known|considered|active|widely|that"
    r"|which|on|by|best-known|credited|born|famous|regarded|under|most|noted|especially|nicknamed"
    r"|particularly|chiefly|primarily|the|notable|often|based|working|through|as|after|when|where"
    r"|since|until|turned|associated|and (?:is|was|has|had|the|one|an?))\b.*|[.;(,]+$|\s*[;(].*"
)
_JOINED = re.compile(r",? and |, ")
_ALIAS = re.compile(
    r", (?:also|commonly|better|usually|often|popularly|professionally|widely) (?:known|called)"
    r"(?: professionally| simply| mononymously)?(?: by (?:his|her) \w+ name)?(?: as)? "
    r"(?P<v>[A-Z][\w.’'-]+(?: (?:of |the |de |al-|ibn )*[A-Z][\w.’'-]+)*)"
    r"(?= or |, | and | was | is )"
)
_NAME = r"[A-Z][\w’'-]+"
_NOT_IN_KIND = (
    r"and|or|on|by|to|as|with|than|for|is|in|from|between|which|where|who|that|whose|present|spoken"
    r"|prevalent|native|based|existing|type|kind|set|group|part|form|number|\w+ed"
)
_KIND = re.compile(
    rf"(an? (?:(?!(?:{_NOT_IN_KIND}) )[\w’'-]+ ){{0,6}}(?!(?:{_NOT_IN_KIND})\b)[\w’'-]+)"
    r"(?= (?:that|which|who|consisting|located|in|from)\b|\.$)"
)
_AWARD = re.compile(
    rf"(?:was awarded|won|received|was the recipient of|is the recipient of) the "
    rf"(?P<v>(?:\d{{4}} )?{_NAME}(?: (?:of |for |in )?{_NAME})* (?:Prize|Medal|Award)"
    rf"(?: (?:in|for|of) {_NAME}(?:(?: or)? {_NAME})*)?)(?=[ ,.])"
)
_OFFICE = re.compile(
    rf"(?:served as|was) (?P<v>the (?:\d+(?:st|nd|rd|th) )?[a-z]+(?: [a-z]+)? of (?:the )?"
    rf"{_NAME}(?: {_NAME})*(?: and (?:the )?{_NAME}(?: {_NAME})*)?)"
    r"(?=,? (?:from|between|until|since)\b|\.)"
)
# A pronoun or a demonstrative of another sentence, or words that depend on one.
_ANAPHORIC = re.compile(
    r"\b(?:this|these|those|such|latter|former|then|therefore|thus|however|another|other|others|it"
    r"|its|they|them|their|there|same|both|here|later|instead|too)\b",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"\b(?:who|whom|whose|which|that|where|when|while|as|after|before|because|since|until|if|whether"
    r"|between|either|neither|both|not|never|although|though|than|but|to)\b"
)
_FINITE = (
    r"was|is|has|had|became|won|wrote|began|led|served|received|founded|played|died|married|moved"
    r"|went|made|took|spent|gave|invented|developed|published|established|introduced|studied|taught"
    r"|helped|remained|produced|created|directed|starred|released|ruled|reigned|discovered"
)
_SECOND = re.compile(rf",? and (?P<rest>(?:{_FINITE}) (?!by\b).+)")
_PUNCTUATED = re.compile(r"[;:()\"“”\[\]]")
# A sentence whose subject is the title, so that a pronoun after it is the title's.
_CONTINUES = re.compile(
    r"(?:He|She|Born|(?:His|Her) (?!(?:half-)?(?:brother|sister|father|mother|son"
    r"|daughter|wife|husband|uncle|nephew|successor|predecessor|teacher|student|rival)))\b"
)


class Lead(NamedTuple):
    """The lead of an article.

    Attributes:
        topic: category of the article, e.g. ``People``.
    """

    title: str
    description: str
    extract: str
    topic: str
    url: str | None = None
    source: str | None = None

    @property
    def name(self) -> str:
        return without_qualifier(self.title)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the passage; the first has the title and the description."""
        start = [f"{self.name}: {self.description}."] if self.description else []
        return [*start, *split_sentences(self.extract)]


class LeadStatement(NamedTuple):
    """A statement about a title.

    Attributes:
        sentence: 0-based index of the sentence that entails it.
        rule: the slot of ``wording``, or ``kind``, ``clause`` and ``second clause``.
        value: value of the slot, if the rule has one.
        reworded: the statement in other words.
        source: the sentence, in the words of the lead.
    """

    text: str
    sentence: int
    rule: str
    value: str = ""
    reworded: tuple[str, ...] = ()
    source: str = ""


@cache
def lead_words() -> dict:
    """Load the word lists; blocks of text are templates, one per line."""
    return yaml.safe_load((Path(__file__).parent / "lead_words.yaml").read_text(encoding="utf-8"))


@cache
def occupation_fields() -> dict[str, str]:
    """Map the last word of an occupation to its field."""
    fields = lead_words()["occupations"]
    return {word: field for field, words in fields.items() for word in words}


@cache
def nationalities() -> frozenset[str]:
    return frozenset(word for line in lead_words()["nationalities"] for word in line)


def say(slot: str, name: str, value: str, past: bool) -> tuple[str, ...]:
    """State the value of a slot in all its wordings."""
    return state_value(lead_words()["wording"][slot], name, value, past)


def state_value(templates: str, name: str, value: str, past: bool) -> tuple[str, ...]:
    """Fill templates, one per line, with a name and a value."""
    slots = {
        "X": name,
        "Xs": f"{name}'" if name.endswith("s") else f"{name}'s",
        "v": value,
        "a": with_article(value).split()[0],
        "is": "was" if past else "is",
        "has": "had" if past else "has",
        "holds": "held" if past else "holds",
        "serves": "served" if past else "serves",
    }
    return tuple(template.format(**slots) for template in templates.splitlines())


def lead_statements(lead: Lead) -> list[LeadStatement]:
    """Return the statements of a lead, each once, in the order of its sentences."""
    statements: dict[str, LeadStatement] = {}
    sentences = lead.sentences
    for statement in _statements(lead, sentences):
        source = sentences[statement.sentence]
        statements.setdefault(statement.text, statement._replace(source=source))
    return list(statements.values())


def is_past(lead: Lead, first_sentence: re.Match[str] | None) -> bool:
    """Return whether the article speaks of its title in the past tense."""
    if _LIVED.search(lead.description):
        return True
    if first_sentence is None:
        return _BORN.search(lead.description) is None
    return first_sentence["verb"] == "was"


def _statements(lead: Lead, sentences: Sequence[str]) -> Iterator[LeadStatement]:
    start = 1 if lead.description else 0
    subject = _COPULA.match(sentences[start]) if len(sentences) > start else None
    past = is_past(lead, subject)
    is_about = subject is not None and _names_title(lead, subject["subject"])
    slots = [] if lead.topic != "People" else list(_slots(lead, sentences, start, is_about))
    for index, slot, value in slots:
        first, *reworded = say(slot, lead.name, value, past or slot == "office")
        yield LeadStatement(first, index, slot, value, tuple(reworded))
    if is_about and lead.topic != "People":
        yield from _kind(lead, subject, start)
    if is_about:
        yield from _clauses(lead, sentences, start)


def _names_title(lead: Lead, subject: str) -> bool:
    words = set(re.findall(r"[\w’'-]{3,}", lead.name.lower())) or {lead.name.lower()}
    subject_words = set(re.findall(r"[\w’'-]+", subject.lower()))
    return bool(words & subject_words) and not re.search(r"\b(?:who|which|that|whose)\b", subject)


def _slots(
    lead: Lead, sentences: Sequence[str], start: int, is_about: bool
) -> Iterator[tuple[int, str, str]]:
    """Yield sentence, slot and value of what is stated about a person."""
    if start:
        yield from ((0, slot, value) for slot, value in _described(lead.description))
    if not is_about:
        return
    first = _COPULA.match(sentences[start])
    yield from ((start, slot, value) for slot, value in _occupations(first["rest"]))
    alias = _ALIAS.search(f"{first['subject']} was ")
    if alias and alias["v"] not in lead.name and lead.name not in alias["v"]:
        yield start, "alias", alias["v"].removesuffix(".")
    for index, subject in _subjects(lead, sentences, start):
        for slot, pattern in (("award", _AWARD), ("office", _OFFICE)):
            if match := pattern.match(sentences[index], subject):
                yield index, slot, match["v"]


def _described(description: str) -> Iterator[tuple[str, str]]:
    words = set(re.findall(r"[\w']+", description.lower()))
    lived = _LIVED.search(description) or _BORN.search(description)
    if lived and not words & set(lead_words()["offices"]):
        years = {name: int(year) for name, year in lived.groupdict().items()}
        if "died" not in years or 14 < years["died"] - years["born"] < 105:
            yield from ((slot, str(year)) for slot, year in years.items())
    if reigned := _REIGNED.fullmatch(description):
        yield "reign", reigned["v"]
    yield from _occupations(description.partition(" (")[0])


def _occupations(text: str) -> Iterator[tuple[str, str]]:
    """Yield nationality and occupations of ``a French philosopher, novelist and author of …``."""
    text = re.sub(r"^an? ", "", text)
    for number, item in enumerate(_JOINED.split(_LIST_END.sub("", text))):
        words = item.split()
        capitals = sum(word[0].isupper() for word in words)
        starts = [" ".join(words[:size]) for size in (2, 1)]
        adjective = next((start for start in starts if start in nationalities()), None)
        if number == 0 and adjective:
            yield "nationality", adjective
        lower = words[capitals:]
        if not 0 < len(lower) <= 3 or any(word[0].isupper() for word in lower):
            continue
        if lower[-1] in occupation_fields() and not set(lower) & set(lead_words()["privative"]):
            yield "occupation", " ".join(lower)


def _kind(lead: Lead, subject: re.Match[str], start: int) -> Iterator[LeadStatement]:
    """``X is a kind``: the predicate of the first sentence, up to a clause that restricts it."""
    match = _KIND.match(subject["rest"])
    if match is None:
        return
    titles = [f"{article}{lead.name}" for article in ("The ", "A ", "An ", "")]
    name = next((t for t in titles if name_key(t) == name_key(subject["subject"])), lead.name)
    if name != lead.name:
        name = subject["subject"]
    yield LeadStatement(f"{capitalise(name)} {subject['verb']} {match[1]}.", start, "kind")


def _subjects(lead: Lead, sentences: Sequence[str], start: int) -> Iterator[tuple[int, int]]:
    """Yield the index of each sentence about the title, and the end of its subject."""
    continued = True
    for index in range(start, len(sentences)):
        text = sentences[index]
        clause = _clause(lead, text) if index > start else None
        if index == start:
            end = _COPULA.match(text).end("subject") + 1
            yield index, end + (text[end] == " ")
        elif clause is not None and (continued or clause.subject not in ("He", "She")):
            yield index, len(clause.subject) + 1
        continued = index == start or clause is not None or bool(_CONTINUES.match(text))


def _clause(lead: Lead, text: str):
    clause = clause_of(text, lead.name)
    if clause is None:
        return None
    if clause.subject in ("He", "She"):
        pronouns = set(re.findall(r"\b(He|She)\b", lead.extract))
        return clause if lead.topic == "People" and len(pronouns) == 1 else None
    is_whole = clause.subject == lead.name
    return clause if is_whole or (lead.topic == "People" and " of " not in lead.name) else None


def _clauses(lead: Lead, sentences: Sequence[str], start: int) -> Iterator[LeadStatement]:
    """Whole clauses whose subject is the title, and the two parts of a coordination."""
    for index, subject in _subjects(lead, sentences, start):
        if index == start and lead.topic != "People" and not sentences[start].startswith(lead.name):
            continue
        rest = strip_period(sentences[index][subject:].strip())
        rest = rest.replace("was also ", "was ").replace("is also ", "is ").removeprefix("also ")
        if _PUNCTUATED.search(rest) or _ANAPHORIC.search(rest):
            continue
        second = _SECOND.search(rest)
        if second and not _SUBORDINATE.search(rest[: second.start()]):
            parts = [(rest[: second.start()], "clause"), (second["rest"], "second clause")]
        else:
            parts = [(rest, "clause")]
        for part, rule in parts:
            if 3 < len(part.split()) <= MAX_WORDS:
                yield LeadStatement(f"{lead.name} {part}.", index, rule)
