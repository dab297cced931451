"""Rules of the code base: README, configs, pins, layout, sizes, names and imports."""

import ast
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest

from data_builders import __main__ as data_builders
from eval import __main__ as evaluation
from eval.commands import core, experiment, score
from train import __main__ as train

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
STAGES = ("decompose", "select", "retrieve", "verify", "similarity")
# What the rooms of eval must not know.
KNOWS_NOT = {
    **{room: {*STAGES, "report", "pipeline"} for room in ("models", "prompting", "run")},
    **{room: {"metrics", "report", "pipeline", "run"} for room in STAGES},
    "report": {"experiments"},
}
MOST_ROOMS = 16
MOST_ARROWS = 58
# Computed in one place, whoever needs it.
ONCE = [
    "auroc",
    "balanced_accuracy",
    "bootstrap",
    "entails",
    "holm",
    "kappa",
    "paired_t",
    "pearson",
    "rand_indices",
    "ranks",
    "responds",
    "spearman",
    "split_sentences",
]
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
# Names, operators, numbers and strings of all packages, without docstrings and comments.
MAX_CODE_TOKENS = 400_000
MAX_LINES_OF_A_FUNCTION = 60
MAX_README_BYTES = 10 * 1024
# Names that do not state what they hold.
VAGUE = {
    "again",
    "anew",
    "another",
    "asked",
    "begun",
    "every",
    "found",
    "given",
    "held",
    "here",
    "it",
    "known",
    "left_over",
    "many",
    "mine",
    "much",
    "once",
    "one",
    "ones",
    "others",
    "own",
    "said",
    "shown",
    "there",
    "they",
    "told",
    "wanted",
    "what",
    "who",
}
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
COMMANDS = [
    line.strip()
    for language, block in BLOCKS
    for line in block.splitlines()
    if not language and re.match(r"\s*(make|python -m) ", line)
]
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$",
    README + (ROOT / "docs/judges.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)


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
    """Dotted names that a tree imports at any level, except for annotations."""
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
    """Imports between the rooms of a package: its folders, and the files next to them."""
    arrows = {}
    for module, names in IMPORTS.items():
        parts = module.split(".")
        if parts[0] == package and len(parts) > 1:
            targets = {name.split(".")[1] for name in names if name.startswith(f"{package}.")}
            arrows.setdefault(parts[1], set()).update(targets - {parts[1]})
    return arrows


def circle_in(arrows):
    """Remove all that imports nothing of the rest, until only circles and their users remain."""
    remaining = {place: set(targets) for place, targets in arrows.items()}
    while free := [place for place, targets in remaining.items() if not targets & set(remaining)]:
        for place in free:
            del remaining[place]
    return sorted(remaining)


def pins(file):
    """Names of the packages that a requirements file pins, without extras."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return {re.split(r"[=\[]", line)[0] for line in lines if line and not line.startswith("#")}


def third_party(folders):
    """Packages that the code in some folders imports and that are neither ours nor Python's."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    tops = {name.split(".")[0] for path in paths for name in imported(tree_of(path))}
    benchmarks = {path.stem for path in BENCHMARKS}
    return tops - {*PACKAGES, "tests", *benchmarks, *sys.stdlib_module_names}


def bound_names(tree):
    """Parameters, variables, functions and classes of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


@pytest.mark.parametrize("path", [*SOURCES, *BENCHMARKS, *TESTS], ids=name_of)
def test_no_name_is_vague(path):
    assert not [f"{line}: {name}" for line, name in bound_names(tree_of(path)) if name in VAGUE]


def test_no_builder_imports_an_experiment():
    builders = {module for module in IMPORTS if module.startswith("data_builders")}
    names = {(module, name) for module in builders for name in IMPORTS[module]}
    assert not [pair for pair in sorted(names) if pair[1].startswith("eval.experiments")]


@pytest.mark.parametrize("module", MODULES)
def test_a_package_imports_only_allowed_packages(module):
    package = module.split(".")[0]
    tops = {name.split(".")[0] for name in IMPORTS[module]} & set(PACKAGES)
    assert tops <= {package} | ALLOWED[package]


def test_modules_import_without_circles():
    assert circle_in(IMPORTS) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_import_without_circles(package):
    assert circle_in(arrows_between(package)) == []


def test_eval_has_few_modules_and_few_imports_between_them():
    rooms = {path.name for path in (ROOT / "eval").iterdir() if path.name != "__pycache__"}
    assert len(rooms - {"__init__.py", "__main__.py"}) <= MOST_ROOMS
    assert sum(map(len, arrows_between("eval").values())) <= MOST_ARROWS


@pytest.mark.parametrize("room", KNOWS_NOT)
def test_a_room_does_not_import_the_rooms_above_it(room):
    assert arrows_between("eval")[room] & KNOWS_NOT[room] == set()


@pytest.mark.parametrize("name", [name_of(p) for p in SOURCES if p.name == "__init__.py"])
def test_an_init_only_imports_names(name):
    for node in tree_of(ROOT / name).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        exports = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        assert docstring or exports or isinstance(node, ast.ImportFrom), ast.unparse(node)


def experiment_of(path: Path) -> str:
    """The experiment that the configuration's first lines launch."""
    (name,) = set(re.findall(r"python -m eval experiment (\w+)", path.read_text(encoding="utf-8")))
    return name


def test_a_file_has_the_name_of_its_command():
    for name, place in data_builders.BUILDERS.items():
        assert place.split(".")[-2] == name
    for name in evaluation.COMMANDS:
        assert f"eval.commands.{name}" in MODULES
    for path in (ROOT / "configs/experiments").rglob("*.yaml"):
        modules = list((ROOT / "eval/experiments").rglob(f"{experiment_of(path)}.py"))
        assert len(modules) == 1, path


@pytest.mark.parametrize("name", ONCE)
def test_a_shared_function_is_defined_at_most_once(name):
    functions = (
        f"{module}.{node.name}"
        for module, path in MODULES.items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef) and node.name.strip("_") == name
    )
    assert len(list(functions)) <= 1


