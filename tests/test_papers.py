"""``docs/papers/``: no row of the five papers is missing, and what a row names is there.

The table of a page has the columns what, file, config, command, state; the commands are numbered in
a block below the table. Files and configurations exist; a command parses against the real options
of its door, with the configuration that it names.
"""

import re
import shlex
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pytest
import yaml

from data_builders import __main__ as data_builders
from eval.commands import core, experiment, papers, score
from train import __main__ as train
from train.__main__ import parser_of

ROOT = Path(__file__).parents[1]
PUBLIC = "public, not available here"
STATES = ("reproduced", "runs here", "needs a GPU", PUBLIC, "needs data", "not code")
# What each paper numbers, counted in its text.
NUMBERED = {
    "2407.03572": {"Figure": 10, "Table": 8, "Equation": 1},
    "2403.11903": {"Figure": 7, "Table": 10},
    "2402.05629": {"Figure": 3, "Table": 6},
    "2308.12157": {"Figure": 5, "Table": 7},
    "2502.18573": {"Figure": 10, "Table": 35, "Equation": 8},
}


@dataclass(frozen=True)
class Row:
    """A row of a page; ``paper`` is the arXiv number of the page's head.

    ``command`` has numbers of commands of the page, or ``as`` another row.
    """

    paper: str
    item: str
    file: str
    config: str
    command: str
    state: str

    def __str__(self):
        return f"{self.paper} {self.item[:40]}"


