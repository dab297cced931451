"""``python -m train {fit,validate,test,predict}``: a thin LightningCLI in subclass mode.

YAML picks the module and the data by ``class_path``. Here are the defaults that every run shares:
seed first, precision, loggers, callbacks, and the folder ``runs/train/NAME``. ``validate``,
``test`` and ``predict`` also take a checkpoint folder, which needs no YAML (``train/export.py``).
"""

import argparse
import json
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
from lightning import LightningDataModule, LightningModule
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Callback, RichProgressBar
from lightning.pytorch.cli import (
    ArgsType,
    LightningArgumentParser,
    LightningCLI,
    SaveConfigCallback,
)
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins.environments import SLURMEnvironment
from lightning.pytorch.utilities.exceptions import SIGTERMException

from cli.command import RESUME_HINT
from cli.parser import parse
from components.checkpoint import read_component
from records import UserError, sha256_file, sha256_text
from records.writing import lock_folder
from train.export import Export, compare, complete, differences, kind_of, load, shown
from train.hub import check_push, push
from train.options import TRAINER_DEFAULTS, RunOptions
from train.resume import (
    BEST,
    LAST,
    Best,
    KeepSteps,
    LastValidation,
    Patience,
    Resume,
    WholeFiles,
    curves_logger,
    is_first,
    read_state,
)

FIT_OPTIONS = {"config", "ckpt_path", *(option.name for option in fields(RunOptions))}


def default_precision() -> str:
    """bf16 autocast where the processor computes in bf16, else fp32.

    On a CPU with AVX512-BF16 a training step in bf16 took half (MiniLM) to a quarter (SmolLM2) of
    the time in fp32; without such instructions bf16 is emulated and a step took four times as long
    as in fp32, though oneDNN calls it supported.
    """
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16-mixed" if native or torch.cuda.is_available() else "32-true"


