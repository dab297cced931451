"""What the parser complains of, in one line.

It is told with the file and the line of the configuration that it is about, and with what was
probably meant.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
from argparse import ArgumentError, ArgumentParser
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from traceback import walk_tb

# What jsonargparse says of a class or of one of its options, in whatever else it says around it.
_OF_CLASS = re.compile(
    r"given class_path '(?P<path>[^']+)': (?:Option '(?P<option>[^']+)' is not accepted|"
    r"(?P<absent>module '[^']*' has no attribute '\w+'|No module named '[^']*'))"
)
# The same of a class that is called with more than its options: an optimizer.
_OF_CALLABLE = re.compile(
    r"expects a function or a callable class: (?:Option '(?P<option>[^']+)' is not accepted|"
    r"(?P<absent>module '[^']*' has no attribute '\w+'|No module named '[^']*'))"
    r"(?:\. Got value: Namespace\(class_path='| .*? Given value: )(?P<path>[^\s']+)"
)
_GIVEN = re.compile(r"(?:Given|Got) value: ([^\s{\[]+)")
_NO_PATH = re.compile(r"Expected a dot import path string: (\S+)")
_INSIDE = re.compile(r"given class_path '([^']+)': (?!.*given class_path)(.*)")
_KEY = re.compile(r'Parser key "(?:[^"]*\.)?([^".]+)": ')
_OF_OPTION = re.compile(
    r"(?:Group '([^']+)'|Subcommand '\w+') does not accept option '([^']+)'|Option '([^']+)' is not"
)
_PROTOCOL = re.compile(r"(Import path \S+ does not implement protocol (\w+)).*")
# What the parser calls the types of values, and what they are to a user.
_TYPES = {
    "<class 'int'>": "whole number",
    "<class 'float'>": "number",
    "<class 'str'>": "text",
    "<class 'bool'>": "switch (true or false)",
    "<class 'list'>": "list, such as '[a, b]'",
    "<class 'dict'>": "mapping, such as '{a: b}'",
}
_CHOICE = re.compile(r"Expected a typing\.Literal\[([^\]]*)\]")
_UNION = re.compile(r"Does not validate against any of the Union subtypes .*? Errors: - ")


def of_parser(error: ArgumentError) -> str:
    """A parser's complaint in one line: where, what, and what was probably meant."""
    said = re.sub(r'Parser key "([^"]*)": ', r"\1: ", _in_one_line(error))
    for name, plain in _TYPES.items():
        said = said.replace(name, plain)
    said = _CHOICE.sub(r"Expected one of \1", said)
    return _PROTOCOL.sub(lambda found: f"{found[1]}{_contract(found[2])}", said)


def _contract(protocol: str) -> str:
    homes = [
        name
        for name, module in list(sys.modules.items())
        if getattr(vars(module).get(protocol), "__module__", None) == name
    ]
    where = f"{homes[0]}.{protocol}" if homes else protocol
    return f"; give its methods the names of parameters and all types that {where} has"


def _in_one_line(error: ArgumentError) -> str:
    said = " ".join(str(error).split())
    if said.startswith('Parser key "config": File does not exist: '):
        return f"{said.split(chr(39))[1]}: no such file; give the path of a YAML configuration"
    if said.startswith(("Problems parsing config", "Unexpected config")):
        return _of_yaml() or said
    if found := _OF_CLASS.search(said) or _OF_CALLABLE.search(said):
        path, option = found["path"], found["option"]
        if option:
            meant = _meant(option, _parameters(path))
            return f"{_place(option, path)}{path} has no option {option!r}{meant}"
        return f"{_place(path)}{path}: {found['absent']}{_meant(path, _classes_near(path))}"
    if unknown := _OF_OPTION.match(said):
        return _of_option(".".join(filter(None, unknown.groups())), _options(error))
    if said.startswith("the following arguments are required: "):
        # Of a door with commands they have the command in front.
        named = said.partition(": ")[2]
        names = re.sub(r"\b(?:fit|validate|test|predict)\.", "", named).split(", ")
        it = "them" if len(names) > 1 else "it"
        there = ", here or in a YAML given by --config" if "config" in _options(error) else ""
        return f"missing: {', '.join(f'--{name}' for name in names)}; give {it}{there}"
    if said.startswith("unrecognized arguments: "):
        given = said.split()[2].split("=")[0]
        return f"{said}{_meant(given, [f'--{name}' for name in _options(error)])}"
    if name := _NO_PATH.search(said):
        return f"{_place(name[1])}{name[1]}: no class; give its path, such as package.module.Class"
    if inside := _INSIDE.search(said):
        path, said = inside.groups()
        key, short = _KEY.match(said), _short(said)
        return f"{_place(key[1] if key else path, path, short)}{path}: {short}"
    key, short = _KEY.match(said), _short(said)
    return f"{_place(key[1], value=short)}{short}" if key else short


def _short(said: str) -> str:
    said, _, given = _UNION.sub("", said).partition(" Given value type: ")
    first, *others = re.split(r" - (?=Expected a )", said)
    if "Expected a " not in first:
        return first
    others = [o.removeprefix("Expected a ") for o in others if "NoneType" not in o]
    value = _GIVEN.search(given)
    got = f". {value[0]}" if value and "Got value" not in first else ""
    return f"{' or '.join([first, *others])}{got}".replace("Given value", "Got value")


