"""``python -m train fit``: a LightningCLI in subclass mode.

The YAML selects module and data by ``class_path``. This module sets what all runs share: seed,
precision, loggers, callbacks and the folder ``runs/train/NAME``.
"""

import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

import torch
import transformers
from lightning import LightningDataModule, LightningModule, Trainer
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Callback, RichProgressBar
from lightning.pytorch.cli import (
    ArgsType,
    LightningArgumentParser,
    LightningCLI,
)
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from lightning.pytorch.plugins.environments import SLURMEnvironment
from lightning.pytorch.utilities.exceptions import SIGTERMException

from cli.command import RESUME_HINT
from cli.parser import parse
from cli.printable import printable
from components.precision import configure_cuda, is_bfloat16_fast
from records import UserError
from records.errors import first_line
from records.writing import lock_folder
from train import export, resume
from train.continuing import TrainingRun
from train.options import TRAINER_DEFAULTS, RunOptions
from train.resume import BEST, LAST, KeepSteps

FIT_OPTIONS = {"config", "ckpt_path", *(option.name for option in fields(RunOptions))}


def default_precision() -> str:
    """bf16 autocast where it is faster than fp32, else fp32."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return "bf16-mixed" if is_bfloat16_fast(device) else "32-true"


class ProgressBar(RichProgressBar):
    """Lightning's bar without the number of epochs if it has no limit, and without a version."""

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict:
        """The logged values."""
        items = super().get_metrics(trainer, pl_module)
        return {name: value for name, value in items.items() if name != "v_num"}

    def _get_train_description(self, current_epoch: int) -> str:
        return super()._get_train_description(current_epoch).replace("/-2", "")


