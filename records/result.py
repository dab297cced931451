"""The versioned result schema: what ``results.json`` of every experiment looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from records.errors import UserError
from records.reading import read_json
from records.writing import write_json

RESULT_SCHEMA_VERSION = 1


class Result(BaseModel):
    """One number of an experiment, with what it was measured on.

    Attributes:
        metric: e.g. ``factual_precision`` or ``kept_share``.
        selection: ``none`` or ``core``.
        kind: kind of generation (normal, uninformative, repetitive, …).
        generator: who wrote the texts.
        domain: e.g. ``biographies``.
        group: frequency or other group; ``all`` for no split.
        components: ``trained`` or ``untrained`` (the control run).
        n: how many topics entered the value.
        failed: how many claims could not be judged; never inside the value.
        value: the number, or ``None`` where nothing could be scored.
        ci95: bootstrap interval over topics.
        config_hash: SHA-256 of the configuration the value came from.
    """

    model_config = ConfigDict(extra="forbid")

    metric: str
    selection: Literal["none", "core"]
    kind: str
    generator: str
    domain: str
    group: str = "all"
    components: Literal["trained", "untrained"] = "trained"
    n: Annotated[int, Field(ge=0)]
    failed: Annotated[int, Field(ge=0)]
    value: float | None
    ci95: tuple[float, float] | None
    config_hash: str


class ResultFile(BaseModel):
    """``results.json``: the results and, once a file, their provenance.

    ``provenance`` holds the config, library versions, checkpoint and data hashes and seeds; no
    time, host or path, so that the same run gives the same bytes.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = RESULT_SCHEMA_VERSION
    experiment: str
    provenance: dict
    results: list[Result]


def write_results(path: str | Path, file: ResultFile) -> None:
    """Write ``file`` atomically as JSON."""
    write_json(path, file.model_dump(mode="json"))


def read_results(path: str | Path) -> ResultFile:
    """Read and validate a ``results.json``.

    Raises:
        UserError: the file is missing, is not JSON, or does not follow the schema.
    """
    try:
        return read_json(path, ResultFile)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run the experiment first") from None
