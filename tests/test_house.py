"""The house keeps its own word: README, configs, imports and who may import whom."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from data_builders import __main__ as data_builders
from eval import __main__ as evaluation
from eval.commands import core, experiment, score
from train import __main__ as train
from train import sweep_file

ROOT = Path(__file__).parents[1]
PACKAGES = ("records", "clients", "components", "train", "data_builders", "eval")
ALLOWED = {
    "records": set(),
    "components": {"records"},
    "train": {"components", "records"},
    "clients": {"records"},
    "eval": {"components", "clients", "records"},
    "data_builders": {"eval", "components", "clients", "records"},
}
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
COMMANDS = [
    line.strip()
    for language, block in BLOCKS
    for line in block.splitlines()
    if not language and re.match(r"\s*(make|python -m) ", line)
]
EXAMPLES = [block for language, block in BLOCKS if language == "python"]


def name_of(path):
    return str(path.relative_to(ROOT))


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_follow_the_arrows(path):
    own = path.relative_to(ROOT).parts[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            names = [node.module]
        for name in names:
            top = name.split(".")[0]
            assert top not in PACKAGES or top == own or top in ALLOWED[own], f"{path}: {name}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_module_imports(path):
    module = importlib.import_module(module_of(path))
    assert module.__doc__, "a module says what it is for"


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_every_config_parses_against_its_real_signature(path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    room = path.relative_to(ROOT / "configs").parts[0]
    if path.parent.name == "sweeps":
        sweep = sweep_file.read_sweep(path)
        (config,) = [part for part in sweep.command if part.endswith(".yaml")]
        assert (ROOT / config).is_file()
    elif room == "train":
        with pytest.raises(SystemExit) as left:
            train.main(["fit", "--config", str(path), "--print_config"])
        assert left.value.code == 0
        assert "class_path: train." in capsys.readouterr().out
    elif room == "data":
        (name,) = re.findall(r"Launch: +python -m data_builders (\w+) ", path.read_text("utf-8"))
        assert data_builders.parser_of(name).parse_args(["--config", str(path)])
    elif room == "eval" and path.stem == "core":
        arguments = ["--config", str(path), "--claims", "x", "--output", "y"]
        assert core.build_parser().parse_args(arguments)
    elif room == "eval":
        arguments = ["--config", str(path), "--documents", "x", "--output", "y"]
        assert score.build_parser().parse_args(arguments)
    elif room == "experiments":
        arguments = ["--config", str(path), "--output", "x"]
        assert experiment.build_parser(path.stem).parse_args(arguments)
    else:
        pytest.fail(f"configs/{room}: no door reads it")


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_every_config_says_how_to_launch_it(path):
    header = "\n".join(
        line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")
    )
    assert name_of(path) in header


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_exists(command):
    words = command.split()
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE)
        return
    door, name = words[2], words[3]
    known = {
        "train": {"fit", "validate", "test", "predict", "sweep", "push"},
        "data_builders": set(data_builders.BUILDERS),
        "eval": set(evaluation.COMMANDS),
    }
    assert name in known[door]
    for config in re.findall(r"--config (\S+)", command):
        assert (ROOT / config).is_file()


@pytest.mark.parametrize("page", ["README.md", "docs/scoring.md"])
def test_every_path_of_the_docs_exists(page):
    made = ("runs/", "data/", "checkpoints/small", "checkpoints/laptop")  # what the commands make
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`?((?:[\w.-]+/)+[\w.-]*)", text))
    for path in named:
        top = path.split("/")[0]
        if (ROOT / top).exists() and not path.startswith(made) and not path.startswith("http"):
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("path", ["README.md", "docs/scoring.md"])
def test_every_class_of_the_docs_exists(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    named = sorted(set(re.findall(r"\b(eval(?:\.[a-z_]+)+)\.([A-Z]\w+)", text)))
    assert named
    for module, name in named:
        assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


def test_the_python_examples_of_the_readme_import_from_another_directory(tmp_path):
    imports = [
        [line for line in example.splitlines() if line.startswith("from ")] for example in EXAMPLES
    ]
    assert len(imports) >= 3
    assert all(imports)
    lines = "\n".join(line for own in imports for line in own)
    code = f"import sys; sys.path.remove('') if '' in sys.path else None\n{lines}\n"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_the_doors_show_their_help():
    for door in ("train", "data_builders", "eval"):
        done = subprocess.run(
            [sys.executable, "-m", door, "--help"], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0
        assert "usage" in done.stdout.lower()
