"""``make small`` makes all that the embedded configurations of eval read."""

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


def paths_in(value):
    """Files and folders of data, checkpoints and training logs that a configuration names."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {path for one in value for path in paths_in(one)}
    named = isinstance(value, str) and re.match(r"(data|checkpoints|runs)/", value)
    return {value} if named and not MADE_BY_RUNS.match(value) else set()


@pytest.fixture(scope="module")
def made():
    """The folders that the commands of ``make small`` fill, as a dry run prints them."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "small"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace("\\\n", " ")
    found = set()
    for line in re.findall(r"^\S+ -m ((?:train fit|data_builders) .*?) >", text, re.MULTILINE):
        words = shlex.split(line)
        given = dict(itertools.pairwise(words))
        config = yaml.safe_load((ROOT / given["--config"]).read_text(encoding="utf-8"))
        folder = given.get("--export_to") or given.get("--output")
        folder = folder or config.get("export_to") or config["output"]
        found |= {folder, f"runs/train/{given.get('--name') or config.get('name')}"}
        found |= {f"{folder}_step_{step}" for step in config.get("export_steps", ())}
    return found


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_small_configuration_reads_is_made(path, made):
    named = paths_in(yaml.safe_load(path.read_text(encoding="utf-8")))
    missing = {one for one in named if not any(f"{one}/".startswith(f"{at}/") for at in made)}
    assert missing == set()


def test_the_texts_of_every_step_have_their_adversary(made):
    path = ROOT / "configs/data/small/generations_steps.yaml"
    adversaries = {
        one for one in paths_in(yaml.safe_load(path.read_text("utf-8"))) if "attack" in one
    }
    assert len(adversaries) == 8
    assert adversaries <= made