def rows_of(paper: str, page: str) -> list[Row]:
    lines = [line for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["what", "file", "config", "command", "state"]
    return [Row(paper, *row) for row in cells[2:]]


def commands_of(page: str) -> dict[str, str]:
    """Each numbered command by its number."""
    (block,) = re.findall(r"^```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    commands = re.findall(r"# (\d+)\n(.*?)\n(?=# |\Z)", block, re.DOTALL)
    return {number: re.sub(r"\\\n +", "", command) for number, command in commands}


def paper_of(page: str) -> str:
    return re.match(r"# .*\((\d+\.\d+)\)\n\n## From `fetch` to .*\n\n1\. ", page)[1]


TEXTS = [path.read_text("utf-8") for path in sorted((ROOT / "docs/papers").glob("*.md"))]
PAGES = {paper_of(page): page for page in TEXTS}
ROWS = [row for paper, page in PAGES.items() for row in rows_of(paper, page)]
NUMBERED_COMMANDS = {
    (paper, number): command
    for paper, page in PAGES.items()
    for number, command in commands_of(page).items()
}
COMMANDS = sorted(set(NUMBERED_COMMANDS.values()))


def numbers(item: str, kind: str) -> set[int]:
    """``Tables 4 and 9–11`` of ``Table``: 4, 9, 10, 11."""
    listed_numbers = set()
    for listed in re.findall(rf"\b{kind}s? ((?:\d+(?:–\d+)?(?:, | and )?)+)", item):
        for first, last in re.findall(r"(\d+)(?:–(\d+))?", listed):
            listed_numbers |= set(range(int(first), int(last or first) + 1))
    return listed_numbers


def test_ranges_are_read():
    assert numbers("Tables 4 and 9–11, F1@K", "Table") == {4, 9, 10, 11}
    assert numbers("Figure 3, both panels of Table 2", "Table") == {2}


@pytest.mark.parametrize("paper", NUMBERED)
def test_no_table_figure_or_equation_of_a_paper_is_missing(paper):
    for kind, last in NUMBERED[paper].items():
        listed = {n for row in ROWS if row.paper == paper for n in numbers(row.item, kind)}
        assert listed == set(range(1, last + 1)), kind


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_has_a_state_and_existing_files(row):
    assert row.state.startswith(STATES), row.state
    if row.state.startswith(("reproduced", "needs", "public")):
        assert len(row.state.partition(":")[2].strip()) > 3, "reproduced what, needs which?"
    if row.state.startswith(("reproduced", "runs here", "needs a GPU")):
        assert row.file.strip("–"), "a file"
    named = re.findall(r"`([^`]+)`", f"{row.file} {row.config}")
    for path in named:
        assert (ROOT / path).is_file(), path
    for path in re.findall(r"`([^`]+)`", row.config):
        assert path.startswith("configs/"), path


def test_tables_name_all_numbered_commands():
    named = {
        (row.paper, number)
        for row in ROWS
        if re.fullmatch(r"[\d, ]+", row.command)
        for number in row.command.split(", ")
    }
    assert named == set(NUMBERED_COMMANDS)


def test_paths_of_the_pages_exist():
    index = (ROOT / "docs/papers.md").read_text("utf-8")
    assert set(re.findall(r"\(papers/(\S+)\)", index)) == {
        path.name for path in (ROOT / "docs/papers").iterdir()
    }
    for path in re.findall(r"`((?:tests|docs|configs|eval|train)/[^`]+)`", index + "".join(TEXTS)):
        assert list(ROOT.glob(path)), path


def parses(words: list[str]) -> None:
    """Parse a command of one of the doors; what is wrong with it is raised."""
    door, name, *rest = words
    if (door, name) == ("train", "convert"):
        parser_of(name).parse_args(rest)
    elif door == "train":
        with pytest.raises(SystemExit) as left:
            train.main([name, *rest, "--print_config"])
        assert left.value.code == 0
    elif door == "data_builders":
        data_builders.parser_of(name).parse_args(rest)
    elif name == "experiment":
        experiment.build_parser(rest[0]).parse_args(rest[1:])
    else:
        {"score": score, "core": core, "papers": papers}[name].build_parser().parse_args(rest)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_parses(command, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)
    while "=" in words[0]:  # OPENAI_API_KEY=…
        words.pop(0)
    if words[1].startswith("benchmarks/"):
        assert (ROOT / words[1]).is_file()
        return
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE)
        return
    assert words[:2] == ["python", "-m"]
    parses(words[2:])


# What a paper's configuration says of the paper or of its authors' code, by hand: place to value.
PUBLISHED = {
    # zipJiang/adversarial-factuality, configs/training and src/task/peft_sft.py at d04a258
    "train/paper/adversary_gpt2.yaml": {
        "model.init_args.lr": 1e-3,
        "model.init_args.schedule": "transformers.get_constant_schedule_with_warmup",
        "model.init_args.released_loss": True,
        "data.init_args.batch_size": 64,
        "trainer.max_epochs": 20,
        "trainer.precision": "32-true",
        "patience": 1,
    },
    "train/paper/adversary_mistral.yaml": {
        "model.init_args.lr": 2e-4,
        "model.init_args.schedule": "transformers.get_constant_schedule_with_warmup",
        "model.init_args.released_loss": True,
        "data.init_args.batch_size": 32,
        "trainer.max_epochs": 4,
        "patience": 1,
    },
    # zipJiang/adversarial-factuality, configs/training/train_unli.yaml over train_unli_task.py
    "train/paper/unli.yaml": {
        "model.init_args.lr": 5e-6,
        "model.init_args.warmup_ratio": 0,
        "model.init_args.weight_decay": 0,
        "model.init_args.max_length": 256,
        "data.init_args.batch_size": 16,
        "trainer.max_epochs": 5,
        "trainer.precision": "32-true",
    },
    # Uncalibrated, as 2502.18573 has it: a folder of ours has a temperature and a shift
    "experiments/paper/factreasoner_relations.yaml": {
        "experiment.relations.vitc.init_args.checkpoint": "tals/albert-xlarge-vitaminc-mnli",
        "experiment.no_evidence": "undecided",
    },
    "experiments/paper/relation_model.yaml": {
        "experiment.relations.vitc.init_args.checkpoint": "tals/albert-xlarge-vitaminc-mnli",
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_configuration_has_the_published_values(name):
    config = yaml.safe_load((ROOT / "configs" / name).read_text(encoding="utf-8"))
    values = {
        place: reduce(lambda section, key: section[key], place.split("."), config)
        for place in PUBLISHED[name]
    }
    assert values == PUBLISHED[name]


@pytest.mark.parametrize(("name", "texts"), [("gpt2", 64), ("mistral", 32)])
def test_warm_up_of_the_released_recipe_is_100_steps(name, texts):
    path = ROOT / "configs/train/paper" / f"adversary_{name}.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    steps = config["trainer"]["max_epochs"] * -(-4000 // texts)
    assert round(config["model"]["init_args"]["warmup_ratio"] * steps) == 100


def test_the_search_of_rates_contains_those_of_the_released_code():
    path = ROOT / "configs/train/paper/sweep_adversary_lr.yaml"
    text = path.read_text(encoding="utf-8")
    assert 2e-4 in yaml.safe_load(text)["choices"]["model.lr"]
    of_gpt2 = re.findall(r"gpt2.*--choices '(.+)'", text)
    assert len(of_gpt2) == 2
    assert all(1e-3 in yaml.safe_load(choices)["model.lr"] for choices in of_gpt2)
