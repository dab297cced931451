"""Class paths that a user may have written, in YAML or on a command line, and that moved since.

Importing an old module in Python simply fails; a door names the new place in one line.
"""

from __future__ import annotations

import re

# What it was to what it is. An entry goes when nobody can have it in a config any more.
MOVED = {
    "data_builders.corruption.corrupters.PromptedCorrupter": (
        "data_builders.written.corruption.corrupters.PromptedCorrupter"
    ),
    "data_builders.corruption.swap.ValueSwap": "data_builders.written.corruption.swap.ValueSwap",
    "eval.citations.Citations": "eval.metrics.citations.Citations",
    "eval.models.prompted_lss.PromptedLss": "eval.prompting.prompted_lss.PromptedLss",
    "eval.models.prompted_relations.PromptedRelations": (
        "eval.prompting.prompted_relations.PromptedRelations"
    ),
}


def moved(complaint: str) -> str | None:
    """What to write instead, if a complaint is about a class path that moved."""
    for old, new in MOVED.items():
        if re.search(rf"(?<![\w.]){re.escape(old)}(?!\w)", complaint):
            return f"class_path {old} has moved; write {new}"
    return None
