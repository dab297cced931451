"""``make small`` creates all inputs of the embedded configurations of eval."""

import itertools
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CONFIGS = sorted(
    path for room in ("eval", "experiments") for path in ROOT.glob(f"configs/{room}/small/*.yaml")
)
MADE_BY_RUNS = re.compile(r"data/cache/|runs/\w+/answers\.sqlite")
# Ready checkpoints are in git; hardened ones and their texts, and texts of labelled sentences, need
# commands of their own.
MADE_ELSEWHERE = re.compile(
    r"checkpoints/(ready|hardened)/|data/(generations_leads|\w+_labelled|labelled_\w+)/"
)


def paths_in(value):
    """Files and folders of data, checkpoints and training logs that a configuration names."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {path for entry in value for path in paths_in(entry)}
    named = isinstance(value, str) and re.match(r"(data|checkpoints|runs)/", value)
    elsewhere = named and (MADE_BY_RUNS.match(value) or MADE_ELSEWHERE.match(value))
    return {value} if named and not elsewhere else set()


@pytest.fixture(scope="module")
def made():
    """The folders that the commands of ``make small`` fill, as a dry run prints them."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "small"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace("\\\n", " ")
    folders = set()
    for line in re.findall(r"^\S+ -m ((?:train fit|data_builders) .*?) >", text, re.MULTILINE):
        words = shlex.split(line)
        options = dict(itertools.pairwise(words))
        config = yaml.safe_load((ROOT / options["--config"]).read_text(encoding="utf-8"))
        folder = options.get("--export_to") or options.get("--output")
        folder = folder or config.get("export_to") or config["output"]
        folders |= {folder, f"runs/train/{options.get('--name') or config.get('name')}"}
        folders |= {f"{folder}_step_{step}" for step in config.get("export_steps", ())}
    return folders


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_small_creates_the_inputs_of_small_configs(path, made):
    named = paths_in(yaml.safe_load(path.read_text(encoding="utf-8")))
    missing = {path for path in named if not any(f"{path}/".startswith(f"{at}/") for at in made)}
    assert missing == set()


def test_make_small_creates_the_adversary_of_every_step(made):
    path = ROOT / "configs/data/small/generations_steps.yaml"
    adversaries = {
        folder for folder in paths_in(yaml.safe_load(path.read_text("utf-8"))) if "attack" in folder
    }
    assert len(adversaries) == 8
    assert adversaries <= made
