"""Topics from the files that users have them in."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from data_builders.splits import SPLITS, drawn_splits
from records import BadInput, UserError, iter_rows
from records.formats.row_fields import kept_fields


class Stratum(NamedTuple):
    """The group of a topic and the bin of its frequency, where its file says so."""

    group: str | None = None
    bin: str | None = None

    def as_fields(self) -> dict[str, str]:
        """Those that are known, by the field names of documents and generations."""
        return {name: value for name, value in self._asdict().items() if value is not None}


Topics = dict[str, Stratum]


def read_topics(paths: Sequence[str]) -> Topics:
    """Each topic once, in the files' order, with the first group and the first bin that is told.

    Args:
        paths: records with a ``topic`` (generations, documents, topics alone; also FActScore's,
            whose ``cat`` is group and bin), ``AmbigBio.csv`` (``prompt`` and ``name``), ``.txt``
            files with a topic a line, or ``.json`` files with topics and their bins
            (``read_bins``).
    """
    found: Topics = {}

    def add(topic: str, told: Stratum) -> None:
        known = found.get(topic, Stratum())
        found[topic] = Stratum(*(t if k is None else k for k, t in zip(known, told, strict=True)))

    for path in paths:
        if not Path(path).is_file():
            raise UserError(f"{path}: no such file; give files with topics")
        if Path(path).suffix == ".txt":
            try:
                lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
            except UnicodeDecodeError:
                raise UserError(f"{path}: not UTF-8; save it in that encoding") from None
            for topic in filter(None, map(str.strip, lines)):
                add(topic, Stratum())
            continue
        if bins := _bins(path):
            for topic, name in bins.items():
                add(topic, Stratum(bin=name))
            continue
        for number, row in iter_rows(path):
            topic = row.get("topic", row.get("name") if "prompt" in row else None)
            if not isinstance(topic, str) or not topic.strip():
                raise BadInput([f"{path}:{number}: topic: field required, a text"])
            told = _cat(row) | row
            own = (told.get(name) for name in Stratum._fields)
            # An empty cell of a table says nothing.
            add(topic.strip(), Stratum(*(None if v in (None, "") else str(v) for v in own)))
    return found


def _cat(row: dict) -> dict[str, object]:
    cat = row.get("cat")
    named = isinstance(cat, list) and all(isinstance(name, str) for name in cat)
    return kept_fields({"cat": cat}) if named else {}


def _bins(path: str) -> dict[str, str] | None:
    if Path(path).suffix != ".json":
        return None
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except ValueError:
        return None
    texts = isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
    return found if texts and "topic" not in found else None


def read_bins(path: str) -> dict[str, str]:
    """Topic to its frequency bin, of a JSON object as adversarial-factuality's frequency map."""
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; give a JSON object of topics and their bins")
    found = _bins(path)
    if not found:
        raise UserError(f'{path}: expected a JSON object {{"topic": "bin", …}} in a .json file')
    return found


def split_topics(
    topics: Sequence[str] | Mapping[str, Sequence[str]], shares: Sequence[int], seed: int
) -> dict[str, Topics]:
    """Split to its topics.

    Args:
        topics: files whose topics are divided by ``shares``, in an order that depends on the seed
            and the topics alone; or split to its files, which keep their splits.
        shares: of train, dev and test.
        seed: of the division.
    """
    if isinstance(topics, Mapping):
        unknown = sorted(set(topics) - set(SPLITS))
        if unknown:
            raise UserError(f"topics: {', '.join(unknown)} is no split; give {', '.join(SPLITS)}")
        found = {split: read_topics(topics.get(split, ())) for split in SPLITS}
    else:
        known = read_topics(topics)
        split_of = drawn_splits(known, shares, seed)
        found = {
            split: {topic: known[topic] for topic in sorted(known) if split_of[topic] == split}
            for split in SPLITS
        }
    seen: dict[str, str] = {}
    for split, own in found.items():
        for topic in own:
            if seen.setdefault(topic, split) != split:
                raise UserError(
                    f"topic {topic!r} is in {seen[topic]} and in {split}; a topic has one split"
                )
    if not seen:
        raise UserError("topics: the files have none")
    return found
