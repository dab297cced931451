"""Typed records shared by all packages, and how they are read and written.

Imports nothing else of this repository.
"""

from records.errors import BadInput, UserError
from records.gold import Gold, gold_scores
from records.reading import iter_rows, read_json, read_records, to_bad_input
from records.result import (
    RESULT_SCHEMA_VERSION,
    Result,
    ResultFile,
    read_frame,
    read_results,
    write_results,
)
from records.types import (
    Annotation,
    Claim,
    Document,
    Generation,
    LssExample,
    Passage,
    Preference,
    RelationPair,
    SourcePrior,
    UnjudgedRelationPair,
    UnjudgedUnliPair,
    UnliPair,
    Verdict,
    group_of,
)
from records.writing import (
    JsonlAppender,
    atomic_file,
    escape_markdown,
    json_line,
    sha256_file,
    sha256_text,
    write_json,
    write_jsonl,
    write_text,
)

__all__ = [
    "RESULT_SCHEMA_VERSION",
    "Annotation",
    "BadInput",
    "Claim",
    "Document",
    "Generation",
    "Gold",
    "JsonlAppender",
    "LssExample",
    "Passage",
    "Preference",
    "RelationPair",
    "Result",
    "ResultFile",
    "SourcePrior",
    "UnjudgedRelationPair",
    "UnjudgedUnliPair",
    "UnliPair",
    "UserError",
    "Verdict",
    "atomic_file",
    "escape_markdown",
    "gold_scores",
    "group_of",
    "iter_rows",
    "json_line",
    "read_frame",
    "read_json",
    "read_records",
    "read_results",
    "sha256_file",
    "sha256_text",
    "to_bad_input",
    "write_json",
    "write_jsonl",
    "write_results",
    "write_text",
]
