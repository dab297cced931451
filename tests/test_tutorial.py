"""`docs/tutorial.md` and the README's first score: every command runs, in the page's order."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from components.checkpoint import read_component
from tests.eval.conftest import make_checkpoint, relation, unli

__all__ = ["make_checkpoint", "relation", "unli"]  # fixtures

ROOT = Path(__file__).parents[1]
TUTORIAL = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILE = r"^`(my[\w.]+)`:\n\n```\w*\n(.*?)^```$"
COMMANDS = r"^```\n(python .*?)^```$"


@pytest.fixture
def root(tmp_path, relation, unli):
    """A root as after `make demo`, but with tiny random checkpoints."""
    (tmp_path / "checkpoints/small").mkdir(parents=True)
    (tmp_path / "checkpoints/small/relation").symlink_to(relation)
    (tmp_path / "checkpoints/small/unli").symlink_to(unli)
    (tmp_path / "checkpoints/ready").symlink_to(ROOT / "checkpoints/ready")
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "eval/select").mkdir(parents=True)
    (tmp_path / "eval/select/bleached").symlink_to(ROOT / "eval/select/bleached")
    return tmp_path


def write_files(page, folder):
    for name, text in re.findall(FILE, page, re.DOTALL | re.MULTILINE):
        (folder / name).write_text(text, encoding="utf-8")


def run(command, folder):
    bin_first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": bin_first, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )


def scored(run_folder):
    return list(map(json.loads, (run_folder / "scored.jsonl").read_text().splitlines()))


def verdicts(run_folder):
    rows = scored(run_folder)
    return {row["document"]["id"]: [v["label"] for v in row["verdicts"]] for row in rows}


def weights(run_folder):
    return [chosen["weight"] for row in scored(run_folder) for chosen in row["selections"]]


@pytest.mark.slow
def test_every_command_of_the_tutorial_runs(root):
    write_files(TUTORIAL, root)
    blocks = re.findall(COMMANDS, TUTORIAL, re.DOTALL | re.MULTILINE)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) == 9
    for command in commands:
        done = run(command, root)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "warning" not in done.stderr
    assert read_component(root / "checkpoints/bridges/unli", "unli").data[0].rows > 0
    before, after = (weights(root / "runs" / name) for name in ("before", "after"))
    assert len(before) == len(after) == 4
    assert before != after
    assert verdicts(root / "runs/mine") == {
        "plain": ["supported"] * 2,
        "padded": ["not_supported"] * 3,
    }
    bleached = (root / "data/bridges_bleached/bleached.txt").read_text(encoding="utf-8")
    assert "{topic} is a bridge.\n{topic} lies in some country." in bleached
    assert not (root / "data/bridges_of_italy").exists()
    assert (root / "data/insisted/insisted.jsonl").read_text().count("Indeed it is so that") >= 2


def test_the_readme_scores_a_users_file(root):
    write_files(README, root)
    (command,) = [line for line in README.splitlines() if " --documents my.jsonl " in line]
    done = run(command, root)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert [len(labels) for labels in verdicts(root / "runs/my").values()] == [2, 2]


@pytest.mark.slow
def test_every_command_of_the_readme_runs(root):
    (root / "checkpoints/small/unli").unlink()  # a training does not replace that of another run
    write_files(README, root)
    pairs = [
        {"premise": f"Ann {n} is a painter.", "hypothesis": f"Ann {n} paints.", "label": n % 3 / 2}
        for n in range(400)
    ]
    (root / "my_pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    # The experiment reads what `make demo` makes, and test_demo runs it.
    commands = [
        line
        for line in README.splitlines()
        if line.startswith("python -m ") and " experiment " not in line
    ]
    assert len(commands) >= 6
    for command in commands:
        done = run(command + " --trainer.max_steps 1" * (" -m train " in command), root)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    judges = (ROOT / "docs/judges.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", judges, re.DOTALL | re.MULTILINE)
    done = run(f"{sys.executable} -c {shlex.quote(example)}", root)
    assert done.returncode == 0, done.stderr
    audit = json.loads((root / "runs/audit/my_metric.py/audit.json").read_text(encoding="utf-8"))
    assert audit["verdict"] == "void"
