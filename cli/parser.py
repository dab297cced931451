"""The argument parser of all commands; errors name the line of the configuration file."""

import inspect
import json
import pkgutil
import re
import sys
from argparse import ArgumentError
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from pydoc import locate
from typing import Any

import yaml
from jsonargparse import ArgumentParser, Namespace, get_loader
from yaml.representer import SafeRepresenter

from cli.command import CommandError
from cli.shipped import find_shipped, with_shipped

_KEY = re.compile(r'Parser key "(?:[^"]*\.)?([^".]+)": ')
_OPTION = re.compile(r"[Oo]ption '(?:[\w.]*\.)?(\w+)'|unrecognized arguments: --(?:[\w.]*\.)?(\w+)")
_IMPORT = re.compile(r"(?:module '([\w.]+)' has no attribute '|No module named '([\w.]+)\.)(\w+)'")
_OF_UNION = "Does not validate against any of the Union .*? Errors: - "
# "records.types." in an annotation
_MODULE = re.compile(r"(?:[a-z_]+\.)+(?=[A-Z])")

# A class that replaces another keeps their common options, whose numbers have jsonargparse's types.
yaml.SafeDumper.add_multi_representer(float, SafeRepresenter.represent_float)
yaml.SafeDumper.add_multi_representer(int, SafeRepresenter.represent_int)


def command_parser(
    prog: str, description: str | None = None, config: bool = True
) -> ArgumentParser:
    """Create the parser of a command, with ``--config`` for YAML files if ``config``."""
    parser = ArgumentParser(prog=prog, description=description, exit_on_error=False)
    if config:
        parser.add_argument("--config", action="config", help="YAML with any of the options below")
    return parser


def parse(
    parser: ArgumentParser, argv: Sequence[str], subparser: ArgumentParser | None = None
) -> Namespace:
    """Parse a command line; errors are one line with ``FILE:LINE:`` and a suggestion, if known.

    ``subparser`` has the suggested options if ``parser`` has subcommands. ``--overwrite`` needs no
    value.
    """
    try:
        words = [re.sub("^--overwrite$", r"\g<0>=true", word) for word in argv]
        return with_shipped(parser.parse_args(_without_replaced_parts(words)))
    except ArgumentError as error:
        raise CommandError(error_line(error, subparser or parser, argv)) from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{', '.join(map(str, _configs(argv)))}: not UTF-8: {error}") from None


def function_parser(prog: str, function: Callable, positional: bool = False) -> ArgumentParser:
    """Create a parser from a function's typed parameters and docstring.

    ``positional``: required parameters have no option name.
    """
    parser = command_parser(prog, inspect.getdoc(function).split("\n\nArgs:")[0], config=False)
    parser.add_function_arguments(function, as_group=False, as_positional=positional)
    return parser


def error_line(error: ArgumentError, parser: ArgumentParser, argv: Sequence[str]) -> str:
    text = " ".join(str(error).split())
    text, _, value = text.partition(" Given value type: ")
    text = re.sub(f"{_OF_UNION}| - Expected a <class 'NoneType'>", "", text)
    text = re.sub(
        r"(?:implement protocol|correspond to a subclass of) (\w+)",
        lambda match: match[0] + _expected_methods(match[1]),
        text,
    )
    if scalar := re.search(r"Given value: ([^\s{\[]+)$", value):
        text += f". Got value: {scalar[1]}"
    classes = re.findall(r"class_path[ =]'([^']+)'", text + value)
    word, names = "", []
    if match := _IMPORT.search(text):
        word, names = match[3], _names_in(match[1] or match[2])
    elif match := _OPTION.search(text):
        word = match[1] or match[2]
        names = _parameters(classes[-1]) if classes else parser._option_string_actions
        if match[1]:
            names = [name.removeprefix("--").rpartition(".")[2] for name in names]
    elif keys := _KEY.findall(text):
        word = keys[-1]
    quoted = re.search(r"Got value: (\S+)$", text)
    if text.startswith("Spaces not allowed") and _configs(argv):
        text = f"expected the options of `{parser.prog}` (see its --help); {text}"
    if re.match("Problems parsing|Unexpected config|expected the options", text):
        lines = [f":{number}" for number in re.findall(r" line (\d+),", text)] or [""]
        location = "".join(f"{config}{lines[-1]}: " for config in _configs(argv)[:1])
    else:
        location = _config_location(
            _configs(argv), word, classes[-1] if classes else "", quoted[1] if quoted else ""
        )
    full_names = {name.removeprefix("--").rpartition(".")[2]: name for name in sorted(names)}
    suggestions = get_close_matches(word, full_names, n=1)
    return f"{location}{text}" + "".join(f"; did you mean {full_names[s]}?" for s in suggestions)