class TrainCLI(LightningCLI):
    """LightningCLI with the run's folder, loggers, resuming and export."""

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        self.config = parse(parser, args, self._subcommand_parsers.get(args[0] if args else ""))

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_class_arguments(RunOptions, as_group=False)

    def _set_seed(self) -> None:
        try:
            super()._set_seed()
        except ValueError as error:  # of numpy, which takes 32 bits
            raise UserError(f"--seed_everything: {error}") from None

    def _parse_ckpt_path(self) -> None:
        """Lightning's own would put a checkpoint's hyperparameters over the options given here."""

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
        self.options.trainer.default_root_dir = str(self.folder)
        if self.options.data is None:
            raise UserError("no data: give --data CLASS and --data.train, --data.dev in a config")
        if self.subcommand != "fit" and self.checkpoint is not None:
            self._obey_checkpoint()
        if self.subcommand == "fit":
            if "WANDB_SWEEP_ID" in os.environ and "WANDB_RUN_ID" in os.environ:
                self._name_apart(f"-{os.environ['WANDB_RUN_ID']}")
            if self.options.trainer.fast_dev_run:
                self._name_apart("_fast_dev_run")
                self.options.push_to_hub = None
            if self.options.push_to_hub is not None:
                check_push(self.options.push_to_hub)
            if is_first():
                self.entered.enter_context(lock_folder(self.folder, "--name"))

    def _obey_checkpoint(self) -> None:
        component = read_component(self.checkpoint)
        path = kind_of(self.checkpoint, component)
        given = self.options.model
        if given.class_path != path:
            raise UserError(
                f"{self.checkpoint}: holds a {component.component} as {component.architecture}, "
                f"which is {path}, but --model is {given.class_path}; leave --config and --model "
                "out or give those of its training"
            )
        other = differences(component, path, vars(given.init_args))
        if other:
            print(f"{self.checkpoint}: its own settings hold: {'; '.join(other)}", file=sys.stderr)

    def _name_apart(self, suffix: str) -> None:
        self.options.export_to = f"{self.export_to}{suffix}"
        self.options.name = f"{self.options.name}{suffix}"
        self.options.trainer.default_root_dir = str(self.folder)

    def instantiate_classes(self) -> None:
        try:
            super().instantiate_classes()
        except ValueError as error:  # jsonargparse's, around whatever a constructor refused
            raise UserError(one_line(str(error))) from None

    def instantiate_trainer(self, **kwargs: object):
        """Add loggers and callbacks, whose folders and monitor come from the options and module."""
        trainer = self.config_init[self.subcommand].trainer
        one = isinstance(trainer.callbacks, Callback)
        callbacks = [trainer.callbacks] if one else list(trainer.callbacks or [])
        if trainer.enable_progress_bar is not False:
            callbacks.append(RichProgressBar(console_kwargs={"stderr": True}))
        if self.subcommand == "fit":
            fingerprint = self._fingerprint()
            step = self._start(fingerprint)
            callbacks += self._fit_callbacks(fingerprint, step)
            if trainer.logger in (None, True):
                trainer.logger = self._loggers(step)
        else:
            self._resolve_checkpoint()
            trainer.logger = trainer.logger or False
        trainer.callbacks = callbacks
        try:
            made = super().instantiate_trainer(**kwargs)
        except (MisconfigurationException, ValueError, TypeError) as error:
            raise UserError(f"trainer: {one_line(str(error))}") from None
        made.strategy.checkpoint_io = WholeFiles()
        environment = made._accelerator_connector.cluster_environment
        if isinstance(environment, SLURMEnvironment):
            # At a signal it would keep a checkpoint of its own, from which a requeued job goes on
            # without `--ckpt_path`, while `Best`, `Resume` and the curves take it for a fresh one.
            environment.auto_requeue = False
        return made

    def _fit_callbacks(self, fingerprint: str, step: int) -> list:
        options, module = self.options, self.model
        monitored = {"monitor": module.monitor, "mode": module.monitor_mode}
        given = self.config_init[self.subcommand].ckpt_path
        return [
            # A measure without a value is NaN; it is no reason to stop. Checked after validation: a
            # run resumed at the end of an epoch has no measures there.
            Patience(
                **monitored,
                patience=int(options.patience),  # kept in checkpoints, where no class may be
                check_finite=False,
                check_on_train_epoch_end=False,
            ),
            Best(
                given and Path(given),
                **monitored,
                dirpath=self.folder,
                filename=BEST.removesuffix(".ckpt"),
                save_weights_only=True,
                enable_version_counter=False,
                save_on_train_epoch_end=False,
            ),
            LastValidation(),  # before Resume, which writes nothing where a validation follows
            # Before Resume: a run that goes on at a step has that step's weights already.
            steps := KeepSteps(self.folder / "steps", sorted({*options.export_steps}), step == 0),
            Resume(self.folder, options.save_every, fingerprint, fresh=step == 0),
            Export(self.export_to, self.folder / BEST, self.arguments, steps),
        ]

    def _loggers(self, step: int) -> list[Logger]:
        loggers: list[Logger] = [curves_logger(Path(self.options.runs), self.options.name, step)]
        if os.environ.get("WANDB_MODE") != "disabled":
            import wandb
            from lightning.pytorch.loggers import WandbLogger

            logger = WandbLogger(
                name=self.options.name,
                project="factfoundry",
                save_dir=self.folder,
                offline=not {"WANDB_API_KEY", "WANDB_SWEEP_ID"} & set(os.environ),
                # Lightning adds the module's and the data's own options.
                config={k: v for k, v in self._decisive().items() if k not in ("model", "data")},
                settings=wandb.Settings(silent=True, console="off", disable_git=True),
            )
            # Lightning passes it always, and wandb warns that it does nothing.
            logger._wandb_init.pop("anonymous", None)
            loggers.append(logger)
        return loggers

    def _fingerprint(self) -> str:
        """What decides the weights: every option of model, data and trainer, and files they name.

        Those are the data files, and the weights of a checkpoint folder that training starts from.
        """
        chosen = self._decisive()
        paths = [path for paths in self.datamodule.paths.values() for path in paths]
        for value in chosen["model"].get("init_args", {}).values():
            if isinstance(value, str) and (Path(value) / "component.json").is_file():
                paths += sorted(Path(value).glob("*.safetensors"))
        hashes = [sha256_file(path) for path in paths if Path(path).is_file()]
        return sha256_text(json.dumps([chosen, hashes], sort_keys=True, default=_name_of))

    def _decisive(self) -> dict:
        return {k: v for k, v in self.options.as_dict().items() if k not in FIT_OPTIONS}

    def _start(self, fingerprint: str) -> int:
        given = self.options.ckpt_path
        if given is None or given == "last":
            last = self.folder / LAST
            resumable = given == "last" and last.is_file()
            if resumable and read_state(last)["fingerprint"] != fingerprint:
                print(
                    f"{last}: from another configuration or other data; starting anew. "
                    f"`--ckpt_path {last}` goes on with it all the same.",
                    file=sys.stderr,
                )
                resumable = False
            given = str(last) if resumable else None
        elif not Path(given).is_file():
            raise UserError(f"--ckpt_path {given}: no such file; give a .ckpt file or `last`")
        elif not read_state(Path(given))["whole"]:
            raise UserError(
                f"--ckpt_path {given}: holds weights alone, and no training goes on from them; "
                f"give the {LAST} beside it"
            )
        self.config_init[self.subcommand].ckpt_path = given
        return read_state(Path(given))["step"] if given else 0

    def _resolve_checkpoint(self) -> None:
        """For validate, test and predict: ``best`` and ``last`` are files of the run's folder.

        A checkpoint folder is loaded here, and Lightning has nothing left to load.
        """
        if self.checkpoint is not None:
            load(self.model, self.checkpoint)
            self.config_init[self.subcommand].ckpt_path = None
            return
        given = self.options.ckpt_path
        path = {"best": self.folder / BEST, "last": self.folder / LAST}.get(given, given)
        if path is None or not Path(path).is_file():
            raise UserError(
                f"--ckpt_path {path}: no such file; give a checkpoint folder, or `best`, `last` or "
                f"a .ckpt file of a fit (best and last are looked for in {self.folder})"
            )
        read_state(Path(path))
        if self.subcommand != "validate":  # which fits them anew
            print(f"{path}: as trained, without the calibration that the checkpoint folder has")
        self.config_init[self.subcommand].ckpt_path = str(path)

    def after_fit(self) -> None:
        if self.options.push_to_hub is not None and self.trainer.is_global_zero:
            push(self.export_to, self.options.push_to_hub)

    def after_validate(self) -> None:
        self._tell("dev")

    def after_test(self) -> None:
        self._tell("test")

    def _tell(self, split: str) -> None:
        if not self.trainer.is_global_zero:
            return
        print(f"{split}: {shown(self.model.measured)}")
        if self.checkpoint is not None:
            judged = [file for file in self.datamodule.files if file.split == split]
            component = read_component(self.checkpoint)
            if message := compare(component, judged, self.model.measured):
                print(f"{self.checkpoint}: {message}")


