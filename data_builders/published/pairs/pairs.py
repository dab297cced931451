"""``pairs``: convert public NLI and UNLI sets to one file of relation or UNLI records.

The papers train and evaluate their entailment components on mixtures of such sets. The builder
removes the usual faults of mixtures: a premise in several splits, duplicate pairs, pairs with
several labels, and test pairs in the training data.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import ClassVar, Literal

from tqdm import tqdm

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card, read_card
from data_builders.published.pairs.exclusion import Exclusion
from data_builders.published.pairs.mined_evidence import lacks_evidence, mine_evidence
from data_builders.published.pairs.nearness import format_nearness, summarize_nearness
from data_builders.published.pairs.pair_store import PairStore
from data_builders.rows import source_name, source_rows
from data_builders.splits import SPLITS, by_split
from records import BadInput, RelationPair, UnliPair, UserError
from records.formats.file_reader import FIRST_ROWS, FileReader
from records.formats.pairs import Pair
from records.reading import file_notes

Target = Literal["relation", "unli"]


@dataclass(frozen=True)
class Source:
    """One set of pairs.

    Attributes:
        file: path of a file or of a folder of files of one format, or
            ``hub:OWNER/NAME#CONFIG:SPLIT`` to stream it from the Hub.
        format: name of a shipped format (``records/formats/formats.yaml``), such as ``atoms`` for
            AmbigBio's atoms, or a YAML file that declares formats; null detects it by the columns.
        name: ``source`` of its records. Default: the name of the set.
        weight: weight of its records in training.
        take: maximum number of its pairs.
        per_label: maximum number of its training pairs per label.
        labels: the meaning of its label numbers; default: ``labels`` of the builder.
        mine_evidence: give a claim for which people found not enough evidence that of another
            claim of the set that begins with the same two words, the one that covers most of its
            words.
    """

    file: str
    format: str | None = None
    name: str | None = None
    weight: float | None = None
    take: int | None = None
    per_label: int | None = None
    labels: dict[int, str] | None = None
    mine_evidence: bool = False


@dataclass
class Pairs(Builder):
    """Public NLI and UNLI sets as one file of relation or UNLI records.

    Args:
        sources: the sets; a pair of several sets is attributed to the first.
        target: ``relation`` (entailment, neutral, contradiction, not_entailment) or ``unli``
            (probabilities; only for sources with a probability).
        exclude: files (or ``hub:`` names) of any format, e.g. test sets. Pairs that share eight
            words in a row with them, or a whole shorter text, are excluded.
        exclude_titles: file of rows with ``topic``, e.g. the test topics of ``leads``. Pairs that
            contain the name of one are excluded.
        exclude_groups: only the titles of these groups (field ``group``), e.g. ``[People]``; empty:
            all.
        shares: ratio of train, dev and test. Pairs that share a group (page, name), a premise, a
            long line of it or a document are in the same split. A split with share 0 is not
            written.
        labels: the meaning of numbers as labels in files that do not state it, e.g.
            ``{0: contradiction, 1: entailment, 2: neutral}``.
    """

    sources: list[Source]
    target: Target = "relation"
    exclude: list[str] | None = None
    exclude_titles: str | None = None
    exclude_groups: tuple[str, ...] = ()
    shares: tuple[int, int, int] = (1, 0, 0)
    labels: dict[int, str] | None = None

    reads = ("sources", "exclude", "exclude_titles")
    least: ClassVar = {"shares": 0}

    def faults(self) -> Iterable[str]:
        for source in self.sources:
            caps = [cap for cap in (source.take, source.per_label) if cap is not None]
            if min(caps, default=1) < 1 or (source.weight or 0) < 0:
                yield f"sources: {source.file}: expected take, per_label >= 1 and weight >= 0"

    def files(self) -> dict[str, dict[str, str]]:
        shared = [split for split, share in zip(SPLITS, self.shares, strict=True) if share]
        return {self.target: by_split(self.target, shared)}

    def make(self, work: Work) -> Made:
        store = PairStore(work.table("pairs"), self.shares, self.seed)
        formats = self._read(store, work)
        counts = store.counts()
        if not counts:
            raise UserError(f"sources: no pair left ({work.dropped_summary()})")
        files = {
            path: self._records(store, SPLITS.index(split), formats)
            for split, path in self.files()[self.target].items()
            if any(SPLITS[number] == split for _, number, _, _ in counts)
        }
        settings = zip(self.config()["sources"], formats, strict=True)
        details = {"sources": [source | {"format": format} for source, format in settings]}
        near = _nearness(store, counts)
        for split, fields in near.items():
            print(f"{split}: similarity to train: {format_nearness(fields)}", file=sys.stderr)
        details |= {"nearness": near} if near else {}
        return Made(files, self._card(counts, formats), details=details)

    def _read(self, store: PairStore, work: Work) -> list[str]:
        exclusion = Exclusion(self.exclude or (), self.exclude_titles, self.exclude_groups)
        dropped, formats = work.dropped, []
        for index, source in enumerate(self.sources):
            labels = source.labels or self.labels
            reader = _Reader(source.file, source.format, self.target, self.limit, labels=labels)
            name = source_name(source.file)
            for pair in _mined(reader) if source.mine_evidence else reader:
                reason = _fault_of(pair) or exclusion.reason(pair)
                if reason:
                    dropped[f"{name}: {reason}"] += 1
                else:
                    store.add(index, pair)
            formats.append(reader.format)
            dropped[f"{name}: duplicate pair"] += store.merged[index]
        dropped["pair with different labels"] = store.drop_clashes()
        crossing = "shares a text or a document with a held-out pair"
        dropped[crossing] = store.drop_crossing(store.tie())
        for index, source in enumerate(self.sources):
            name = source_name(source.file)
            if source.take is not None:
                dropped[f"{name}: beyond take"] += store.take(index, source.take)
            if source.per_label is not None:
                dropped[f"{name}: beyond per_label"] += store.take_of_train(index, source.per_label)
        return formats

    def _records(
        self, store: PairStore, split: int, formats: list[str]
    ) -> Iterator[RelationPair | UnliPair]:
        record = RelationPair if self.target == "relation" else UnliPair
        # All rows have the column, or none has it.
        weighted = any(source.weight is not None for source in self.sources)
        documented = store.has_documents()
        for index, pair in store.pairs(split):
            source = self.sources[index]
            weight = 1.0 if source.weight is None else source.weight
            yield record(
                premise=pair.premise,
                hypothesis=pair.hypothesis,
                label=pair.label,
                source=source.name or formats[index],
                weight=round(weight, 4) if weighted else None,
                group=pair.group,
                **({"documents": list(pair.documents)} if documented else {}),
            )

    def _card(self, counts: list[tuple[int, int, str | float, int]], formats: list[str]) -> Card:
        rows = "\n".join(
            f"| {source_name(self.sources[source].file)} | {SPLITS[split]} | "
            f"{label or 'a probability'} | {number} |"
            for source, split, label, number in counts
        )
        maps = LABELS if self.target == "relation" else ""
        card = read_card("pairs", target=self.target, rows=rows, maps=maps)
        more_tags = ["uncertain-nli"] if self.target == "unli" else []
        return replace(card, tags=[*card.tags, *more_tags])


def _fault_of(pair: Pair) -> str | None:
    if not pair.premise or not pair.hypothesis:
        return "no evidence" if pair.hypothesis else "empty hypothesis"
    return "no gold label" if pair.label is None else None


def _mined(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs with a premise or a decided label, then the others with mined premises."""
    pairs = list(pairs)
    claims = [pair for pair in pairs if lacks_evidence(pair)]
    decided = [pair for pair in pairs if not lacks_evidence(pair)]
    yield from decided
    yield from mine_evidence(claims, [pair for pair in decided if pair.premise])


