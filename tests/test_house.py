"""The house keeps its own word: README, configs, pins, layout and who may import whom."""

import ast
import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from data_builders import __main__ as data_builders
from eval import __main__ as evaluation
from eval.commands import core, experiment, score
from train import __main__ as train
from train.sweep import read_sweep

ROOT = Path(__file__).parents[1]
PACKAGES = ("cli", "records", "clients", "components", "train", "data_builders", "eval")
ALLOWED = {
    "cli": set(),
    "records": set(),
    "components": {"cli", "records"},
    "train": {"cli", "components", "records"},
    "clients": {"records"},
    "eval": {"cli", "components", "clients", "records"},
    "data_builders": {"cli", "eval", "components", "clients", "records"},
}
STAGES = ("decompose", "revise", "select", "retrieve", "verify", "similarity")
# What the rooms of eval must not know.
KNOWS_NOT = {
    **{room: {*STAGES, "exports", "pipeline"} for room in ("models", "prompting", "run")},
    **{room: {"metrics", "exports", "pipeline", "run"} for room in STAGES},
    "report": {"experiments"},
}
MOST_ROOMS = 18
# Computed in one place, whoever needs it.
ONCE = {
    *("auroc", "balanced_accuracy", "bootstrap", "entails", "holm", "kappa", "paired_t", "pearson"),
    *("rand_indices", "ranks", "responds", "spearman", "split_sentences"),
}
# Pins and imports of another name.
IMPORTED_AS = {"pystemmer": "Stemmer", "pyyaml": "yaml", "sparqlwrapper": "SPARQLWrapper"}
# Pinned though no line of ours imports it ...
UNIMPORTED = {
    "docstring-parser": "jsonargparse shows docstrings in help with it",
    "gguf": "transformers reads GGUF files with it",
    "oxigraph": "a program that data_builders/kb/server.py starts",
    "pytest-xdist": "`make test`",
    "rich": "Lightning draws train's progress bar with it",
    "ruff": "`make lint`",
}
# ... and imported though not pinned.
UNPINNED = {
    "pydantic_core": "pydantic brings exactly the one it was made with",
    "spacy": "only a user's own config asks for it (requirements-spacy.txt)",
}
# Lines of Python. Raise a ceiling only together with lowering another one by as much.
CEILINGS = {
    "cli": 344,
    "records": 3_054,
    "clients": 1_619,
    "components": 3_103,
    "train": 4_918,
    "data_builders": 18_872,
    "eval": 31_022,
}
MOST_LINES = 60_000
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES_OF_THE_SMALLEST_EXPERIMENT = 300
# Names that do not state what they hold.
VAGUE = {
    *("own", "said", "told", "found", "given", "mine", "held", "asked", "wanted", "shown", "begun"),
    *("left_over", "much", "many", "every", "who", "what", "one", "ones", "others", "another"),
    *("here", "there", "once", "again", "anew", "known", "it", "they"),
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


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


MODULES = {module_of(path): path for path in SOURCES}


def imported(node):
    """Dotted names that a tree imports, wherever they stand, but for those of annotations."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute here"
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            yield whole if whole in MODULES else node.module
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


IMPORTS = {module: set(imported(tree_of(path))) for module, path in MODULES.items()}


def arrows_between(package):
    """Who imports whom, by the rooms of a package: its folders, and the files beside them."""
    arrows = {}
    for module, names in IMPORTS.items():
        here = module.split(".")
        if here[0] == package and len(here) > 1:
            found = arrows.setdefault(here[1], set())
            rooms = (name.split(".")[1] for name in names if name.startswith(f"{package}."))
            found |= {room for room in rooms if room != here[1]}
    return arrows


def circle_in(arrows):
    """What is left when all that imports nothing of the rest has gone: circles, and their users."""
    left = {place: set(others) for place, others in arrows.items()}
    while free := [place for place, others in left.items() if not others & set(left)]:
        for place in free:
            del left[place]
    return sorted(left)


def pins(file):
    """Names of the packages that a requirements file pins, without extras."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return {re.split(r"[=\[]", line)[0] for line in lines if line and not line.startswith("#")}


def third_party(folders):
    """Top names that the code in some folders imports and that are neither ours nor Python's."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    tops = {name.split(".")[0] for path in paths for name in imported(tree_of(path))}
    beside = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    return tops - {*PACKAGES, "tests", *beside, *sys.stdlib_module_names}


def bound_names(tree):
    """Parameters, variables, functions and classes of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_name_is_vague(path):
    assert not [f"{line}: {name}" for line, name in bound_names(tree_of(path)) if name in VAGUE]


def test_no_builder_imports_an_experiment():
    names = {(m, n) for m, own in IMPORTS.items() if m.startswith("data_builders") for n in own}
    assert not [pair for pair in sorted(names) if pair[1].startswith("eval.experiments")]


@pytest.mark.parametrize("module", MODULES)
def test_imports_follow_the_arrows(module):
    own = module.split(".")[0]
    tops = {name.split(".")[0] for name in IMPORTS[module]} & set(PACKAGES)
    assert tops <= {own} | ALLOWED[own]


def test_no_circle_of_imports():
    assert circle_in(IMPORTS) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_arrow_between_rooms_runs_back_up(package):
    assert circle_in(arrows_between(package)) == []


def test_the_rooms_of_eval_can_be_counted_on_the_fingers():
    rooms = {path.name for path in (ROOT / "eval").iterdir() if path.name != "__pycache__"}
    assert len(rooms - {"__init__.py", "__main__.py"}) <= MOST_ROOMS


@pytest.mark.parametrize("room", KNOWS_NOT)
def test_a_room_knows_nothing_above_it(room):
    assert arrows_between("eval")[room] & KNOWS_NOT[room] == set()


@pytest.mark.parametrize("name", [name_of(p) for p in SOURCES if p.name == "__init__.py"])
def test_an_init_only_hands_names_on(name):
    for node in tree_of(ROOT / name).body:
        said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        listed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        assert said or listed or isinstance(node, ast.ImportFrom), ast.unparse(node)


def experiment_of(path: Path) -> str:
    """The experiment that the configuration's first lines launch."""
    (name,) = set(re.findall(r"python -m eval experiment (\w+)", path.read_text(encoding="utf-8")))
    return name


def test_a_file_is_named_as_its_command():
    for name, place in data_builders.BUILDERS.items():
        assert place.split(":")[0].split(".")[-1] == name
    for name in evaluation.COMMANDS:
        assert f"eval.commands.{name}" in MODULES
    for path in (ROOT / "configs/experiments").rglob("*.yaml"):
        found = list((ROOT / "eval/experiments").rglob(f"{experiment_of(path)}.py"))
        assert len(found) == 1, path


@pytest.mark.parametrize("name", sorted(ONCE))
def test_what_is_computed_is_defined_once(name):
    functions = (
        f"{module}.{node.name}"
        for module, path in MODULES.items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef) and node.name.strip("_") == name
    )
    assert len(list(functions)) <= 1


def test_no_function_stands_twice():
    places = {}
    for module, path in MODULES.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                text = "\n".join([ast.unparse(node.args), *map(ast.unparse, body)])
                places.setdefault(text, []).append(f"{module}.{node.name}")
    twice = [found for text, found in places.items() if len(found) > 1 and len(text) > 120]
    assert twice == []


def lines_of(paths):
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


@pytest.mark.parametrize("package", CEILINGS)
def test_a_package_stays_under_its_ceiling(package):
    assert lines_of((ROOT / package).rglob("*.py")) <= CEILINGS[package]


def test_all_packages_stay_under_the_ceiling():
    assert lines_of(SOURCES) <= MOST_LINES


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_are_short(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.lineno + 1
            assert length <= MOST_LINES_OF_A_FUNCTION, f"{name_of(path)}:{node.lineno} {node.name}"


def test_an_experiment_can_be_small():
    sizes = {
        name: lines_of((ROOT / "eval/experiments").rglob(f"{name}*.py"))
        for name in experiment.EXPERIMENTS
    }
    assert min(sizes.values()) <= MOST_LINES_OF_THE_SMALLEST_EXPERIMENT


def test_what_is_pinned_is_imported_and_what_is_imported_is_pinned():
    def names(file):
        return {
            IMPORTED_AS.get(name, name.replace("-", "_")) for name in pins(file) - set(UNIMPORTED)
        }

    running, testing = names("requirements.txt"), names("requirements-dev.txt")
    assert third_party(PACKAGES) - set(UNPINNED) == running
    assert third_party(("tests", "benchmarks")) - running == testing
    assert pins("requirements.txt") & pins("requirements-dev.txt") == set()


def test_the_lock_file_has_the_versions_that_are_pinned():
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for file in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
            name, _, version = re.sub(r"\[.*?\]", "", line).partition("==")
            if version and not name.startswith("#") and name != "torch":
                assert f"\n{name}=={version} " in locked, f"{file}: {line}; see CONTRIBUTING.md"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_module_imports(path):
    module = importlib.import_module(module_of(path))
    assert module.__doc__, "a module says what it is for"


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=name_of)
def test_every_benchmark_finds_what_it_imports_and_is_listed(path):
    spec = importlib.util.spec_from_file_location(f"benchmarks.{path.stem}", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert f"`{path.name}`" in (path.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_every_config_parses_against_its_real_signature(path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    room = path.relative_to(ROOT / "configs").parts[0]
    if path.stem.startswith("sweep_"):
        sweep = read_sweep(path)
        (config,) = [part for part in sweep.command if part.endswith(".yaml")]
        assert (ROOT / config).is_file()
    elif room == "train":
        command = "rl" if path.stem == "rl" else "fit"
        with pytest.raises(SystemExit) as left:
            train.main([command, "--config", str(path), "--print_config"])
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
        assert experiment.build_parser(experiment_of(path)).parse_args(arguments)
    else:
        pytest.fail(f"configs/{room}: no door reads it")


def test_configs_stand_in_three_rooms():
    places = [path.relative_to(ROOT / "configs").parts for path in CONFIGS]
    assert {place[1] for place in places} == {"small", "laptop", "paper"}
    assert all(len(place) == 3 for place in places)


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
        "train": {"fit", "rl", "validate", "test", "predict", "sweep", "push", "convert"},
        "data_builders": set(data_builders.BUILDERS),
        "eval": set(evaluation.COMMANDS),
    }
    assert name in known[door]
    for config in re.findall(r"--config (configs/\S+)", command):
        assert (ROOT / config).is_file()


@pytest.mark.parametrize("page", ["README.md", "docs/scoring.md", "CONTRIBUTING.md"])
def test_every_path_of_the_docs_exists(page):
    made = (
        "runs/",
        "data/",
        "checkpoints/small",
        "checkpoints/laptop",
        "checkpoints/mine",
    )  # what the commands make
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
    assert len(imports) >= 2
    assert all(imports)
    lines = "\n".join(line for own in imports for line in own)
    code = f"import sys; sys.path.remove('') if '' in sys.path else None\n{lines}\n"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


@pytest.mark.parametrize("door", ["train", "data_builders", "eval"])
def test_a_door_shows_its_commands_without_loading_what_they_need(door):
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['{door}', '--help']\n"
        "try:\n"
        f"    runpy.run_module('{door}', run_name='__main__')\n"
        "except SystemExit as left:\n"
        "    assert not left.code\n"
        "loaded = {'torch', 'transformers', 'lightning', 'datasets', 'scipy'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


@pytest.mark.parametrize("folder", [*PACKAGES, "tests", "benchmarks"])
def test_servers_listen_on_loopback_only(folder):
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant):
                assert node.value != "0.0" + ".0.0", f"{name_of(path)}:{node.lineno}"
            if isinstance(node, ast.Call) and re.search(
                r"(Server|\.bind|_server)$", ast.unparse(node.func)
            ):
                addresses = [part for part in node.args if isinstance(part, ast.Tuple)]
                hosts = {ast.unparse(address.elts[0]) for address in addresses}
                assert hosts <= {"'127.0.0.1'"}, f"{name_of(path)}:{node.lineno}"