class TrainCLI(LightningCLI):
    """LightningCLI with run folder, loggers, resume and export.

    Args:
        arguments: the command line, for the model card.
        locks: holds the lock of the run's folder.
    """

    def __init__(self, arguments: Sequence[str], locks: ExitStack, **options: object):
        self.arguments, self.locks = arguments, locks
        super().__init__(LightningModule, LightningDataModule, args=list(arguments), **options)

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Lightning's subcommands and their options that Lightning sets itself."""
        return {"fit": LightningCLI.subcommands()["fit"]}

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        self.config = parse(parser, args, self._subcommand_parsers.get(args[0] if args else ""))

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_class_arguments(RunOptions, as_group=False)

    def _set_seed(self) -> None:
        try:
            super()._set_seed()
        except ValueError as error:  # numpy takes 32-bit seeds
            raise UserError(f"--seed_everything: {error}") from None

    def _parse_ckpt_path(self) -> None:
        """Disable Lightning's method, which overrides options by the checkpoint's parameters."""

    @property
    def options(self):
        return self.config[self.subcommand]

    @property
    def folder(self) -> Path:
        return Path(self.options.runs) / self.options.name

    @property
    def export_to(self) -> Path:
        return Path(self.options.export_to or f"checkpoints/{self.options.name}")

    def before_instantiate_classes(self) -> None:
        if self.options.trainer.precision is None:
            self.options.trainer.precision = default_precision()
        if self.options.data is None:
            raise UserError("no data: set --data CLASS, --data.train and --data.dev")
        if self.options.trainer.fast_dev_run:
            self.options.export_to = f"{self.export_to}_fast_dev_run"
            self.options.name = f"{self.options.name}_fast_dev_run"
            self.options.overwrite = True
        if resume.is_first():
            self.locks.enter_context(lock_folder(self.folder, "--name"))

    def instantiate_classes(self) -> None:
        try:
            super().instantiate_classes()
        except ValueError as error:  # jsonargparse wraps errors of constructors
            raise UserError(shorten_error(str(error))) from None

    def instantiate_trainer(self, **kwargs: object):
        """Add the loggers and callbacks of this run."""
        trainer = self.config_init[self.subcommand].trainer
        is_single = isinstance(trainer.callbacks, Callback)
        callbacks = [trainer.callbacks] if is_single else list(trainer.callbacks or [])
        if trainer.enable_progress_bar is not False:
            callbacks.append(ProgressBar(console_kwargs={"stderr": True}))
        run, step = self._resolve_run()
        callbacks += self._fit_callbacks(run, step)
        trainer.default_root_dir = str(self.folder)
        trainer.logger = self._loggers(run, step, trainer.logger)
        trainer.callbacks = callbacks
        try:
            instance = super().instantiate_trainer(**kwargs)
        except (MisconfigurationException, ValueError, TypeError) as error:
            raise UserError(f"trainer: {shorten_error(str(error))}") from None
        instance.strategy.checkpoint_io = resume.AtomicCheckpointIO()
        environment = instance._accelerator_connector.cluster_environment
        if isinstance(environment, SLURMEnvironment):
            # A requeued job would resume from Lightning's own checkpoint without `--ckpt_path`, and
            # `Best`, `Resume` and the curves would treat it as a new run.
            environment.auto_requeue = False
        return instance

    def _fit_callbacks(self, run: TrainingRun, step: int) -> list:
        options, module = self.options, self.model
        monitored = {"monitor": module.monitor, "mode": module.monitor_mode}
        resume_path = self.config_init[self.subcommand].ckpt_path
        return [
            # An undefined measure is NaN and must not stop training. Checked after validation: a
            # run resumed at the end of an epoch has no measures yet.
            resume.Patience(
                **monitored,
                patience=int(options.patience),  # checkpoints may not contain classes
                min_delta=float(options.least_gain),
                check_finite=False,
                check_on_train_epoch_end=False,
            ),
            resume.Best(
                resume_path and Path(resume_path),
                **monitored,
                dirpath=self.folder,
                filename=BEST.removesuffix(".ckpt"),
                save_weights_only=True,
                enable_version_counter=False,
                save_on_train_epoch_end=False,
            ),
            resume.Validations(),  # before Resume, which does not save if a validation follows
            # Before Resume: see KeepSteps.
            steps := KeepSteps(self.folder / "steps", sorted({*options.export_steps})),
            resume.Resume(self.folder, options.save_every, run, fresh=step == 0),
            export.Export(self.export_to, self.folder / BEST, self.arguments, steps, run.key),
        ]

    def _loggers(self, run: TrainingRun, step: int, configured: object) -> list[Logger]:
        """Loggers of the configuration (default: wandb), and one whose curves the card draws."""
        if configured is False:
            return []
        curves = resume.curves_logger(Path(self.options.runs), self.options.name, step)
        loggers: list[Logger] = [curves]
        if configured not in (None, True):
            loggers += configured if isinstance(configured, list) else [configured]
            for logger in loggers:
                if isinstance(logger, TensorBoardLogger) and logger._version is None:
                    logger._version = run.started
                elif isinstance(logger, WandbLogger):
                    logger._wandb_init["id"] = logger._wandb_init["id"] or run.started
        elif os.environ.get("WANDB_MODE") != "disabled":
            import wandb

            logger = self._wandb(run, offline="WANDB_API_KEY" not in os.environ)
            try:
                _ = logger.experiment  # the run starts on the server
            except wandb.Error as error:
                problem = f"wandb: {first_line(error)}; this run is logged offline"
                print(printable(problem), file=sys.stderr)
                os.environ.pop("WANDB_API_KEY", None)  # an invalid key ends an offline run, too
                wandb.teardown()
                logger = self._wandb(run, offline=True)
            loggers.append(logger)
        return loggers

    def _wandb(self, run: TrainingRun, offline: bool) -> Logger:
        import wandb

        options = self._training_options()
        logger = WandbLogger(
            name=self.options.name,
            id=run.started,
            project="factfoundry",
            save_dir=self.folder,
            offline=offline,
            # Lightning adds the options of model and data.
            config={k: v for k, v in options.items() if k not in ("model", "data")},
            settings=wandb.Settings(silent=True, console="off", disable_git=True, init_timeout=30),
        )
        # Deprecated in wandb, but always passed by Lightning.
        logger._wandb_init.pop("anonymous", None)
        return logger

    def _training_options(self) -> dict:
        return {k: v for k, v in self.options.as_dict().items() if k not in FIT_OPTIONS}

    def _start_run(self) -> TrainingRun:
        """The run of the options, data files and weights of a checkpoint folder trained on."""
        options = self._training_options()
        paths = [path for paths in self.datamodule.paths.values() for path in paths]
        for value in options["model"].get("init_args", {}).values():
            if isinstance(value, str) and (Path(value) / "component.json").is_file():
                paths += sorted(Path(value).glob("*.safetensors"))
        return TrainingRun.start(options, paths)

    def _resolve_run(self) -> tuple[TrainingRun, int]:
        """The run and the step that it starts at; nothing is written before these checks."""
        options, last, run, step = self.options, self.folder / LAST, self._start_run(), 0
        owner = resume.read_state(last)[1] if last.is_file() else None
        path = options.ckpt_path or (None if options.overwrite else "last")
        if path == "last":
            path = str(last) if owner is not None and run.continues(owner) else None
        if path is not None:
            step, stored = resume.read_state(Path(path))
            run = run.resumed(stored, path, step)
        is_other = owner is not None and (owner != run if path is None else owner.key != run.key)
        if is_other and not options.overwrite:
            raise run.refused(owner, last)
        if path is None and not options.overwrite and (self.folder / "metrics.csv").is_file():
            print(f"{self.folder}: no {LAST} (--save_every {options.save_every}); starts at step 0")
        folders = export.export_folders(self.export_to, options.export_steps)
        run.check_exports(folders, options.overwrite)
        self.config_init[self.subcommand].ckpt_path = path
        return run, step