def _name_of(value: object) -> str:
    name = getattr(value, "__qualname__", None)
    return str(value) if name is None else f"{value.__module__}.{name}"


def given_folder(arguments: Sequence[str]) -> Path | None:
    """The checkpoint folder among the arguments of a command, if ``--ckpt_path`` names one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--ckpt_path")
    path = parser.parse_known_args(arguments)[0].ckpt_path
    if path and path not in {"best", "last"} and not Path(path).exists():
        raise UserError(
            f"--ckpt_path {path}: no such file; give a checkpoint folder, or `best`, `last` or a "
            ".ckpt file of a fit"
        )
    return Path(path) if path and Path(path).is_dir() else None


def quieten() -> None:
    """Leave on the screen what a user can act on."""
    warnings.filterwarnings("ignore", module="lightning|torch|transformers|jsonargparse")
    for name in ("pytorch.utilities.rank_zero", "fabric.utilities.seed"):
        logging.getLogger(f"lightning.{name}").setLevel(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def one_line(message: str) -> str:
    """A parser's message as one line; of a tree of alternatives only the branch at fault."""
    lines = (line.strip().removeprefix("- ") for line in message.splitlines())
    text = " ".join(filter(None, lines))
    text = re.sub(
        r"Does not validate against any of the Union subtypes Subtypes:.*?Errors:", "", text
    )
    text = re.split(r" Expected a <class 'NoneType'>| Given value type:", text)[0]
    text = re.sub(r"Parser key |Problem with given class_path ", "", text)
    return re.sub(r" +", " ", text).strip()[:400]


def run_lightning(arguments: list[str]) -> int:
    """Run fit, validate, test or predict; user mistakes raise ``UserError``."""
    quieten()
    command, *rest = arguments or [""]
    judges = command in {"validate", "test", "predict"}
    TrainCLI.arguments = arguments
    TrainCLI.checkpoint = given_folder(rest) if judges else None
    given: ArgsType = list(arguments)
    if TrainCLI.checkpoint is not None:
        given = [command, *complete(TrainCLI.checkpoint, rest)]
    strict = {"exit_on_error": False}
    commands = {name: dict(strict) for name in LightningCLI.subcommands()}
    try:
        with ExitStack() as TrainCLI.entered:
            TrainCLI(
                LightningModule,
                LightningDataModule,
                subclass_mode_model=True,
                subclass_mode_data=True,
                seed_everything_default=1,
                trainer_defaults=TRAINER_DEFAULTS,
                # Judging a run must not replace the configuration it was trained with.
                save_config_callback=None if judges else SaveConfigCallback,
                save_config_kwargs={"overwrite": True},
                auto_configure_optimizers=False,
                parser_kwargs={**strict, **commands},
                args=given,
            )
    except MisconfigurationException as error:
        raise UserError(one_line(str(error))) from None
    except RuntimeError as error:
        if not str(error).startswith("Error(s) in loading state_dict"):
            raise
        raise UserError(
            f"--ckpt_path: its weights are not those of this --model ({one_line(str(error))}); "
            "give the options of its training"
        ) from None
    except SIGTERMException:  # Lightning's, which leaves with 0, as if all had been done
        print(f"terminated; {RESUME_HINT}", file=sys.stderr)
        return 128 + signal.SIGTERM
    except SystemExit as left:
        if isinstance(left.__context__, KeyboardInterrupt):  # Lightning leaves without a word
            raise KeyboardInterrupt from None
        raise
    return 0