def _of_option(unknown: str, options: list[str]) -> str:
    parts = unknown.split(".")
    known = 0
    while any(f"{name}.".startswith(".".join(parts[: known + 1]) + ".") for name in options):
        known += 1
    wrong = ".".join(parts[: known + 1])
    above = {".".join(name.split(".")[: known + 1]) for name in options}
    return f"{_place(parts[known])}no option {wrong!r}{_meant(wrong, above)}"


def configs() -> list[Path]:
    """The configurations that the command line names."""
    given = []
    for word, behind in pairwise([*sys.argv[1:], ""]):
        name, is_whole, value = word.partition("=")
        if name in {"--config", "-c"}:
            given.append(value if is_whole else behind)
    return [Path(one) for one in given if Path(one).is_file()]


def of_encoding() -> str | None:
    """The first of the configurations that is not UTF-8; ``None`` where all are."""
    for path in configs():
        raw = path.read_bytes()
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            byte = f"0x{raw[error.start]:02x}"
            return f"{path}:{line}: not UTF-8 (there is a byte {byte}); save the file as UTF-8"
    return None


def _of_yaml() -> str | None:
    """The first of the configurations that is no YAML, with the line and what is wrong there.

    So is one without a single option: an empty file, bare text or a list.
    """
    import yaml  # only a mistake needs it

    for path in configs():
        try:
            given = yaml.safe_load(path.read_text(encoding="utf-8", errors="replace"))
        except yaml.MarkedYAMLError as error:
            begun = error.context_mark and f" {error.context} of line {error.context_mark.line + 1}"
            line = error.problem_mark.line + 1
            return f"{path}:{line}: no YAML: {error.problem}{begun or ''}; mend the line"
        except yaml.YAMLError as error:  # a sign that YAML does not know
            return f"{path}: no YAML: {' '.join(str(error).split())}"
        if not isinstance(given, dict):
            return f"{path}: no option in it; write `option: value`, one a line"
    return None


def _place(word: str, behind: str = "", value: str = "") -> str:
    """``file:line: `` of a key or a class path in the configurations; empty where it is in none.

    Args:
        word: the key or class path.
        behind: a class path; the first ``word`` from its line on is meant, if it has one.
        value: a complaint that ends in the key's value: a line with both is meant, if there is one.
    """
    given = _GIVEN.search(value)
    for path in configs():
        text = path.read_text(encoding="utf-8", errors="replace")
        begun, found = behind not in text, []
        for number, line in enumerate(text.splitlines(), 1):
            begun, told = begun or behind in line, re.split(r"(?:^|\s)#", line)[0]
            if begun and re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", told):
                found.append((given is None or given[1] not in told, number))
        if found:
            return f"{path}:{min(found)[1]}: "
    return ""


def _meant(word: str, known: Iterable[str]) -> str:
    """What was probably meant, or what is there, where that is not much."""
    known = sorted(set(known))
    close = get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known are {', '.join(known)}" if 0 < len(known) <= 12 else ""


def _options(error: ArgumentError) -> list[str]:
    """The options of the parser that complained; the error itself does not know it.

    Of a door with commands they are those of the command.
    """
    named = [*re.findall(r"Subcommand '(\w+)'", str(error)), *sys.argv[1:]]
    for frame, _ in walk_tb(error.__traceback__):
        parser = frame.f_locals.get("self")
        if isinstance(parser, ArgumentParser):
            commands = getattr(parser, "_subcommands_action", None)
            known = {} if commands is None else commands._name_parser_map
            parser = next((known[word] for word in named if word in known), parser)
            return [s.removeprefix("--") for s in parser._option_string_actions if s[:2] == "--"]
    return []


def _parameters(path: str) -> list[str]:
    from jsonargparse import ArgumentParser as Parser  # whatever complained has it

    module, _, name = path.rpartition(".")
    parser = Parser(exit_on_error=False)
    try:
        kind = getattr(import_module(module), name)
        of_class = inspect.isclass(kind)
        add = parser.add_class_arguments if of_class else parser.add_function_arguments
        return add(kind, fail_untyped=False)
    except (ImportError, AttributeError, TypeError, ValueError):  # a path through a class
        return []


def _classes_near(path: str) -> list[str]:
    """The classes of the module that a class path names, or probably meant."""
    module, _, _ = path.rpartition(".")
    try:
        there = import_module(module)
    except ImportError:
        package, _, name = module.rpartition(".")
        try:
            beside = import_module(package).__path__
        except (ImportError, AttributeError, ValueError):
            return []
        names = [one.name for one in pkgutil.iter_modules(beside)]
        # A module that is there and cannot be imported lacks something itself.
        close = [] if name in names else get_close_matches(name, names, n=1)
        return _classes_near(f"{package}.{close[0]}.") if close else []
    own = inspect.getmembers(there, inspect.isclass)
    inside = [name for name, one in own if f"{one.__module__}.".startswith(f"{module}.")]
    return [f"{module}.{name}" for name in inside if name[0] != "_"]
