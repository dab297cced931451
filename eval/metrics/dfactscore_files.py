"""Input files of the D-FActScore experiment: one or several files per generator."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from eval.metrics.citations import citations_fault, given_citations, without_numbers
from eval.metrics.judged_texts import atoms_fault
from records import BadInput, Document, UserError, read_records

Files = dict[str, str | list[str]] | list[str]

# Scores in the released files and their column names in the experiment.
REPORTED = {
    "init_score": "FActScore",
    "score": "FActScore with length penalty",
    "init_global_score": "D-FActScore",
    "num_groups": "biographies",
    "num_supporting_topics": "entities",
    "respond_ratio": "respond ratio",
    "citation_rec": "citation recall",
    "citation_prec": "citation precision",
}


def read_texts(documents: Files) -> list[Document]:
    """Read all files; ids become ``generator/id`` and citation numbers are removed from the text.

    The text with numbers is kept in ``cited_text`` unless the record has ``citations``, as in
    AmbigBio's published files. Records of the same id in several files of a generator are merged.

    Raises:
        BadInput: verdicts or citations are not in AmbigBio's format.
    """
    named = documents.items() if isinstance(documents, Mapping) else [(None, p) for p in documents]
    loaded = []
    for generator, paths in named:
        files = [paths] if isinstance(paths, str) else paths
        parts = [list(_read_file(path)) for path in files]
        texts = _joined(parts) if len(parts) > 1 else [text for part in parts for text in part]
        loaded += [_named(text, generator or text.generator or "given") for text in texts]
    if any(document.generator == "all" for document in loaded):
        raise UserError("documents: the generator name 'all' is reserved; rename it")
    _check_unique_ids(loaded)
    return loaded


def _check_unique_ids(documents: Sequence[Document]) -> None:
    twice, times = (Counter(d.id for d in documents).most_common(1) or [("", 0)])[0]
    if times > 1:
        raise UserError(f"document id {twice!r} occurs more than once; ids must be unique")


def _read_file(path: str) -> Iterator[Document]:
    for record in read_records(path, Document):
        if fault := atoms_fault(record) or citations_fault(record):
            raise BadInput([f"{path}: document {record.id!r}: {fault}"])
        yield record


def _joined(parts: Sequence[Sequence[Document]]) -> list[Document]:
    """Merge the records of several files by id, in order of first occurrence.

    The first file with a field wins, except the text and topic of D-FActScore's output, which
    contains only atoms. If a file has citation verdicts, texts that are not in it have no
    citations, because ALCE's log contains only sentences with citations.
    """
    for part in parts:
        _check_unique_ids(part)
    by_id: dict[str, list[Document]] = {}
    for part in parts:
        for text in part:
            by_id.setdefault(text.id, []).append(text)
    judged = any("citations" in (text.model_extra or {}) for part in parts for text in part)
    return [_whole(same_id, judged) for same_id in by_id.values()]


def _whole(parts: Sequence[Document], judged: bool) -> Document:
    fields: dict[str, object] = {}
    for part in sorted(parts, key=lambda part: "atoms_independent" in (part.model_extra or {})):
        for name, value in part.model_dump(exclude_unset=True).items():
            fields.setdefault(name, value)
    if judged and str(fields["text"]).strip():
        fields.setdefault("citations", [])
    return Document.model_validate(fields)


def _named(record: Document, generator: str) -> Document:
    bare = without_numbers(record.text)
    update = {"id": f"{generator}/{record.id}", "generator": generator, "text": bare}
    is_cited = "cited_text" in (record.model_extra or {}) or given_citations(record) is not None
    if bare != record.text and not is_cited:
        update["cited_text"] = record.text
    return Document.model_validate({**record.model_dump(), **update})


def reported(documents: Files) -> dict[str, dict[str, float]]:
    """Return the scores recorded in D-FActScore's and ALCE's outputs, by generator or file.

    They cover all texts of the authors' runs. Citation percentages become shares.
    """
    if isinstance(documents, Mapping):
        named = [*documents.items()]
    else:
        names = [Path(path).name for path in documents]
        pairs = zip(names, documents, strict=True)
        named = [(path if names.count(name) > 1 else name, path) for name, path in pairs]
    values_by_name: dict[str, dict[str, float]] = {}
    for generator, paths in named:
        for path in [paths] if isinstance(paths, str) else paths:
            for name, value in _file_header(Path(path)).items():
                share = value / 100 if name.startswith("citation") else value
                values_by_name.setdefault(str(generator), {})[REPORTED[name]] = share
    return values_by_name


def _file_header(path: Path) -> dict[str, float]:
    if path.suffix.lower() not in {".json", ".score"}:
        return {}
    try:
        whole = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError:
        return {}  # JSON Lines have no header
    if not isinstance(whole, dict) or not {"global_decisions", "autoais_log"} & whole.keys():
        return {}
    # Undefined means are NaN in these files.
    return {
        name: float(whole[name])
        for name in REPORTED
        if isinstance(whole.get(name), int | float)
        and not isinstance(whole[name], bool)
        and abs(whole[name]) <= sys.float_info.max
    }
