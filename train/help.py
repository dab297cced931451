"""The help of ``fit``, ``validate``, ``test`` and ``predict``, read from the sources.

A parser of all options must import Lightning, torch and transformers, which takes seconds; names,
types, defaults and docstrings stand in the files.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from docstring_parser import parse

COMMANDS = ("fit", "validate", "test", "predict")
MODULES = [
    "train.unli.Unli",
    "train.relation.Relation",
    "train.lss_tagger.LssTagger",
    "train.lss_seq2seq.LssSeq2Seq",
    "train.adversary.Adversary",
    "train.preference.Preference",
]
DATA = "train.data.RecordData"
_COMMON = """\
  -c, --config FILE       YAML of any of these options; may be given several times
  --seed_everything SEED  of weights, order and dropout (default: 1)
  --ckpt_path PATH        fit: go on with a .ckpt file or `last`; else the folder, `best`, `last` or
                          .ckpt file to judge
  --print_config          print the whole configuration and stop"""
TRAINER_DEFAULTS = {
    "num_sanity_val_steps": 0,
    "gradient_clip_val": 1.0,
    "log_every_n_steps": 10,
    # All batches know their process already (train/data.py).
    "use_distributed_sampler": False,
}


@dataclass(frozen=True)
class Option:
    """An argument of a constructor."""

    name: str
    type: str
    default: str | None
    text: str


def help_of(command: str, rest: Sequence[str]) -> str | None:
    """The help that is asked for, or ``None`` where none is.

    A class that no source file here declares is left to the parser, too.
    """
    asked = [word for word in rest if word in ("-h", "--help") or word.startswith(_CLASS_HELP)]
    if command not in COMMANDS or not asked:
        return None
    for room in ("model", "data"):
        given = _value(rest, f"--{room}.help") or _value(rest, f"--{room}")
        if given:
            (path,) = [m for m in (*MODULES, DATA) if given == m.rpartition(".")[2]] or [given]
            found = declared(path)
            return found and f"{path}: {found[0]}\n\n{shown(found[1], f'--{room}.')}"
    return _command_help(command)


_CLASS_HELP = ("--model.help", "--data.help")


def _value(arguments: Sequence[str], name: str) -> str | None:
    for place, word in enumerate(arguments):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and place + 1 < len(arguments) and arguments[place + 1][:1] != "-":
            return arguments[place + 1]
    return None


def _command_help(command: str) -> str:
    modules = "\n".join(f"  {path:<30}{declared(path)[0]}" for path in MODULES)
    parts = [
        f"usage: python -m train {command} [--config FILE] [--OPTION VALUE …]",
        f"options:\n{_COMMON}\n{shown(declared('train.cli.RunOptions')[1], '--')}",
        f"modules (--model CLASS, --model.OPTION; --model CLASS --help shows them):\n{modules}",
        f"data (--data {DATA}):\n{shown(declared(DATA)[1], '--data.')}",
    ]
    trainer = declared("lightning.pytorch.trainer.trainer.Trainer")[1]
    own = {name: repr(value) for name, value in TRAINER_DEFAULTS.items()}
    trainer = [Option(o.name, o.type, own.get(o.name, o.default), o.text) for o in trainer]
    parts.append(f"Lightning's Trainer:\n{shown(trainer, '--trainer.')}")
    return "\n\n".join(parts)


def shown(options: Sequence[Option], prefix: str) -> str:
    """Options with their texts, one below the other."""
    lines = []
    for option in options:
        default = "required" if option.default is None else f"default: {option.default}"
        text = " ".join(f"{option.text} ({option.type}, {default})".split())
        lines.append(
            f"  {prefix}{option.name}\n{textwrap.indent(textwrap.fill(text, 92), ' ' * 6)}"
        )
    return "\n".join(lines).replace("None", "null")


def declared(path: str) -> tuple[str, list[Option]] | None:
    """The first sentence of a class's docstring and its arguments, its bases' included.

    Args:
        path: its class path; the module is found but not imported.

    Returns:
        ``None`` where no source file declares it.
    """
    module, _, name = path.rpartition(".")
    top, *inner = module.split(".") or [""]
    spec = find_spec(top) if top else None
    if spec is None or not spec.origin:
        return None
    file = Path(spec.origin).parent.joinpath(*inner).with_suffix(".py") if inner else spec.origin
    if not Path(file).is_file():
        return None
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    if not classes:
        return None
    (node,) = classes
    inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    doc = ast.get_docstring(node) or ""
    parsed = [*parse(doc).params, *(parse(ast.get_docstring(i) or "") for i in inits)]
    texts = {
        p.arg_name: p.description or "" for part in parsed for p in getattr(part, "params", [part])
    }
    own = [Option(*found, texts.get(found[0], "")) for found in _arguments(node, inits)]
    summary = " ".join(doc.partition("\n\n")[0].split())
    if inits and not inits[0].args.kwarg:
        return summary, own
    seen = {option.name for option in own}
    for base in node.bases:
        above = (declared(_origin(tree, module, ast.unparse(base))) or ("", []))[1]
        known = {option.name: option.text for option in above}
        own = [replace(option, text=option.text or known.get(option.name, "")) for option in own]
        own += [option for option in above if option.name not in seen]
    return summary, own


def _origin(tree: ast.Module, module: str, name: str) -> str:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(a.name == name for a in node.names):
            return f"{node.module}.{name}"
    return f"{module}.{name}"


def _arguments(node: ast.ClassDef, inits: Sequence[ast.FunctionDef]) -> Iterator[tuple]:
    if not inits:
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and field.value is not None:
                default = ast.unparse(field.value).replace("field(default_factory=list)", "[]")
                yield field.target.id, ast.unparse(field.annotation), default
        return
    spec = inits[0].args
    places = [*spec.posonlyargs, *spec.args][1:]
    defaults = [None] * (len(places) - len(spec.defaults)) + spec.defaults
    for arg, default in [
        *zip(places, defaults, strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]:
        kind = ast.unparse(arg.annotation) if arg.annotation else "any"
        yield arg.arg, kind, default and ast.unparse(default)
