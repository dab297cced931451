"""What a configuration reads is what another one writes: builders, trainings, experiments.

Every path in a configuration is one of four things. Under ``data/`` it is a file that a builder's
configuration of the same tier writes, under ``checkpoints/`` a folder that a training exports,
under ``configs/`` or ``eval/`` a file of this repo; and under ``downloads/`` it is what somebody
else published and the user fetches, which the configuration's comments name and say where from.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from data_builders import __main__ as data_builders
from tests.test_house import options_of

ROOT = Path(__file__).parents[1]
TIERS = ("ready", "small", "laptop", "paper")
CONFIGS = [p for tier in TIERS for p in sorted((ROOT / "configs").glob(f"*/{tier}/*.yaml"))]
# Folders and files that a run fills for itself.
OWN = {"cache", "cache_dir", "output", "export_to", "name", "training_logs"}
PLACES = ("data/", "downloads/", "checkpoints/", "configs/", "eval/")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def comments_of(path: Path) -> str:
    return "\n".join(re.findall(r"(?:^|\s)#\s?(.*)$", path.read_text("utf-8"), re.MULTILINE))


def paths_in(config: object) -> Iterator[str]:
    """Every path that a configuration reads, in keys (``{file: weight}``) and values."""
    if isinstance(config, dict):
        for key, value in config.items():
            yield from paths_in(key)
            if key not in OWN:
                yield from paths_in(value)
    elif isinstance(config, list):
        for value in config:
            yield from paths_in(value)
    elif isinstance(config, str) and config.startswith(PLACES):
        yield config


def read(path: Path) -> list[str]:
    return sorted(set(paths_in(yaml.safe_load(path.read_text("utf-8")))))


def builds(path: Path) -> Iterator[list[str]]:
    """Arguments of the builds that a builder's configuration tells of: its own, and others.

    Another one is a line ``… --output data/NAME --option …`` of the comments.
    """
    yield []
    for line in comments_of(path).splitlines():
        for arguments in line.split("…")[1:]:
            if "--output" in arguments:
                yield shlex.split(arguments, comments=True)


@cache
def written(tier: str) -> dict[str, str]:
    """File under ``data/`` to the configuration that writes it."""
    configs = {}
    for path in sorted((ROOT / "configs" / "data" / tier).glob("*.yaml")):
        (name,) = re.findall(r"Launch: +python -m data_builders (\w+) ", path.read_text("utf-8"))
        parser = data_builders.parser_of(name)
        options = [word if word == "--config" else str(ROOT / word) for word in options_of(path)]
        for arguments in builds(path):
            config = parser.parse_args([*options, *arguments])
            config.pop("config")
            config.pop("dry_run")
            if config.get("user_agent", "-") is None:
                config["user_agent"] = "test/1.0 (test@lab.example)"
            for option in ("entailment", "gold", "judge", "metric"):
                if option in config:  # of a training that may not have been run here
                    config[option] = None
            builder = data_builders.load_builder(name)(**parser.instantiate(config).as_dict())
            for file in builder.writes():
                place = (builder.output / file).as_posix()
                assert configs.setdefault(place, name_of(path)) == name_of(path), place
    return configs


@cache
def exported() -> set[str]:
    """Folders under ``checkpoints/`` that a training's configuration names.

    Others are in its comments, in lines ``… --export_to checkpoints/NAME``. Of each there are those
    of the steps that the configuration exports.
    """
    folders = set()
    for path in CONFIGS:
        config = yaml.safe_load(path.read_text("utf-8"))
        if path.parent.parent.name != "train" or "export_to" not in config:  # no sweep has one
            continue
        further = re.findall(r"--export_to (checkpoints/\S+)", comments_of(path))
        for folder in (config["export_to"], *further):
            folders.add(folder)
            folders |= {f"{folder}_step_{step}" for step in config.get("export_steps", [])}
    return folders


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Caches that a builder's parts open do not land in the repo."""
    monkeypatch.chdir(tmp_path)


