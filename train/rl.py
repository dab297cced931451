"""``python -m train rl``: train an adversary against a metric with GRPO (2402.03300).

In each step the model writes a group of texts per topic, the metric scores them, and texts above
the mean of their group become more likely. trl's ``GRPOTrainer`` trains the same model, prompt and
adapter as ``fit``, and the export is the same. The metric is named by ``class_path``, because
``train`` does not import ``eval``. A text that the metric cannot score has no effect.

A run resumes from its last checkpoint, with its random state.
"""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Protocol

import torch
from datasets import Dataset
from jsonargparse.typing import NonNegativeFloat
from lightning import seed_everything
from pandas import DataFrame
from transformers import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from cli.parser import command_parser, parse
from components.adapter import load_adapter
from components.base import load_tokenizer
from components.checkpoint import describe_data
from components.encoding import fill_prompt
from components.precision import configure_cuda
from components.sentences import last_whole_sentence
from records import Document, UserError, read_records, write_json, write_text
from records.errors import first_line
from records.types import Record, Text
from records.writing import lock_folder
from train.cli import default_precision, silence_libraries
from train.continuing import TrainingRun
from train.export import describe_step, export_folders, write_checkpoint
from train.options import OutputOptions
from train.preference import Preference

# trl's measures of a step that are kept; others are times or constants.
_MEASURES = ("loss", "reward", "reward_std", "kl", "failed", "entropy", "completions/mean_length")


class Topic(Record):
    """A row of a file of topics."""

    topic: Text


class Reinforced(Preference):
    """A LoRA adversary trained by GRPO; the reference policy is the base model or ``start``.

    Args:
        start: folder of an adversary to initialise from; its base, prompt, r, alpha and layers must
            equal the options set here. Null: the base model.
        beta: weight of the KL divergence from the reference policy.
    """

    style = "reinforced"

    def __init__(
        self,
        start: str | None = None,
        beta: NonNegativeFloat = 0.04,
        lr: NonNegativeFloat = 1e-5,
        monitor: str = "train/reward",
        **lora: Any,
    ):
        super().__init__(start, beta, lr, monitor, **lora)

    def _load_start(self, start: Path) -> None:
        load_adapter(self.model, start, "default")  # trl copies it as the reference


class Reward(Protocol):
    """A metric to train against; ``train`` knows no class of ``eval``."""

    def score(self, documents: Any) -> Any:
        """Return a number or None per text."""


@dataclass(kw_only=True)
class RlOptions(OutputOptions):
    """Options of ``python -m train rl``.

    Args:
        model: the adversary, ``train.rl.Reinforced``, and its options.
        reward: the metric: a class with ``score(documents)``, which returns a number or None per
            text, e.g. ``eval.defences.PipelineScore``.
        topics: JSONL files whose rows have the field ``topic``.
        grpo: options of trl's ``GRPOConfig``, e.g. ``max_steps``, ``num_generations`` (texts per
            topic), ``save_steps`` (between two checkpoints), ``seed``, ``use_vllm``.
    """

    model: Reinforced
    reward: Reward
    topics: list[str]
    grpo: dict[str, Any] = field(default_factory=dict)
    name: str = "rl"


def run(arguments: Sequence[str]) -> int:
    """Train and export; ``arguments`` are those after ``rl``."""
    silence_libraries()
    configure_cuda()
    parser = command_parser("python -m train rl", "train an adversary against a metric by GRPO")
    parser.add_class_arguments(RlOptions, as_group=False)
    config = parse(parser, arguments)
    config.pop("config", None)
    raw = json.loads(parser.dump(config, format="json", skip_unset=False))
    grpo = _config(raw)
    options = RlOptions(**parser.instantiate(config))
    options.export_to = options.export_to or f"checkpoints/{options.name}"
    seed_everything(grpo.seed, verbose=False)  # before the adapter is drawn
    with lock_folder(grpo.output_dir, "--name") if grpo.process_index == 0 else nullcontext():
        _train(options, grpo, raw, ["rl", *arguments])
    return 0


def _train(options: RlOptions, grpo: GRPOConfig, raw: dict, arguments: Sequence[str]) -> None:
    module, folder = options.model, Path(grpo.output_dir)
    module.check_tokenizer()
    module.configure_model()
    paths = [*options.topics, *sorted(Path(module.start or "-").glob("*.safetensors"))]
    decisive = {name: raw[name] for name in ("model", "reward", "topics", "grpo")}
    run, checkpoint = _resolve_run(options, TrainingRun.start(decisive, paths), folder)
    trainer = _Trainer(
        model=module.model,
        reward_funcs=_reward_function(options.reward, module),
        args=grpo,
        train_dataset=_prompts(options, grpo),
        processing_class=load_tokenizer(module.base, module.revision),
    )
    trainer.options, trainer.reward, trainer.arguments = options, raw["reward"], arguments
    trainer.run = run
    trainer.remove_callback(PrinterCallback)
    if trainer.is_world_process_zero():
        write_json(folder / "options.json", asdict(run))
    if checkpoint is None:
        trainer.export_step()
    trainer.train(resume_from_checkpoint=checkpoint)
    if trainer.is_world_process_zero():
        trainer.export(Path(options.export_to))


