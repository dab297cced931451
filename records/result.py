"""The versioned schema of ``results.json``, shared by all experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from records.errors import UserError
from records.reading import load_json, to_bad_input
from records.writing import write_json

if TYPE_CHECKING:
    import pandas as pd  # takes 0.5 s to import

RESULT_SCHEMA_VERSION = 2


class Result(BaseModel):
    """One value of an experiment and what it was measured on.

    Names are not composed: select results of an assessor or variant by its field.

    Attributes:
        metric: e.g. ``factual_precision`` or ``kept_share``.
        assessor: whose judgements were used, if a run has several: verifier, judge, relation model,
            or an evaluated metric.
        selection: ``none``, or the selector's name, e.g. ``core``.
        kind: kind of text (normal, uninformative, repetitive, …) or what else an experiment
            compares: decomposers, engines, verdict sources, claim classes.
        against: the other side of a comparison. The value is the difference to it or, for an
            agreement metric, the agreement with it.
        variant: distinguishes values of the same name: ``trained`` or ``untrained`` (control), a
            number of appended sentences, a threshold, a named verdict, ``sd``, ….
        generator: model or person that wrote the texts.
        domain: e.g. ``biographies``.
        group: group of the texts; ``all`` if not split.
        bin: frequency bin of the topics; ``all`` if not split.
        n: number of topics in the value.
        failed: number of claims that could not be judged; they are excluded from the value.
        value: ``None`` if nothing could be scored.
        ci95: bootstrap interval over topics.
        bounds: lower and upper bound, each one-sided, corrected for the number of cells.
        p: p-value, corrected for the number of tests of its family.
        verdict: the test's conclusion: ``gamed``, ``held``, ``unclear`` or ``void``; ``passes`` or
            ``fails`` of a certificate.
        config_hash: SHA-256 of the configuration.
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
    bounds: tuple[float, float] | None = None
    p: Annotated[float, Field(ge=0, le=1)] | None = None
    verdict: str | None = None
    config_hash: str


class ResultFile(BaseModel):
    """``results.json``: results and their provenance.

    ``provenance`` holds the config, library versions, hashes of checkpoints and data, and seeds. It
    has no time, host or path, so equal runs give equal bytes.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[2] = RESULT_SCHEMA_VERSION
    experiment: str
    provenance: dict
    results: list[Result]

    @property
    def command(self) -> str:
        """The command that wrote the file: ``score`` or ``experiment NAME``."""
        return "score" if self.experiment == "score" else f"experiment {self.experiment}"


def write_results(path: str | Path, file: ResultFile) -> None:
    """Write ``file`` atomically as JSON."""
    write_json(path, file.model_dump(mode="json"))


def read_results(path: str | Path) -> ResultFile:
    """Read and validate a ``results.json``."""
    try:
        return ResultFile.model_validate(load_json(path))
    except FileNotFoundError:
        raise UserError(f"{path}: does not exist; run the experiment first") from None
    except ValidationError as error:
        raise to_bad_input(path, error) from None


def read_frame(path: str | Path) -> pd.DataFrame:
    """Read a ``results.json``, or all in a folder and below, into a pandas frame.

    From then on pandas prints all columns of a frame, each in full.

    Returns:
        One row per result: ``run`` (folder of the file), ``command``, the fields of
            :class:`Result`, and ``low`` and ``high`` instead of ``ci95``; NaN for missing values.
    """
    import pandas as pd

    pd.set_option("display.max_columns", None, "display.max_colwidth", None)
    path = Path(path)
    files = sorted(path.rglob("results.json")) if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path}: no results.json in this folder; expected the folder of a run")
    rows = []
    for result_path in files:
        file = read_results(result_path)
        for row in file.results:
            low, high = row.ci95 or (None, None)
            fields = row.model_dump(exclude={"ci95"})
            run = {"run": str(result_path.parent), "command": file.command}
            rows.append(run | fields | {"low": low, "high": high})
    columns = ["run", "command", *(name for name in Result.model_fields if name != "ci95")]
    numbers = dict.fromkeys(("value", "low", "high"), float)
    return pd.DataFrame(rows, columns=[*columns, "low", "high"]).astype(numbers)
