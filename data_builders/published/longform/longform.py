"""``longform``: the long texts on which FactReasoner is evaluated, as one dataset.

FactReasoner (2502.18573, section 4) uses questions of AskHistorians and ELI5 (200 each),
FreshBooks (20 books, 10 paragraphs each), LongFact-Objects (38 topics, 10 prompts each),
Biographies with human atoms (157), and, for the relation models (appendix C.1), FACTOR News and
Expert. The records keep atoms and contexts, so all assessors have the same inputs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import ValidationError
from tqdm import tqdm

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from data_builders.published.longform.draw import draw
from data_builders.published.longform.longform_formats import FORMATS, Source, SourceRow
from data_builders.rows import files_of
from data_builders.topics import read_bins
from records import BadInput, Document, UserError, iter_rows, to_bad_input
from records.formats.file_reader import report_malformed_row

PROMPTS = {"prompts", "longfact"}


@dataclass
class LongForm(Builder):
    """Documents with atoms and contexts, or prompts, from the published long-form sets.

    Args:
        sources: the sources, each with its files, format and sample sizes.
        seed: seed of all draws, which do not depend on the order of the rows.
    """

    sources: list[Source]

    reads = ("sources",)

    def faults(self) -> Iterable[str]:
        names = Counter(source.name for source in self.sources)
        for source in self.sources:
            yield from _source_faults(source, names)

    def files(self) -> dict[str, dict[str, str]]:
        return {source.name: {"test": _path(source)} for source in self.sources}

    def make(self, work: Work) -> Made:
        files: dict[str, list] = {}
        for source in self.sources:
            rows = self._read(source, files_of(source.files), work.dropped)
            records = draw(source, rows, self.seed, self.limit, work.dropped)
            if not records:
                raise UserError(f"{source.name}: no row left; check `format` and `where`")
            files[_path(source)] = records
        counts = {path: _counts(records) for path, records in files.items()}
        card = read_card("longform", table=_table(counts))
        return Made(files, card, details={"counts": counts})

    def _read(
        self, source: Source, files: list[Path], dropped: Counter[str]
    ) -> Iterator[Document | dict]:
        rows = ((path, number, row) for path in files for number, row in iter_rows(path))
        rows = tqdm(islice(rows, self.limit), desc=source.name, unit=" rows", disable=None)
        bins = read_bins(source.bins) if source.bins else {}
        for index, (path, number, fields) in enumerate(rows):
            if any(str(fields.get(name)) != value for name, value in source.where.items()):
                dropped[f"{source.name}: row excluded by `where`"] += 1
                continue
            name = f"{source.name}-{index}"
            row = SourceRow(source, path, number, fields, name, self.seed, dropped, bins)
            records = _adapt(row)
            if isinstance(records, str):
                dropped[f"{source.name}: {records}"] += 1
            else:
                yield from records if isinstance(records, list) else [records]


def _adapt(row: SourceRow) -> list[Document] | Document | dict | str:
    where = f"{row.path}:{row.number}"
    try:
        with report_malformed_row(row.source.format):
            return FORMATS[row.source.format](row)
    except ValidationError as error:
        raise to_bad_input(where, error) from None
    except ValueError as error:
        raise BadInput([f"{where}: {error}"]) from None


def _source_faults(source: Source, names: Counter[str]) -> Iterator[str]:
    if names[source.name] > 1:
        yield f"sources: duplicate name {source.name}; rename one"
    if not source.name or not source.name.replace("_", "").replace("-", "").isalnum():
        yield f"sources: name {source.name!r}: use letters, digits, - and _ only"
    if source.format not in FORMATS:
        yield f"{source.name}: format: expected one of {', '.join(FORMATS)}, got {source.format}"
    if not source.files:
        yield f"{source.name}: files: expected at least one"
    if any(n is not None and n < 1 for n in (source.sample, source.per_topic, source.topics)):
        yield f"{source.name}: sample, per_topic, topics: expected at least 1 or null"
    if source.sample and (source.per_topic or source.topics):
        yield f"{source.name}: set either sample, or per_topic and topics"


def _path(source: Source) -> str:
    return f"{source.name}/{'prompts' if source.format in PROMPTS else 'documents'}.jsonl"


def _counts(records: list) -> dict[str, int]:
    claims = [c for r in records if isinstance(r, Document) for c in r.claims or []]
    passages = sum(len(r.passages or []) for r in records if isinstance(r, Document))
    labels = Counter(claim.label or "none" for claim in claims)
    by_label = {label: labels[label] for label in ("S", "NS", "IR", "none")}
    return {"rows": len(records), "claims": len(claims), **by_label, "passages": passages}


def _table(counts: dict[str, dict[str, int]]) -> str:
    header = ("file", "rows", "claims", "S", "NS", "IR", "no label", "passages")
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| `{path}` | {' | '.join(map(str, n.values()))} |" for path, n in counts.items()]
    return "\n".join(lines)