def _resolve_run(
    options: RlOptions, run: TrainingRun, folder: Path
) -> tuple[TrainingRun, str | None]:
    """The run and its last complete checkpoint; deletes incomplete and overwritten ones."""
    path, last = folder / "options.json", None
    stored = (
        TrainingRun(**json.loads(path.read_text(encoding="utf-8")))
        if path.is_file()
        else TrainingRun()
    )
    checkpoints = sorted(folder.glob("checkpoint-*"), key=_step_of)
    is_same = run.continues(stored)
    if checkpoints and not is_same and not options.overwrite:
        raise run.refused(stored, folder)
    for saved in checkpoints:
        try:
            if not is_same:
                raise ValueError("of another run")
            # trl writes this file last.
            json.loads((saved / "trainer_state.json").read_text(encoding="utf-8"))
            last = saved
        except (OSError, ValueError) as error:
            print(f"{saved}: not resumed: {first_line(error)}", file=sys.stderr)
            shutil.rmtree(saved)
    if last is not None:
        run = run.resumed(stored, last, _step_of(last))
    run.check_exports(
        export_folders(Path(options.export_to), options.export_steps), options.overwrite
    )
    return run, last and str(last)


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _config(options: dict[str, Any]) -> GRPOConfig:
    module = options["model"]["init_args"]
    defaults = {
        "max_steps": 100,
        "beta": module["beta"],
        "learning_rate": module["lr"],
        "weight_decay": module["weight_decay"],
        "seed": 1,
        "save_steps": 10,
        "save_total_limit": 1,
        "logging_steps": 1,
        "bf16": default_precision() != "32-true",
        "use_cpu": not torch.cuda.is_available(),
        "gradient_checkpointing": False,
        "report_to": "none",
        "disable_tqdm": not sys.stderr.isatty(),
    }
    fixed = {"output_dir": f"{options['runs']}/{options['name']}", "shuffle_dataset": False}
    try:
        return GRPOConfig(**(defaults | options["grpo"] | fixed))
    except (TypeError, ValueError) as error:
        raise UserError(f"--grpo: {first_line(error)}") from None


def _prompts(options: RlOptions, grpo: GRPOConfig) -> Dataset:
    """A row per topic of each step: training is one epoch, in an order that the seed fixes."""
    module, draws = options.model, Random(grpo.seed)
    topics = list(dict.fromkeys(r.topic for p in options.topics for r in read_records(p, Topic)))
    texts = grpo.per_device_train_batch_size * grpo.gradient_accumulation_steps * grpo.world_size
    count = grpo.max_steps * texts // grpo.num_generations
    rounds = [draws.sample(topics, len(topics)) for _ in range(count // len(topics) + 1)]
    rows = []
    for topic in list(chain(*rounds))[:count]:
        text = fill_prompt(module.prompt_template, topic=topic)
        prompt = [{"role": "user", "content": text}] if module.chat else text
        rows.append({"prompt": prompt, "topic": topic})
    return Dataset.from_list(rows)


def _reward_function(metric: Reward, module: Reinforced) -> Callable[..., list[float | None]]:
    def reward(
        completions: list, completion_ids: list, topic: list, log_metric: Callable, **_: object
    ) -> list[float | None]:
        documents = []
        for number, (text, ids) in enumerate(zip(completions, completion_ids, strict=True)):
            text = text if isinstance(text, str) else text[0]["content"]
            has_ended = bool(ids) and ids[-1] == module.tokenizer.eos_token_id
            text = text.strip() if has_ended else last_whole_sentence(text.strip())
            documents.append(Document(id=str(number), topic=topic[number], text=text))
        scores = list(metric.score(documents))
        log_metric("failed", sum(score is None for score in scores) / len(scores))
        return scores

    return reward


class _Trainer(GRPOTrainer):
    """Saves only the trained adapter, and exports steps as checkpoint folders."""

    options: RlOptions
    reward: dict[str, Any]
    arguments: Sequence[str]
    run: TrainingRun

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:  # the optimizer has the learning rate of a shorter schedule
            self.lr_scheduler.last_epoch -= 1
            self.lr_scheduler.step()

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        self.options.model.save_pretrained(Path(output_dir))

    def create_model_card(self, *_: object, **__: object) -> None:
        """The export has a card; a checkpoint to resume from needs none."""

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        super().log(logs, start_time)
        if self.is_world_process_zero() and "train_runtime" not in logs:
            rows = [{"step": e["step"]} | _measures(e) for e in self.state.log_history]
            table = DataFrame(rows).to_csv(index=False)
            write_text(Path(self.args.output_dir) / "metrics.csv", table)
            values = "  ".join(f"{name} {value:.4g}" for name, value in _measures(logs).items())
            print(f"step {self.state.global_step}: {values}", flush=True)
            self.export_step()

    def export_step(self) -> None:
        step, options = self.state.global_step, self.options
        if self.is_world_process_zero() and step in options.export_steps:
            self.export(export_folders(Path(options.export_to), [step])[1])

    def export(self, to: Path) -> None:
        module, options, state = self.options.model, self.options, self.state
        steps = [e for e in state.log_history if e["step"] == state.global_step and "reward" in e]
        metrics = _measures(steps[-1]) if steps else {}
        training = dict(
            command=self.arguments,
            weights=describe_step(state.global_step),
            curves=Path(self.args.output_dir) / "metrics.csv" if steps else None,
            measures={name: {"value": value, "ci95": None} for name, value in metrics.items()},
        )
        write_checkpoint(
            module,
            to,
            training,
            data=[describe_data("train", p, len(read_records(p, Topic))) for p in options.topics],
            metrics=metrics,
            metrics_split="train",
            evaluation={"reward": self.reward, "start": module.start, "beta": self.args.beta},
            seed=self.args.seed,
            run=self.run.key,
        )
        print(f"checkpoint: {to}")


def _measures(entry: dict) -> dict[str, float]:
    return {f"train/{name}": entry[name] for name in _MEASURES if entry.get(name) is not None}