@dataclass
class _Reader:
    """The pairs of one file, in the order of its rows."""

    file: str
    format: str | None  # if null, set to the format detected from the first row
    target: Target
    limit: int | None
    labels: dict[int, str] | None = None

    def __iter__(self) -> Iterator[Pair]:
        kind, counts = RelationPair if self.target == "relation" else UnliPair, Counter()
        rows = islice(source_rows(self.file), self.limit)
        first = list(islice(rows, FIRST_ROWS))
        if not first:
            raise UserError(f"{self.file}: the file is empty; expected at least one pair")
        samples = [row for _, row in first]
        reader = FileReader(self.file, kind, samples, labels=self.labels, format=self.format)
        if reader.format is None:
            expected = "pairs" if self.target == "relation" else "pairs with a probability"
            raise UserError(f"{self.file}: expected {expected}, got fields {', '.join(samples[0])}")
        self.format = reader.format.name if self.target == "relation" else "unli"
        n_rows = 0
        for where, row in tqdm(
            chain(first, rows), desc=source_name(self.file), unit=" rows", disable=None
        ):
            n_rows += 1
            try:
                pairs = reader.pairs(row)
            except ValueError as error:
                raise BadInput([f"{where}: {error}"]) from None
            counts.update(pair.label for pair in pairs if isinstance(pair.label, str))
            yield from pairs
        last_line = int(where.rpartition(":")[2])
        reader.report(counts, file_notes(self.file, n_rows, last_line))


def _nearness(
    store: PairStore, counts: list[tuple[int, int, str | float, int]]
) -> dict[str, dict[str, dict[str, float]]]:
    splits = {split for _, split, _, _ in counts}
    if 0 not in splits:
        return {}
    return {
        SPLITS[split]: {
            field: summarize_nearness(store.texts(split, field), store.texts(0, field))
            for field in ("premise", "hypothesis")
        }
        for split in sorted(splits - {0})
    }


LABELS = """\
Supported, entailed, attributable: entailment; refuted: contradiction; neutral, not enough evidence,
irrelevant: neutral; partly supported or not supported without detail: not_entailment. Disputed and
unlabelled rows are skipped."""
