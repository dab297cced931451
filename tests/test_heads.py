"""The commands that the heads of configurations name are parsed, up to where work begins."""

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from jsonargparse import ArgumentParser

from cli.command import CommandError
from cli.parser import command_parser, function_parser, parse

ROOT = Path(__file__).parents[1]
# `SERPER_API_KEY=… python -m eval …`, `Label: torchrun … -m train …`
_COMMAND = re.compile(r"(?:\w[^`(]*)?(?:python|torchrun .*|accelerate launch .*) -m (.*)")
# `Label: … --option value`: options of the command above.
_OPTIONS = re.compile(r"(?:[^`…]*\s)?…\s+(--.*)")
Command = tuple[str, ...]


def commands_of(config: Path) -> Iterator[Command]:
    """The words of the commands of a head, after ``python -m``."""
    head = re.match(r"(?:#.*\n|\n)*", config.read_text(encoding="utf-8"))[0]
    main: Command = ()
    for line in re.sub(r"\\\n#\s*", "", head).splitlines():
        text = line.removeprefix("#").strip()
        if match := _COMMAND.fullmatch(text):
            words = tuple(shlex.split(match[1], comments=True))
            yield words
            main = words if not main and str(config.relative_to(ROOT)) in words else main
        elif match := _OPTIONS.fullmatch(text):
            yield (*main, *shlex.split(match[1], comments=True))


@cache
def parser_for(program: str, name: str, topic: str | None) -> ArgumentParser:
    if program == "data_builders":
        return import_module("data_builders.__main__").parser_of(name)
    if program == "train" and name in {"fit", "rl"}:
        return fit_parser() if name == "fit" else rl_parser()
    if program == "train":
        return import_module("train.__main__").parser_of(name)
    command = import_module(f"eval.commands.{name}")
    if name == "component":
        return function_parser("component", command.judge)
    return command.build_parser(*[topic] if topic else [])


def rl_parser() -> ArgumentParser:
    parser = command_parser("rl")
    parser.add_class_arguments(import_module("train.rl").RlOptions, as_group=False)
    return parser


def fit_parser() -> ArgumentParser:
    train_cli = import_module("train.cli")

    class OnlyParser(train_cli.TrainCLI):
        def parse_arguments(self, parser, args):
            raise InterruptedError(parser)

    with pytest.raises(InterruptedError) as built, ExitStack() as locks:
        OnlyParser(
            [], locks, subclass_mode_model=True, subclass_mode_data=True,
            trainer_defaults=train_cli.TRAINER_DEFAULTS,
            parser_kwargs={"exit_on_error": False, "fit": {"exit_on_error": False}},
        )  # fmt: skip
    return built.value.args[0]


def problem_of(command: Command) -> str | None:
    """The error of a command that does not parse."""
    program, name, *rest = command
    topic = rest.pop(0) if name == "experiment" else None
    try:
        parse(parser_for(program, name, topic), [name, *rest] if name == "fit" else rest)
    except (CommandError, SystemExit) as error:
        return f"{shlex.join(command)}: {error}"
    return None


def problems_of(commands: list[Command]) -> list[str]:
    """The errors of commands that begin alike.

    All options are parsed in one command, which is fast, and apart if they exclude each other.
    """
    first, *following = commands
    joined = first + tuple(word for command in following for word in without_config(command))
    if problem_of(joined) is None:
        return []
    return [problem for problem in map(problem_of, commands) if problem]


def without_config(command: Command) -> Command:
    return command[command.index("--config") + 2 :]


def groups_of(configs: list[Path]) -> list[list[Command]]:
    groups: dict[Command, list[Command]] = {}
    for command in dict.fromkeys(c for config in configs for c in commands_of(config)):
        if not reason_to_skip(command):
            start = command[: command.index("--config") + 2]
            groups.setdefault(start, []).append(command)
    return list(groups.values())


def reason_to_skip(command: Command) -> str | None:
    if "--config" not in command[:4]:
        return "no config: `report`, `fetch` and `convert`, which other tests run"
    if command[command.index("--config") + 1] == "tuning.yaml":
        return "written by the command above it"
    return None


@pytest.mark.parametrize("folder", ["data", "eval", "experiments", "train"])
def test_commands_in_heads_parse(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    (tmp_path / "my_metric.py").write_text(
        "from eval.metrics.text_metric import TextMetric\nclass Mine(TextMetric): ...\n"
    )
    (tmp_path / "my_attacks.py").write_text(
        "from data_builders.written.attacks.attack import Attack\n"
        "class Mine(Attack):\n    def attack(self, source, world, rng): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("my_attacks", "my_metric"):  # of another test
        monkeypatch.delitem(sys.modules, module, raising=False)
    groups = groups_of(sorted((ROOT / "configs" / folder).rglob("*.yaml")))
    assert len(groups) > 20
    assert [problem for group in groups for problem in problems_of(group)] == []
