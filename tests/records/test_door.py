"""How a door ends, whatever its surroundings: one line for a user's mistake, and no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from components.base import resolve_base
from records import UserError
from records.door import IN_DEMO, made_by, run_door
from tests.records.test_complaints import complaint

ROOT = Path(__file__).parents[2]
TRAIN, BUILD = "python -m train fit --config configs/train", "python -m data_builders"


def test_ctrl_c_is_one_line_and_no_traceback(capsys):
    def main():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        run_door(main)
    assert left.value.code == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("interrupted; the same command goes on from what is kept")


@pytest.mark.parametrize(
    ("missing", "tier", "command"),
    [
        ("checkpoints/small/relation", "", "make demo"),
        ("checkpoints/small/untrained/unli", "", "make demo"),
        ("checkpoints/small/preference_core_step_15", "", "make small"),
        ("data/preferences_core/preferences_dev.jsonl", "", "make small"),
        ("checkpoints/small/relation_pages/", "", f"{TRAIN}/small/relation_pages.yaml"),
        ("data/kb/passages.jsonl", "", "make demo"),
        ("data/lss/lss_dev.jsonl", "", f"{BUILD} lss --config configs/data/paper/lss.yaml"),
        ("data/pairs/x", "laptop", f"{BUILD} pairs --config configs/data/laptop/pairs.yaml"),
        ("data/pairs/x", "paper", f"{BUILD} pairs --config configs/data/paper/pairs.yaml"),
        ("runs/train/small/unli", "small", "make demo"),
        ("data/kb2/passages.jsonl", "", None),
        ("downloads/mine.jsonl", "", None),
    ],
)
def test_what_is_missing_is_made_by_a_command(missing, tier, command, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert made_by(missing, tier) == made_by(ROOT / missing, tier) == command


def test_the_demo_makes_what_is_said_to_be_made_by_it():
    text, _, _ = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nsmall: ")
    trained = re.search(r"^TRAINED := (.*)$", text, re.MULTILINE)[1].split()
    built = re.findall(r"configs/data/small/(\w+)\.yaml", text)
    assert set(trained) | set(built) == IN_DEMO


def test_a_door_names_the_command_that_makes_a_missing_checkpoint(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["eval"])

    def main():
        raise UserError("checkpoints/laptop/unli: no component.json; give a folder")

    with pytest.raises(SystemExit):
        run_door(main)
    assert capsys.readouterr().err == (
        "error: checkpoints/laptop/unli: no component.json; give a folder; `python -m train fit "
        "--config configs/train/laptop/unli.yaml` makes it\n"
    )


@pytest.mark.parametrize(
    ("base", "command"),
    [
        ("checkpoints/laptop/nli", "python -m train fit --config configs/train/laptop/nli.yaml"),
        ("checkpoints/base/all-mpnet-base-v2", "make mpnet"),
    ],
)
def test_what_makes_a_base_model_is_told(base, command, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["train"])
    monkeypatch.setattr(Path, "exists", lambda _: False)

    with pytest.raises(SystemExit):
        run_door(lambda: resolve_base(base))
    assert capsys.readouterr().err.endswith(
        f"{base}: no such folder; give a hub id or a model folder; `{command}` makes it\n"
    )


@pytest.mark.parametrize(
    ("tier", "command"), [("small", "make demo"), ("paper", "python -m data_builders generations")]
)
def test_the_tier_of_the_config_that_lacks_a_file_says_what_makes_it(
    tier, command, monkeypatch, capsys
):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["eval", f"--config=configs/data/{tier}/corruption.yaml"])

    def main():
        raise UserError("adversarial: data/generations/x.jsonl: no such file; give one")

    with pytest.raises(SystemExit):
        run_door(main)
    assert f"give one; `{command}" in capsys.readouterr().err


def test_libraries_draw_no_bars_into_a_log():
    run = (
        "from records.door import run_door\n"
        "def main():\n"
        "    from tqdm.auto import tqdm\n"
        "    for _ in tqdm(range(3)): pass\n"
        "{}"
    )
    call = [sys.executable, "-c"]
    # Doors that other tests ran in this process have set it.
    env = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    own = {"capture_output": True, "text": True, "env": env}
    drawn = subprocess.run([*call, run.format("main()")], **own)
    assert "3/3" in drawn.stderr
    door = subprocess.run([*call, run.format("run_door(main)")], **own)
    assert (door.returncode, door.stderr) == (0, "")


def test_a_reader_that_has_read_enough_is_no_defect():
    door = [sys.executable, "-m", "eval", "--help"]
    with subprocess.Popen(door, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 1


def test_what_is_repeated_of_the_input_gives_the_terminal_no_command(capsys):
    def main():
        raise UserError("\x1b]52;c;aGk=\x07a\x9b2J\u202eb: é\u200c no such\nfile")

    with pytest.raises(SystemExit):
        run_door(main)
    said = capsys.readouterr().err
    assert said == "error: �]52;c;aGk=�a�2J�b: é\u200c no such\nfile\n"


def door_of(main, *words, shell='exec "$@"', **env):
    """A process that runs ``main`` as a door, started by a shell in other surroundings."""
    code = f"import os, sys\nfrom records.door import run_door\nrun_door({main})"
    call = ["sh", "-c", shell, "sh", sys.executable, "-c", code, *words]
    return subprocess.run(call, capture_output=True, cwd=ROOT, env=os.environ | env)


def test_a_door_works_where_its_streams_are_closed(tmp_path):
    # The number of a closed stream would go to the first file, and what is printed into it.
    main = "lambda: print('said', file=sys.stderr) or int(os.open(sys.argv[1], os.O_CREAT) < 3)"
    for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
        done = door_of(main, str(tmp_path / "data"), shell=f'exec "$@" {closed}')
        assert done.returncode == 0, (closed, done.stderr)


def test_a_terminal_that_lacks_a_sign_is_given_its_number():
    done = door_of("lambda: print('Zoë – 1')", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, b"Zo\\xeb \\u2013 1\n")


def test_a_config_is_read_alike_in_every_locale(tmp_path):
    (tmp_path / "own.yaml").write_text("domain: Zoë – 1  # …\n", encoding="utf-8")
    arguments = ["score", "--config", str(tmp_path / "own.yaml"), "--print_config"]
    ascii_alone = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    main = "__import__('eval.__main__', fromlist=['main']).main"
    done = door_of(main, *arguments, **ascii_alone)
    assert b"domain: Zo\\xeb \\u2013 1\n" in done.stdout, done.stderr


def test_a_name_that_no_result_can_hold_is_told_before_the_work(monkeypatch, capsys):
    line = complaint(["score", "--documents", "gr\udcf6.jsonl"], monkeypatch, capsys)
    assert line.startswith("error: gr\ufffd.jsonl: not UTF-8; rename it")