def missing(path: Path) -> list[str]:
    """What nobody makes of that which a configuration reads."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    absent = []
    for file in read(path):
        if file.startswith("data/"):
            # What the embedded snapshot gives is at hand on a laptop as well.
            tiers = {path.parent.name} | ({"small"} if path.parent.name == "laptop" else set())
            files = {place for tier in tiers for place in written(tier)}
            is_made = any(place == file or place.startswith(f"{file}/") for place in files)
            is_made |= f"benchmarks/{file.split('/')[1]}.py" in comments_of(path)
        elif file.startswith("checkpoints/"):
            # The laptop tier's encoder and the demo's untrained models are the Makefile's.
            pattern = re.sub(r"^checkpoints/small/attack_\w+", "$(SMALL)/attack_", file)
            is_made = file.replace("untrained/", "") in exported() or pattern in makefile
        elif file.startswith("downloads/"):
            is_made = "/".join(file.split("/")[:2]) in comments_of(path)
        else:
            is_made = (ROOT / file).is_file()
        if not is_made:
            absent.append(file)
    return absent


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_every_path_of_a_config_is_made_by_a_command(path, elsewhere):
    assert missing(path) == []


def test_paper_configs_read_files_that_builders_write(elsewhere):
    # By hand, so that a walk that finds nothing is seen.
    files = {
        "configs/data/paper/generations_culture.yaml": "data/adversarial_culture/info_test.jsonl",
        "configs/train/paper/unli.yaml": "data/unli/unli_train.jsonl",
        "configs/train/paper/relation_deberta.yaml": "data/relation_pairs/relation_train.jsonl",
        "configs/experiments/paper/factreasoner.yaml": "data/conflicts/documents.jsonl",
        "configs/experiments/paper/lss_metrics.yaml": "data/lss_test/lss_test.jsonl",
        "configs/experiments/paper/lss_generation.yaml": "data/lss_test/lss_test.jsonl",
        "configs/experiments/paper/lss_lengths.yaml": "data/lss/gold_train.jsonl",
        "configs/train/paper/lss_t5.yaml": "data/lss/gold_train.jsonl",
        "configs/experiments/paper/dfactscore.yaml": "data/ambigbio_vicuna/generations.jsonl",
    }
    for config, file in files.items():
        assert file in read(ROOT / config)
        assert file in written("paper")


def test_corruption_reads_a_run_with_one_verdict():
    # Of several verdicts the builder takes none unless it is told which.
    path = ROOT / "configs/data/paper/corruption.yaml"
    commands = re.findall(
        r"eval score --config (\S+) (.*?) --output (\S+)",
        comments_of(path).replace("\\\n", " "),
    )
    (file,) = yaml.safe_load(path.read_text("utf-8"))["documents"]
    ((config, _, output),) = commands
    assert f"{output}/scored.jsonl" == file
    pipeline = yaml.safe_load((ROOT / config).read_text("utf-8"))["pipeline"]
    (verifier,) = (stage["init_args"] for stage in pipeline["verify"])
    assert verifier["writer"]["init_args"]["model"] == "mistralai/Mistral-7B-Instruct-v0.2"
    assert not verifier.get("nonparametric")  # FActScore with NP gives two


@pytest.mark.parametrize(
    ("tier", "file"),
    [
        ("paper", "data/adversarial/train.jsonl"),
        ("paper", "data/conflicts/documents_test.jsonl"),
        ("paper", "data/lss/test.jsonl"),
        ("paper", "data/unli/validation.jsonl"),
        ("paper", "data/relation_pairs/relation_test.jsonl"),  # its shares leave nothing for it
        ("paper", "data/bios/topics_train.jsonl"),  # of the small tier
        ("small", "data/bios_paper/topics_train.jsonl"),
    ],
)
def test_a_file_that_no_builder_writes_is_absent(tier, file, elsewhere):
    assert file not in written(tier)
