"""Pairs that a training set must not contain: texts of other sets, and names of titles."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from components.english import OPENERS, without_qualifier
from components.words import split_words
from data_builders.rows import source_rows
from records import UserError
from records.formats.pairs import Pair
from records.formats.tokenised import join_tokens

_OPENER = re.compile(OPENERS)
RUN = 8  # words in a row that make two texts copies of each other


class Exclusion:
    """The reason why a pair is excluded.

    Args:
        files: files of any format. Pairs that share eight words in a row with one of their texts
            are excluded, and those with a shorter text that equals one of theirs.
        titles: file of rows with ``topic``. Pairs that contain a topic's name are excluded; a name
            of one word within a longer name ("Love" in "Love Actually") is another name.
        groups: only topics of these groups; empty: all.
    """

    def __init__(self, files: Iterable[str], titles: str | None, groups: Collection[str] = ()):
        self._runs = {
            run
            for file in files
            for _, row in source_rows(file)
            for text in _texts(row)
            for run in _runs_of(text)
        }
        self._titles: dict[str, list[list[str]]] = defaultdict(list)
        for where, row in source_rows(titles) if titles else ():
            if "topic" not in row:
                raise UserError(f"{where}: field 'topic' required")
            if groups and row.get("group") not in groups:
                continue
            name = _words(without_qualifier(row["topic"]))
            if any(word.isalpha() for word in name):
                self._titles[name[0]].append(name)

    def reason(self, pair: Pair) -> str | None:
        """The reason to exclude a pair, if any."""
        if any(run in self._runs for text in pair[:2] for run in _runs_of(text)):
            return "shares eight words in a row with an excluded file"
        if any(map(self._names_title, pair[:2])):
            return "names an excluded title"
        return None

    def _names_title(self, text: str) -> bool:
        words = _words(text)
        return any(
            words[place : place + len(name)] == name
            and (len(name) > 1 or not _is_part_of_name(words, place))
            for place, word in enumerate(words)
            for name in self._titles.get(word, ())
        )


def _is_part_of_name(words: list[str], place: int) -> bool:
    before, after = words[max(0, place - 1) : place], words[place + 1 : place + 2]
    before = [word for word in before if not _OPENER.fullmatch(word)]
    return any(word[0].isupper() for word in before + after)


def _words(text: str) -> list[str]:
    return [word.text for word in split_words(text)]


def _runs_of(text: str) -> Iterator[int]:
    words = [word.lower() for word in _words(join_tokens(text)) if word[0].isalnum()]
    for start in range(max(1, len(words) - RUN + 1)) if words else ():
        yield hash(tuple(words[start : start + RUN]))


def _texts(value: object) -> Iterator[str]:
    """All texts within a row."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
