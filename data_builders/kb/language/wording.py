"""The wording bank (``wording/*.yaml``) and the conversion of templates to sentences.

Template language: ``{X}`` the person as subject, ``{X's}`` possessive, ``{Xm}`` object; ``{he}
{his} {him} {self}`` always pronouns; ``{was}`` and ``{has}`` agree with tense and subject,
``{was!}`` is always past; ``[works|worked]`` present or past; ``{v}`` and other slots a value, ``{a
v}`` the value with its article.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from data_builders.kb.facts import Person

FOLDER = Path(__file__).parent / "wording"

PRONOUNS = {
    "male": {"he": "he", "his": "his", "him": "him", "self": "himself"},
    "female": {"he": "she", "his": "her", "him": "her", "self": "herself"},
    "they": {"he": "they", "his": "their", "him": "them", "self": "themselves"},
}
# Words after which {X} is the subject of a clause and may be a pronoun.
BEFORE_SUBJECT = frozenset(
    {
        "that",
        "where",
        "when",
        "what",
        "which",
        "who",
        "if",
        "day",
        "year",
        "country",
        "place",
        "passport",
        "team",
        "honours",
        "school",
    }
)
# Countries in which the family name often comes first or does not exist: no short names.
FAMILY_FIRST = frozenset(
    {
        "China",
        "Taiwan",
        "Japan",
        "South Korea",
        "North Korea",
        "Korea",
        "Vietnam",
        "Hungary",
        "Mongolia",
        "Indonesia",
        "Iceland",
    }
)
_NUMERAL = re.compile(r"^([IVX]+|Jr\.?|Sr\.?|\W*)$")
_TENSE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_SLOT = re.compile(r"\{([^{}]+)\}")
# Verbs in the third person of either tense: no "they" before them.
_FIXED_VERB = re.compile(r"\{X\} (has|is|was|bears|features|attracts|appears)\b")
_UNLISTED = re.compile(r"^(\w+) \(([\d.]+)\): (.+)$")
_OF_ONE_SEX = re.compile(
    rf"\b(?:{'|'.join(word for sex in ('male', 'female') for word in PRONOUNS[sex].values())})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Voice:
    """How a sentence refers to its person.

    Attributes:
        form: ``full``, ``surname``, ``pronoun`` or ``they``.
        past: past rather than present tense.
    """

    form: str = "full"
    past: bool = True


@dataclass(frozen=True)
class Unlisted:
    """A specific statement outside the knowledge base, in several paraphrases.

    Attributes:
        kind: entries of different kinds are unrelated.
        prior: fixed estimate of the share of people of whom it is true.
    """

    kind: str
    prior: float
    paraphrases: tuple[str, ...]


@cache
def bank(name: str) -> dict:
    """Load one file of the bank; blocks of text become tuples of lines."""

    def lines(value: object) -> object:
        if isinstance(value, str):
            return tuple(line.strip() for line in value.splitlines() if line.strip())
        if isinstance(value, dict):
            return {key: lines(item) for key, item in value.items()}
        return value

    return lines(yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))


@cache
def lexicon(name: str) -> dict[str, tuple[str, ...]]:
    """Map the labels of ``occupations``, ``countries`` or ``broader`` to their derived forms."""
    forms_of = {}
    for line in bank("lexicon")[name]:
        label, _, forms = line.partition(": ")
        forms_of[label] = tuple(form.strip() for form in forms.split("|"))
    return forms_of


@cache
def unlisted(split: str) -> tuple[Unlisted, ...]:
    """Load the unlisted statements of a split."""
    entries = []
    for line in bank("unlisted")[split]:
        kind, prior, texts = _UNLISTED.match(line).groups()
        entries.append(Unlisted(kind, float(prior), tuple(t.strip() for t in texts.split(" ; "))))
    return tuple(entries)


def short_name(person: Person) -> str:
    """Return the last word of a name, or the whole name if that may not be the surname."""
    words = person.name.split()
    countries = {value.label for value in person.facts.get("P27", ())}
    if len(words) < 2 or _NUMERAL.match(words[-1]) or countries & FAMILY_FIRST:
        return person.name
    return words[-1]


def with_article(text: str) -> str:
    """Prefix ``a`` or ``an``."""
    vowel = text[0].lower() in "aeiou" and not re.match(r"(?i)(uni|eu|one|use)", text)
    return f"{'an' if vowel or re.match(r'(?i)(honest|hour)', text) else 'a'} {text}"


def allows_pronoun(template: str) -> bool:
    """Whether ``he`` could replace every ``{X}``."""
    for match in re.finditer(r"\{X\}", template):
        before, after = template[: match.start()].rstrip(), template[match.end() : match.end() + 2]
        if after[:1] == "," or after == " (":
            return False
        if before and before[-1] != "," and before.split()[-1] not in BEFORE_SUBJECT:
            return False
    return True


def reveals_sex(text: str) -> bool:
    """Whether a pronoun of the text reveals the sex of its subject: "when she died"."""
    return bool(_OF_ONE_SEX.search(text))


def slots_of(template: str) -> set[str]:
    """Return the names of the value slots of a template."""
    reserved = {"X", "X's", "Xm", "he", "his", "him", "self", "was", "was!", "has", "s"}
    return {key.removeprefix("a ") for key in _SLOT.findall(template)} - reserved


def speak(template: str, person: Person, voice: Voice, slots: Mapping[str, str]) -> str:
    """Fill a template, without capitalizing its start (for use inside a sentence).

    The name replaces a pronoun that the template does not allow; ``they`` is past tense only.
    """
    form = voice.form
    if form in ("pronoun", "they") and not allows_pronoun(template):
        form = "full"
    if form == "they" and (_FIXED_VERB.search(template) or "{he}" in template):
        form = "pronoun"
    plural = form == "they" or not person.sex
    pronouns = PRONOUNS["they" if plural else person.sex]
    past = voice.past or plural
    name = person.name if form == "full" else short_name(person)
    if form in ("pronoun", "they"):
        words = {"X": pronouns["he"], "X's": pronouns["his"], "Xm": pronouns["him"]}
    else:
        words = {"X": name, "X's": f"{name}'s", "Xm": name}
    text = _TENSE.sub(lambda m: m[2] if past else m[1], template)

    def fill(match: re.Match) -> str:
        key = match[1]
        if key in ("was", "was!"):
            subject = text[: match.start()].rstrip()
            is_plural = plural and (
                subject.endswith("{he}")
                or (subject.endswith("{X}") and form in ("pronoun", "they"))
            )
            return ("were" if is_plural else "was") if past or key == "was!" else "is"
        if key == "has":
            return "had" if past else "has"
        if key in words:
            return words[key]
        if key in pronouns:
            return pronouns[key]
        return with_article(slots[key[2:]]) if key.startswith("a ") else slots[key]

    return _SLOT.sub(fill, text)


def capital(text: str) -> str:
    """Capitalize the first letter."""
    return text[:1].upper() + text[1:]


def frame(template: str, sentence: str, person: Person, keep: tuple[str, ...] = ()) -> str:
    """Insert a sentence into a frame; ``keep`` lists values that keep their capital."""
    proper = (person.name, short_name(person), *keep)
    inner = sentence if sentence.startswith(proper) else sentence[:1].lower() + sentence[1:]
    return template.replace("{s}", inner)


def any_voice(rng: random.Random, named: bool = False) -> Voice:
    """Draw a voice; ``named`` restricts it to full name and surname."""
    forms = ("full", "surname") if named else ("full", "surname", "pronoun", "they")
    weights = (7, 3) if named else (50, 20, 26, 4)
    return Voice(rng.choices(forms, weights)[0], rng.random() < 0.6)


def bleached(
    rng: random.Random, split: str, person: Person, voice: Voice, template: str | None = None
) -> str:
    """Draw a statement that is true of anyone."""
    chosen = template or rng.choice(bank("bleached")[split])
    return capital(speak(chosen, person, voice, {}))


def fillers(rng: random.Random, split: str) -> dict[str, str]:
    """Draw a generic filler for every slot of the unlisted statements."""
    return {name: rng.choice(values) for name, values in bank("slots")[split].items()}
