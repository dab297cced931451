"""The wording bank (``wording/*.yaml``) and how a template becomes a sentence.

Template language: ``{X}`` the person as a subject, ``{X's}`` possessive, ``{Xm}`` as an object;
``{he} {his} {him} {self}`` always pronouns; ``{was}`` and ``{has}`` follow tense and subject,
``{was!}`` is always past; ``[works|worked]`` present or past; ``{v}`` and other slots a value,
``{a v}`` the value with its article.
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
# Words after which {X} is the subject of a clause, so that a pronoun may stand there.
BEFORE_SUBJECT = frozenset(
    {"that", "where", "when", "what", "which", "who", "if", "day", "year", "country", "place"}
    | {"passport", "team", "honours", "school"}
)
# Where the family name often comes first, or there is none, a short form would be wrong.
FAMILY_FIRST = frozenset(
    {"China", "Taiwan", "Japan", "South Korea", "North Korea", "Korea", "Vietnam", "Hungary"}
    | {"Mongolia", "Indonesia", "Iceland"}
)
_NUMERAL = re.compile(r"^([IVX]+|Jr\.?|Sr\.?|\W*)$")
_TENSE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_SLOT = re.compile(r"\{([^{}]+)\}")
# A verb in the third person that does not change with the tense: no "they" before it.
_FIXED_VERB = re.compile(r"\{X\} (has|is|was|bears|features|attracts|appears)\b")
_UNLISTED = re.compile(r"^(\w+) \(([\d.]+)\): (.+)$")
_OF_ONE_SEX = re.compile(
    rf"\b(?:{'|'.join(word for sex in ('male', 'female') for word in PRONOUNS[sex].values())})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Voice:
    """How a sentence names its person.

    Attributes:
        form: ``full``, ``surname``, ``pronoun`` or ``they``.
        past: past rather than present tense.
    """

    form: str = "full"
    past: bool = True


@dataclass(frozen=True)
class Unlisted:
    """A specific statement that the knowledge base does not hold, in several paraphrases.

    Attributes:
        kind: entries of different kinds have nothing to do with each other.
        prior: fixed guess at the share of people of whom it is true.
        paraphrases: templates that entail each other.
    """

    kind: str
    prior: float
    paraphrases: tuple[str, ...]


@cache
def bank(name: str) -> dict:
    """One file of the bank; blocks of text become tuples of lines."""

    def lines(value: object) -> object:
        if isinstance(value, str):
            return tuple(line.strip() for line in value.splitlines() if line.strip())
        if isinstance(value, dict):
            return {key: lines(item) for key, item in value.items()}
        return value

    return lines(yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))


@cache
def lexicon(name: str) -> dict[str, tuple[str, ...]]:
    """``occupations``, ``countries`` or ``broader``: label to its derived forms."""
    found = {}
    for line in bank("lexicon")[name]:
        label, _, forms = line.partition(": ")
        found[label] = tuple(form.strip() for form in forms.split("|"))
    return found


@cache
def unlisted(split: str) -> tuple[Unlisted, ...]:
    """The specific statements of a split."""
    found = []
    for line in bank("unlisted")[split]:
        kind, prior, texts = _UNLISTED.match(line).groups()
        found.append(Unlisted(kind, float(prior), tuple(t.strip() for t in texts.split(" ; "))))
    return tuple(found)


def short_name(person: Person) -> str:
    """The last word of a name; the whole name where that is a numeral or may be a given name."""
    words = person.name.split()
    countries = {value.label for value in person.facts.get("P27", ())}
    if len(words) < 2 or _NUMERAL.match(words[-1]) or countries & FAMILY_FIRST:
        return person.name
    return words[-1]


def with_article(text: str) -> str:
    """``a`` or ``an`` before a noun phrase."""
    vowel = text[0].lower() in "aeiou" and not re.match(r"(?i)(uni|eu|one|use)", text)
    return f"{'an' if vowel or re.match(r'(?i)(honest|hour)', text) else 'a'} {text}"


def allows_pronoun(template: str) -> bool:
    """Whether every ``{X}`` stands where ``he`` could stand."""
    for match in re.finditer(r"\{X\}", template):
        before, after = template[: match.start()].rstrip(), template[match.end() : match.end() + 2]
        if after[:1] == "," or after == " (":
            return False
        if before and before[-1] != "," and before.split()[-1] not in BEFORE_SUBJECT:
            return False
    return True


def tells_sex(text: str) -> bool:
    """Whether a pronoun of the text tells the sex of whom it is about: "when she died"."""
    return bool(_OF_ONE_SEX.search(text))


def slots_of(template: str) -> set[str]:
    """Names of the value slots that a template needs."""
    own = {"X", "X's", "Xm", "he", "his", "him", "self", "was", "was!", "has", "s"}
    return {key.removeprefix("a ") for key in _SLOT.findall(template)} - own


def speak(template: str, person: Person, voice: Voice, slots: Mapping[str, str]) -> str:
    """A template as text, without a capital at its start (for use inside a sentence).

    A pronoun gives way to the name where the template has no place for it; ``they`` is used in the
    past tense only.
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
            many = plural and (
                subject.endswith("{he}")
                or (subject.endswith("{X}") and form in ("pronoun", "they"))
            )
            return ("were" if many else "was") if past or key == "was!" else "is"
        if key == "has":
            return "had" if past else "has"
        if key in words:
            return words[key]
        if key in pronouns:
            return pronouns[key]
        return with_article(slots[key[2:]]) if key.startswith("a ") else slots[key]

    return _SLOT.sub(fill, text)


def capital(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]


def frame(template: str, sentence: str, person: Person, keep: tuple[str, ...] = ()) -> str:
    """Put a whole sentence into a frame such as ``It is well known that {s}``.

    Args:
        keep: values that keep their capital when the sentence starts with one.
    """
    proper = (person.name, short_name(person), *keep)
    inner = sentence if sentence.startswith(proper) else sentence[:1].lower() + sentence[1:]
    return template.replace("{s}", inner)


def any_voice(rng: random.Random, named: bool = False) -> Voice:
    """A random voice; ``named`` keeps to the full name or the surname."""
    forms = ("full", "surname") if named else ("full", "surname", "pronoun", "they")
    weights = (7, 3) if named else (50, 20, 26, 4)
    return Voice(rng.choices(forms, weights)[0], rng.random() < 0.6)


def bleached(
    rng: random.Random, split: str, person: Person, voice: Voice, template: str | None = None
) -> str:
    """A statement that is true of anyone."""
    chosen = template or rng.choice(bank("bleached")[split])
    return capital(speak(chosen, person, voice, {}))


def fillers(rng: random.Random, split: str) -> dict[str, str]:
    """One generic filler for every slot of the unlisted statements."""
    return {name: rng.choice(values) for name, values in bank("slots")[split].items()}
