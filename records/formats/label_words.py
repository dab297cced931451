"""Words for the relation of a claim to its evidence, of all datasets.

A word gives the claim's label (S: supported; NS: not supported; IR: irrelevant; none without
agreement) and a finer word.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import yaml

Judgement = tuple[str | None, str | None]

_WORDS = yaml.safe_load((Path(__file__).parent / "label_words.yaml").read_text(encoding="utf-8"))
JUDGEMENT_OF_WORD: dict[str, Judgement] = {
    word: (None if label == "unlabelled" else label, finer)
    for label, finer_words in _WORDS.items()
    for finer, words in finer_words.items()
    for word in words
}


def plain_word(value: object) -> str:
    """Return a label in lower case with blanks for hyphens; 1.0 is 1, as in tables with gaps."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    word = " ".join(re.split(r"[\s_]+|(?<=\w)-(?=\w)", str(value).strip().lower()))
    return word.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", word) else word or "-"


def parse_judgement(word: object, field: str) -> Judgement:
    """Return the label and the finer word, or ``(None, None)`` for an empty field."""
    if word is None or word == "" or (isinstance(word, float) and math.isnan(word)):
        return None, None
    plain = plain_word(word)
    if plain in JUDGEMENT_OF_WORD:
        return JUDGEMENT_OF_WORD[plain]
    if plain.isdigit():
        raise ValueError(
            f"{field}: the number {plain}, whose meaning the file does not state; pass --labels "
            "'{0: entailment, 1: neutral, 2: contradiction}' (or not_entailment) in its order "
            "(--data.labels of fit, --experiment.labels of agreement); other commands need words"
        )
    raise ValueError(f"{field}: expected one of {', '.join(JUDGEMENT_OF_WORD)}, got {word!r}")


def check_meanings(labels: Mapping[int, str]) -> None:
    """Raise a one-line error for a meaning that is not one of the words."""
    for word in labels.values():
        parse_judgement(word, "labels")
