"""Statements that are true of anyone (``bleached_statements.yaml``), about a person."""

import random
import re
from functools import cache
from pathlib import Path

import yaml

BANK = Path(__file__).with_suffix(".yaml")
PRONOUN = 0.3  # share of the statements whose subject is a pronoun, if it is known
_PRONOUNS = {
    "he": {"he": "he", "his": "his", "him": "him", "self": "himself"},
    "she": {"he": "she", "his": "her", "him": "her", "self": "herself"},
    None: {"he": "they", "his": "their", "him": "them", "self": "themselves"},
}
_TENSE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")


@cache
def bleached_templates(split: str) -> tuple[str, ...]:
    """Load the templates of a split; no template is in two splits."""
    return tuple(yaml.safe_load(BANK.read_text(encoding="utf-8"))[split].splitlines())


def bleached_statement(
    rng: random.Random, template: str, name: str, pronoun: str | None = None, named: bool = False
) -> str:
    """Fill a template.

    Args:
        pronoun: ``he`` or ``she``; ``None`` if it is not known.
        named: the subject is the name.
    """
    past = rng.random() < 0.6
    subject = name
    if pronoun and not named and template.startswith("{X} ") and rng.random() < PRONOUN:
        subject = pronoun.capitalize()
    text = _TENSE.sub(lambda match: match[1 + past], template)
    slots = _PRONOUNS[pronoun] | {"X": subject, "Xm": name, "X's": f"{name}'s"}
    return text.format_map(slots | {"was": "was" if past else "is"})
