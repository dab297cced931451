"""Whether attacks from outside are fresh: later than the stack, and in phrases that it lacks."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cli.shipped import ROOT
from components.code import time_of_commit
from records import Document

# What defences and training texts are made of.
RULES = ("eval/verify", "eval/select", "records", "data_builders/written", "checkpoints/ready")
PHRASE_WORDS = 5
_FEWEST_TOPICS = 3
_WORD = re.compile(r"[a-z]+")


def known_files(texts: Mapping[str, Sequence[Document]]) -> dict[str, str]:
    """Map the files whose attacks could have been known to the reason.

    A file is known if it is not later than the last commit that changed the rules, phrase banks or
    ready models, or if a phrase of it occurs in one of the rules or banks.

    Args:
        texts: path of each file to its texts.
    """
    if not texts:  # the rules are not read for nothing
        return {}
    commit = time_of_commit(*RULES) or 0
    rules = {run for folder in RULES for run in _runs_below(ROOT / folder)}
    reasons = {}
    for path, documents in texts.items():
        if Path(path).stat().st_mtime <= commit:
            reasons[path] = "not later than the stack's commit"
        elif phrases := sorted(shared_phrases(documents) & rules):
            reasons[path] = f"“{' '.join(phrases[0])}” is in the rules or phrase banks"
    return reasons


def shared_phrases(documents: Sequence[Document]) -> set[tuple[str, ...]]:
    """Five-word runs that the texts of three topics share: frames, and no facts."""
    topics: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for document in documents:
        for run in _runs(document.text):
            topics[run].add(document.topic)
    return {run for run, names in topics.items() if len(names) >= _FEWEST_TOPICS}


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return zip(*(words[start:] for start in range(PHRASE_WORDS)), strict=False)


def _runs_below(folder: Path) -> Iterator[tuple[str, ...]]:
    for path in folder.rglob("*"):
        if path.suffix in (".py", ".yaml", ".txt"):
            yield from _runs(path.read_text(encoding="utf-8"))
