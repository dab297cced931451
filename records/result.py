"""The versioned result schema: what ``results.json`` of every experiment looks like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from records.errors import UserError
from records.reading import load_json, to_bad_input
from records.writing import write_json

if TYPE_CHECKING:
    import pandas as pd  # half a second to import, for the one function that needs it

RESULT_SCHEMA_VERSION = 2


class Result(BaseModel):
    """One number of an experiment, with what it was measured on.

    No name holds another one: who wants the results of an assessor or a variant asks for the field.

    Attributes:
        metric: e.g. ``factual_precision`` or ``kept_share``.
        assessor: whose judgements they are, where a run has several: of a verifier, a judge, a
            relation model, or a metric that is judged itself.
        selection: ``none``, or the selector's name, e.g. ``core``.
        kind: kind of text (normal, uninformative, repetitive, …), or what else an experiment sets
            side by side: decomposers, engines, sources of verdicts, classes of claims.
        against: the other side of a comparison. The value is the difference to what the metric is
            there, or, of a metric of agreement, how far both agree.
        variant: which of several values of one name it is: ``trained`` or ``untrained`` (the
            control), a number of appended sentences, a threshold, a named verdict, ``sd``, ….
        generator: who wrote the texts.
        domain: e.g. ``biographies``.
        group: of the texts, by any property; ``all`` for no split.
        bin: of the topics, by their frequency; ``all`` for no split.
        n: how many topics entered the value.
        failed: how many claims could not be judged; never inside the value.
        value: the number, or ``None`` where nothing could be scored.
        ci95: bootstrap interval over topics.
        config_hash: SHA-256 of the configuration the value came from.
    """

    model_config = ConfigDict(extra="forbid")

    metric: str
    assessor: str | None = None
    selection: str = "none"
    kind: str = "all"
    against: str | None = None
    variant: str | int | float | None = None
    generator: str = "given"
    domain: str
    group: str = "all"
    bin: str = "all"
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

    schema_version: Literal[2] = RESULT_SCHEMA_VERSION
    experiment: str
    provenance: dict
    results: list[Result]

    @property
    def command(self) -> str:
        """What wrote it: ``score``, or ``experiment NAME``."""
        return "score" if self.experiment == "score" else f"experiment {self.experiment}"


def write_results(path: str | Path, file: ResultFile) -> None:
    """Write ``file`` atomically as JSON."""
    write_json(path, file.model_dump(mode="json"))


def read_results(path: str | Path) -> ResultFile:
    """Read and validate a ``results.json``."""
    try:
        return ResultFile.model_validate(load_json(path))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run the experiment first") from None
    except ValidationError as error:
        raise to_bad_input(path, error) from None


def read_frame(path: str | Path) -> pd.DataFrame:
    """Results as a pandas frame, to be grouped, pivoted and drawn.

    Args:
        path: a ``results.json``, or a folder: every ``results.json`` in it and below.

    Returns:
        A row a result: ``run`` (the folder of its file), ``command`` (``score``, ``experiment
        NAME``), the fields of :class:`Result`, ``config_hash`` among them, and instead of ``ci95``
        its ends ``low`` and ``high``; NaN for no value and for no interval.
    """
    import pandas as pd

    path = Path(path)
    files = sorted(path.rglob("results.json")) if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path}: no results.json in it or below; give the folder of a run")
    rows = []
    for one in files:
        file = read_results(one)
        for row in file.results:
            low, high = row.ci95 or (None, None)
            fields = row.model_dump(exclude={"ci95"})
            run = {"run": str(one.parent), "command": file.command}
            rows.append(run | fields | {"low": low, "high": high})
    columns = ["run", "command", *(name for name in Result.model_fields if name != "ci95")]
    numbers = dict.fromkeys(("value", "low", "high"), float)
    return pd.DataFrame(rows, columns=[*columns, "low", "high"]).astype(numbers)
