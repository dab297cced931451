"""The checkpoint contract: one self-describing folder a component.

``checkpoints/<name>/`` holds what ``save_pretrained`` writes (safetensors only; a PEFT adapter for
LoRA), the tokenizer, ``component.json`` and a model card. This file writes and reads it.
"""

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from records import UserError, read_json, sha256_file, write_json, write_text
from records.errors import first_line
from records.writing import report_write_errors

SCHEMA_VERSION = 1

RELATIONS = ["entailment", "neutral", "contradiction"]
# Of a published model with two classes; those that are trained here have all three.
TWO_CLASSES = ["entailment", "not_entailment"]
# The prompt of 2308.12157's released code (infer.py), which T5's tokenizers read as that of A.3.
LSS_TEMPLATE = "Reference: {reference}\n Claim: {claim}\n Output:"

ComponentName = Literal["unli", "relation", "lss", "lss_star", "adversary"]
Architecture = Literal["sequence_classifier", "token_classifier", "seq2seq", "causal_lora"]


class DataFile(BaseModel):
    """A data file that a component was trained, tuned or tested on."""

    split: Literal["train", "dev", "test"]
    path: str
    sha256: str
    rows: int


class Component(BaseModel):
    """Everything ``eval`` needs to use a checkpoint, and everything needed to train it again.

    Attributes:
        labels: output names in the order of the logits; equal to config.json's ``id2label``.
        prompt_template: with ``{topic}`` (adversary) or ``{reference}``, ``{claim}`` (seq2seq).
        chat: whether the prompt goes through the tokenizer's chat template.
        keep_threshold: an LSS tagger keeps a word whose probability is at least this.
        chunk_words: long premises are cut into windows of this many words; the best window counts.
        focus_words: longer premises (windows) are reduced to the sentences that share most with the
            hypothesis, at most this many words.
        mark_new: words of the hypothesis (claim) that the premise lacks are marked with ``*``.
        max_length: input length in tokens.
        temperature: logits are divided by it before softmax or sigmoid (calibration, dev split).
        shift: added after that to the logit of a single output (Platt scaling) or of entailment.
        metrics: values on ``metrics_split`` as the fit measured them.
        evaluation: options under which they were measured: how rows were chosen and batched, and
            what only the measures depend on. `python -m train test` takes them up again.
        nearness: field to the cosine (TF-IDF) of dev's rows with their nearest training rows: the
            share of rows ``near`` (0.8 or more), and quantiles.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = SCHEMA_VERSION
    component: ComponentName
    architecture: Architecture
    style: Literal["info", "repetitive", "preference"] | None = None
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
    nearness: dict[str, dict[str, float]] = {}
    seed: int | None = None
    versions: dict[str, str] = {}


def library_versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    names = ("torch", "transformers", "lightning", "peft", "numpy")
    return {"python": platform.python_version()} | {n: metadata.version(n) for n in names}


def describe_data(split: str, path: str | Path, rows: int) -> DataFile:
    """A data file with its SHA-256; only its name is kept, since folders differ by machine."""
    return DataFile(split=split, path=Path(path).name, sha256=sha256_file(path), rows=rows)


def read_component(folder: str | Path, expected: str | None = None) -> Component:
    """Read and check a checkpoint folder.

    Args:
        folder: the checkpoint.
        expected: the component it must be, e.g. ``unli``; ``lss`` also takes ``lss_star``.
    """
    folder = Path(folder)
    path = folder / "component.json"
    if not path.is_file():
        raise UserError(f"{folder}: no component.json; give a folder that `python -m train` wrote")
    component = read_json(path, Component)
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"{folder}: no weights (*.safetensors); export the checkpoint again")
    wanted = {"lss": {"lss", "lss_star"}}.get(expected, {expected})
    if expected and component.component not in wanted:
        raise UserError(
            f"{folder}: this is a {component.component} checkpoint where {expected} is needed; "
            f"give the folder of a {expected} component"
        )
    if component.architecture != "causal_lora":
        _check_labels(folder, component)
    elif not isinstance(component.base.get("id"), str):
        raise UserError(f"{path}: base.id: no name of a base model; give a hub id or a folder")
    return component


def is_hub_id(name: str) -> bool:
    """Whether a name is ``owner/name`` and the owner is no folder here: a mistyped path is none."""
    return bool(re.fullmatch(r"\w[\w.-]*/[\w.-]+", name)) and not Path(name).parent.is_dir()


def is_published(name: str | Path) -> bool:
    """Whether a name is a model's that another code base made: a hub id, or a folder of one."""
    folder = Path(name)
    foreign = (folder / "config.json").is_file() and not (folder / "component.json").is_file()
    return foreign or is_hub_id(str(name))


def component_of(name: str | Path) -> ComponentName:
    """Which component a checkpoint is; what is published elsewhere is taken for an NLI model."""
    return "relation" if is_published(name) else read_component(name).component


def require_matching_weights(
    folder: str | Path, missing: Iterable[str], unexpected: Iterable[str]
) -> None:
    """Refuse weights that do not fill the model, or do not belong to it.

    Args:
        folder: the checkpoint, for the message.
        missing: names of weights that the model has and the files do not, or in another shape.
        unexpected: names of weights that only the files have.
    """
    for keys, fault in ((sorted(missing), "lack"), (sorted(unexpected), "have unknown")):
        if keys:
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            raise UserError(
                f"{folder}: its *.safetensors {fault} {', '.join(keys[:3])}{more}; export the "
                "checkpoint again, or mend config.json where it describes another model"
            )


def _check_labels(folder: Path, component: Component) -> None:
    from transformers import AutoConfig  # seconds to import, and only this needs it

    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError) as error:  # also where it wants code of its own to be run
        reason = first_line(error)
        raise UserError(f"{folder}: its config.json cannot be used ({reason})") from None
    found = [config.id2label[index] for index in sorted(config.id2label)]
    if component.labels and found != component.labels:
        raise UserError(
            f"{folder}: component.json has labels {component.labels} but config.json has {found}; "
            "make them equal"
        )
    if component.component == "relation" and sorted(component.labels) != sorted(RELATIONS):
        raise UserError(f"{folder}: labels {component.labels} must be {RELATIONS} in some order")


def write_component(folder: str | Path, component: Component, card: str) -> None:
    """Write ``component.json`` and the model card; weights and tokenizer are there already."""
    folder = Path(folder)
    write_text(folder / "README.md", card)
    # Last: a folder with a component.json is a whole checkpoint.
    write_json(folder / "component.json", component.model_dump(mode="json"))


@contextmanager
def replace_folder(to: Path) -> Iterator[Path]:
    """A folder beside a checkpoint's place to write into, which takes that place at the end.

    What is there is the old checkpoint or the new one, whenever the process is killed; only between
    the two renames at the end it is neither, and the next call puts the old one back.
    """
    partial, old = (to.with_name(f".{to.name}.{end}") for end in ("partial", "old"))
    with report_write_errors(to):
        if old.exists() and not to.exists():
            os.replace(old, to)
    for left_over in (partial, old):
        shutil.rmtree(left_over, ignore_errors=True)
    try:
        with report_write_errors(to), _weights_written():
            partial.mkdir(parents=True)
            yield partial
            for file in partial.iterdir():
                if file.is_file():  # some tokenizers write a folder
                    file.chmod(0o644)  # safetensors writes for the owner alone
            if to.exists():
                os.replace(to, old)
            os.replace(partial, to)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _weights_written() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