def silence_libraries() -> None:
    """Silence warnings and progress bars that a user cannot act on."""
    warnings.filterwarnings("ignore", module="lightning|torch|transformers|jsonargparse")
    for name in ("pytorch.utilities.rank_zero", "fabric.utilities.seed"):
        logging.getLogger(f"lightning.{name}").setLevel(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def shorten_error(message: str) -> str:
    """Shorten a parser's error to one line without the alternatives of a union type."""
    lines = (line.strip().removeprefix("- ") for line in message.splitlines())
    text = " ".join(filter(None, lines))
    text = re.sub(
        r"Does not validate against any of the Union subtypes Subtypes:.*?Errors:", "", text
    )
    text = re.split(r" Expected a <class 'NoneType'>| Given value type:", text)[0]
    text = re.sub(r"Parser key |Problem with given class_path ", "", text)
    return re.sub(r" +", " ", text).strip()[:400]


def run_lightning(arguments: list[str]) -> int:
    """Run fit; invalid input raises ``UserError``."""
    silence_libraries()
    configure_cuda()
    parser_options = {"exit_on_error": False}
    try:
        with ExitStack() as locks:
            TrainCLI(
                arguments,
                locks,
                subclass_mode_model=True,
                subclass_mode_data=True,
                seed_everything_default=1,
                trainer_defaults=TRAINER_DEFAULTS,
                save_config_kwargs={"overwrite": True},
                auto_configure_optimizers=False,
                parser_kwargs={**parser_options, "fit": dict(parser_options)},
            )
    except MisconfigurationException as error:
        raise UserError(shorten_error(str(error))) from None
    except ValueError as error:
        if "val_check_interval" not in str(error):
            raise
        raise UserError(f"--trainer: {shorten_error(str(error))}") from None
    except torch.OutOfMemoryError as error:
        raise UserError(
            "out of GPU memory: halve --data.batch_size, double --trainer.accumulate_grad_batches, "
            f"and repeat the command, which resumes ({shorten_error(str(error))})"
        ) from None
    except RuntimeError as error:
        if not str(error).startswith("Error(s) in loading state_dict"):
            raise
        raise UserError(
            f"--ckpt_path: its weights do not match --model ({shorten_error(str(error))}); "
            "use the options of its training"
        ) from None
    except SIGTERMException:  # Lightning would exit with 0
        print(f"terminated; {RESUME_HINT}", file=sys.stderr)
        return 128 + signal.SIGTERM
    except SystemExit as system_exit:
        if isinstance(system_exit.__context__, KeyboardInterrupt):  # Lightning exits silently
            raise KeyboardInterrupt from None
        raise
    return 0
