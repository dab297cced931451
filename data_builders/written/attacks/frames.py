"""The banks of ``frames.yaml``: frames of texts, forms that hide falsehoods, wrong relations."""

from functools import cache
from pathlib import Path
from typing import Literal

import yaml

DiscourseForm = Literal["before", "after", "heading", "pronoun", "answered", "retracted"]
HiddenForm = Literal["table", "heading", "question", "run_on", "quotation", "note"]


@cache
def frame_bank() -> dict:
    """Load the file; blocks of text are templates, one per line."""
    return yaml.safe_load((Path(__file__).parent / "frames.yaml").read_text(encoding="utf-8"))


def frames(name: str, bank: str, form: str | None = None) -> list[str]:
    """Templates of ``relation``, or of a form of ``discourse``."""
    block = frame_bank()[name]
    return (block if form is None else block[form])[bank].splitlines()


def hidden_forms(form: HiddenForm, bank: str) -> list[dict[str, str]]:
    """The forms that hide falsehoods: ``row`` for each, joined by ``between``."""
    return frame_bank()["hidden"][form][bank]