def _expected_methods(name: str) -> str:
    """The methods of a stage's protocol or base class that is imported, as text."""
    kinds = (vars(module).get(name) for module in list(sys.modules.values()))
    kind = next((kind for kind in kinds if inspect.isclass(kind) and kind.__name__ == name), None)
    methods = inspect.getmembers(kind, inspect.isfunction) if kind else []
    texts = [
        f"`def {method}{_MODULE.sub('', str(inspect.signature(function)))}`"
        for method, function in methods
        if not method.startswith("_") or method == "__call__"
    ]
    return f": expected {kind.__module__}.{name} with {', '.join(texts)}" if texts else ""


def _configs(argv: Sequence[str]) -> list[Path]:
    words = [part for word in argv for part in (word.split("=", 1) if word[:2] == "--" else [word])]
    paths = [
        Path(find_shipped(path)) for option, path in pairwise(words) if option in {"--config", "-c"}
    ]
    return [path for path in paths if path.is_file()]


def _config_location(configs: Iterable[Path], word: str, class_path: str, value: str) -> str:
    """Return ``FILE:LINE: `` of ``word`` after ``class_path``, preferably with ``value``."""
    for path in configs if word else ():
        reached, matches = False, []
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            code = re.split(r"(?:^|\s)#", line)[0]
            reached = reached or class_path not in text or class_path in code
            if reached and re.search(rf"\b{re.escape(word)}\b", code):
                matches.append((value not in code, number))
        if matches:
            return f"{path}:{min(matches)[1]}: "
    return ""


def _without_replaced_parts(argv: Sequence[str]) -> list[str]:
    """Drop from each config the parts that a later option replaces.

    An option replaces a part by ``{class_path: …}`` or by a list of these. jsonargparse alone would
    keep options of the former part.
    """
    parts = chain(*(w.split("=", 1) if w.startswith("--config=") else [w] for w in argv))
    words = list(map(find_shipped, parts))
    replaced = []
    for number, word in enumerate(words):
        option, _, value = word.partition("=")
        value = value or "".join(words[number + 1 : number + 2])
        if option[:2] == "--" and "class_path" in value:
            with suppress(yaml.YAMLError):
                parts = yaml.safe_load(value)
                parts = parts if isinstance(parts, list) else [parts]
                if all(isinstance(part, dict) and "class_path" in part for part in parts):
                    replaced.append((number, option[2:].replace(".init_args", "").split(".")))
    for number, word in enumerate(words[:-1], 1):
        if word in {"--config", "-c"} and Path(words[number]).is_file():
            keys = [names for later, names in replaced if later > number]
            with suppress(yaml.YAMLError, UnicodeDecodeError):
                words[number] = _drop(Path(words[number]), keys)
    return words


def _drop(config: Path, keys: Iterable[Sequence[str]]) -> str:
    """Return a config without ``keys`` as JSON, or its path if it has none of them."""
    options, result = get_loader("yaml")(config.read_text(encoding="utf-8")), str(config)
    for names in keys:
        part = options
        for name in names[:-1]:
            part = _options(part).get(name)
        if _options(part).pop(names[-1], None) is not None:
            result = json.dumps(options, ensure_ascii=False, default=str)
    return result


def _options(part: object) -> dict[str, Any]:
    part = part[-1] if isinstance(part, list) and part else part
    if not isinstance(part, dict):
        return {}
    return (part.get("init_args") or {}) if "class_path" in part else part


def _names_in(module: str) -> Iterator[str]:
    package = import_module(module)
    yield from (name for name, _ in inspect.getmembers(package, inspect.isclass))
    yield from (info.name for info in pkgutil.iter_modules(getattr(package, "__path__", ())))


def _parameters(class_path: str) -> list[str]:
    kind = locate(class_path)
    if not inspect.isclass(kind):
        return []
    return ArgumentParser().add_class_arguments(kind, fail_untyped=False)