def test_no_two_functions_are_equal():
    places = {}
    for module, path in MODULES.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                text = "\n".join([ast.unparse(node.args), *map(ast.unparse, body)])
                places.setdefault(text, []).append(f"{module}.{node.name}")
    assert [names for text, names in places.items() if len(names) > 1 and len(text) > 120] == []


def code_tokens(path):
    """Number of names, operators, numbers and strings outside docstrings."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstring_lines = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstring_lines.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    counted = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return sum(token.type in counted and token.start[0] not in docstring_lines for token in tokens)


def test_the_packages_are_below_the_ceiling_of_code_tokens():
    assert sum(map(code_tokens, SOURCES)) <= MAX_CODE_TOKENS


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_are_short(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.lineno + 1
            assert length <= MAX_LINES_OF_A_FUNCTION, f"{name_of(path)}:{node.lineno} {node.name}"


def test_pinned_packages_are_those_that_are_imported():
    def names(file):
        return {
            IMPORTED_AS.get(name, name.replace("-", "_")) for name in pins(file) - set(UNIMPORTED)
        }

    running, testing = names("requirements.txt"), names("requirements-dev.txt")
    assert third_party(PACKAGES) - set(UNPINNED) == running
    assert third_party(("tests", "benchmarks")) - running == testing
    assert pins("requirements.txt") & pins("requirements-dev.txt") == set()


def test_the_lock_file_has_the_pinned_versions():
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for file in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
            name, _, version = re.sub(r"\[.*?\]", "", line).partition("==")
            if version and not name.startswith("#") and name != "torch":
                assert f"\n{name}=={version} " in locked, f"{file}: {line}; see CONTRIBUTING.md"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_module_imports_and_has_a_docstring(path):
    assert importlib.import_module(module_of(path)).__doc__


@pytest.mark.parametrize("path", BENCHMARKS, ids=name_of)
def test_every_benchmark_imports_and_is_listed(path):
    spec = importlib.util.spec_from_file_location(f"benchmarks.{path.stem}", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert f"`{path.name}`" in (path.parent / "README.md").read_text(encoding="utf-8")


def options_of(path: Path) -> list[str]:
    """``--config`` of a file, after those of the files that it changes, from its header."""
    header = path.read_text(encoding="utf-8").replace("\\\n#", "")
    launched = re.search(rf"((?:--config \S+ +)*)--config {name_of(path)}", header)
    return [*launched[1].split(), "--config", name_of(path)] if launched else []


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_every_config_is_parsed_by_its_command(path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    folder = path.relative_to(ROOT / "configs").parts[0]
    options = options_of(path)
    assert options, "its header has no command with it"
    if path.stem.startswith("sweep_"):
        assert train.parser_of("sweep").parse_args([*options, "--output", "x"])
    elif folder == "train":
        command = "rl" if path.stem == "rl" else "fit"
        with pytest.raises(SystemExit) as ended:
            train.main([command, *options, "--print_config"])
        assert ended.value.code == 0
        assert "class_path: train." in capsys.readouterr().out
    elif folder == "data":
        (name,) = re.findall(r"Launch: +python -m data_builders (\w+) ", path.read_text("utf-8"))
        assert data_builders.parser_of(name).parse_args(options)
    elif folder == "eval" and path.stem == "core":
        assert core.build_parser().parse_args([*options, "--claims", "x", "--output", "y"])
    elif folder == "eval":
        assert score.build_parser().parse_args([*options, "--documents", "x", "--output", "y"])
    elif folder == "experiments":
        parser = experiment.build_parser(experiment_of(path))
        assert parser.parse_args([*options, "--output", "x"])
    else:
        pytest.fail(f"configs/{folder}: no command reads it")


def test_configs_have_four_tiers():
    places = [path.relative_to(ROOT / "configs").parts for path in CONFIGS]
    assert {place[1] for place in places} == {"ready", "small", "laptop", "paper"}
    assert all(len(place) == 3 for place in places)


def test_the_readme_is_short():
    assert len(README.encode()) < MAX_README_BYTES


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_readme_has_the_two_commands_of_a_fresh_machine_with_their_times(target):
    (line,) = [command for command in COMMANDS if command.startswith(f"make {target}")]
    assert re.search(r"# .*\b\d+ minutes", line)
    assert re.search(rf"^{target}: setup\b", MAKEFILE, re.MULTILINE), "includes all set-up"


def test_the_ci_runs_the_tests():
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("page", ["README.md", "docs/scoring.md", "CONTRIBUTING.md"])
def test_every_path_of_the_docs_exists(page):
    outputs = ("runs/", "data/", "checkpoints/small", "checkpoints/laptop", "checkpoints/mine")
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`?((?:[\w.-]+/)+[\w.-]*)", text))
    for path in named:
        top = path.split("/")[0]
        if (ROOT / top).exists() and not path.startswith(outputs) and not path.startswith("http"):
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("path", ["docs/judges.md", "docs/scoring.md"])
def test_every_class_of_the_docs_exists(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    named = sorted(set(re.findall(r"\b(eval(?:\.[a-z_]+)+)\.([A-Z]\w+)", text)))
    assert named
    for module, name in named:
        assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


def test_the_python_examples_import_from_another_directory(tmp_path):
    imports = [
        [line for line in example.splitlines() if line.startswith("from ")] for example in EXAMPLES
    ]
    assert len(imports) >= 2
    assert all(imports)
    lines = "\n".join(line for example in imports for line in example)
    code = f"import sys; sys.path.remove('') if '' in sys.path else None\n{lines}\n"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


@pytest.mark.parametrize("program", ["train", "data_builders", "eval"])
def test_help_does_not_import_large_libraries(program):
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['{program}', '--help']\n"
        "try:\n"
        f"    runpy.run_module('{program}', run_name='__main__')\n"
        "except SystemExit as ended:\n"
        "    assert not ended.code\n"
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
