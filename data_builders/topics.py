"""Read topics from record files, text files and tables."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from components.words import name_key
from data_builders.splits import SPLITS, drawn_splits
from records import BadInput, UserError, iter_rows
from records.formats.conversions import frequency_bin, group_of_cat


class Stratum(NamedTuple):
    """The group and the frequency bin of a topic, if known."""

    group: str | None = None
    bin: str | None = None

    def as_fields(self) -> dict[str, str]:
        """Return the known values by their field names in documents and generations."""
        return {name: value for name, value in self._asdict().items() if value is not None}


Topics = dict[str, Stratum]


def read_topics(paths: Sequence[str]) -> Topics:
    """Read each topic once, in file order, with its first known group and bin.

    Args:
        paths: records with a ``topic`` (generations, documents, topics; FActScore's, whose ``cat``
            is group and bin), ``AmbigBio.csv`` (``prompt`` and ``name``), questions
            (``prompt``), ``.txt`` files with one topic per line, or ``.json`` files with topics and
            bins (``read_bins``).
    """
    topics: Topics = {}

    def add(topic: str, stratum: Stratum) -> None:
        earlier = topics.get(topic, Stratum())
        values = zip(earlier, stratum, strict=True)
        topics[topic] = Stratum(*(new if old is None else old for old, new in values))

    for path in paths:
        if not Path(path).is_file():
            raise UserError(f"{path}: no such file; expected files with topics")
        if Path(path).suffix == ".txt":
            try:
                lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
            except UnicodeDecodeError:
                raise UserError(f"{path}: not UTF-8; save the file as UTF-8") from None
            for topic in filter(None, map(str.strip, lines)):
                add(topic, Stratum())
            continue
        if bins := _bins(path):
            for topic, name in bins.items():
                add(topic, Stratum(bin=name))
            continue
        for number, row in iter_rows(path):
            name = row.get("name", row.get("prompt")) if "prompt" in row else None
            topic = row.get("topic", name)
            if not isinstance(topic, str) or not topic.strip():
                raise BadInput([f"{path}:{number}: topic: field required, expected a text"])
            cat = row.get("cat")
            row = {"bin": frequency_bin(cat), "group": group_of_cat(cat)} | row
            values = (row.get(name) for name in Stratum._fields)
            add(topic.strip(), Stratum(*(None if v in (None, "") else str(v) for v in values)))
    return topics


def _bins(path: str) -> dict[str, str] | None:
    if Path(path).suffix != ".json":
        return None
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except ValueError:
        return None
    is_map = isinstance(content, dict) and all(isinstance(value, str) for value in content.values())
    return content if is_map and "topic" not in content else None


def read_bins(path: str) -> dict[str, str]:
    """Read a JSON object of topics and frequency bins, as adversarial-factuality's map."""
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected a JSON object of topics and bins")
    bins = _bins(path)
    if not bins:
        raise UserError(f'{path}: expected a JSON object {{"topic": "bin", …}} in a .json file')
    return bins


def split_topics(
    topics: Sequence[str] | Mapping[str, Sequence[str]], shares: Sequence[int], seed: int
) -> dict[str, Topics]:
    """Map each split to its topics.

    Args:
        topics: files whose topics are divided by ``shares`` (the order depends only on the seed and
            the topics), or a mapping of split to files.
        shares: of train, dev and test.
        seed: of the division.
    """
    if isinstance(topics, Mapping):
        unknown = sorted(set(topics) - set(SPLITS))
        if unknown:
            raise UserError(f"topics: {', '.join(unknown)} is not a split; use {', '.join(SPLITS)}")
        parts = {split: read_topics(topics.get(split, ())) for split in SPLITS}
    else:
        strata = read_topics(topics)
        split_of = drawn_splits(strata, shares, seed)
        parts = {
            split: {topic: strata[topic] for topic in sorted(strata) if split_of[topic] == split}
            for split in SPLITS
        }
    seen: dict[str, str] = {}
    for split, part in parts.items():
        for topic in part:
            first = seen.setdefault(name_key(topic), split)
            if first != split:
                raise UserError(
                    f"topic {topic!r} is in {first} and in {split}; keep it in one split"
                )
    if not seen:
        raise UserError("topics: the files contain no topic")
    return parts
