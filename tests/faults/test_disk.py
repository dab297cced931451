"""A disk that is full, or that may not be written to: one line, and the next run completes."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.command import run_command
from eval.models.cache import ANSWERS
from eval.models.openai_server import OpenAIServer
from records import UserError
from tests.data_builders.test_builder import Words
from tests.model_server import ModelServer, prompt_of


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that is full as soon as a file is longer than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def documents(folder: Path, number: int) -> Path:
    claims = [{"id": "c", "text": "Ann wrote.", "sentence": 0, "label": "S"}]
    rows = [
        {"id": str(n), "topic": "Ann Lee", "text": "Ann wrote. " * 20, "claims": claims}
        for n in range(number)
    ]
    path = folder / "documents.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_full_disk_is_a_one_line_error_and_the_next_run_completes(tmp_path, score, by_labels):
    arguments = ["--config", by_labels, "--documents", documents(tmp_path, 60), "--chunk", 4]
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    assert score(*arguments, "--output", calm)[0] == 0
    # Full in the middle of the journal.
    with files_of_at_most(20_000):
        code, errors = score(*arguments, "--output", rough)
    assert (code, len(errors)) == (2, 1), errors
    assert "cannot be written (File too large); free some space" in errors[0]
    (journal,) = rough.glob(".scored.*.partial.jsonl")
    before = journal.read_bytes()
    assert 0 < len(before) <= 20_000
    # Full while what was scored is written.
    with files_of_at_most((calm / "scored.jsonl").stat().st_size - 1):
        code, errors = score(*arguments, "--output", rough)
    assert (code, len(errors)) == (2, 1), errors
    assert not (rough / "scored.jsonl").exists()
    assert score(*arguments, "--output", rough) == (0, [])
    assert sorted(path.name for path in rough.iterdir()) == [
        "claims.csv",
        "documents.csv",
        "results.json",
        "scored.jsonl",
    ]
    for name in ("results.json", "scored.jsonl"):
        assert (rough / name).read_bytes() == (calm / name).read_bytes()


def test_a_cache_on_a_full_disk_is_a_one_line_error_and_keeps_its_answers(tmp_path):
    prompts = [[{"role": "user", "content": f"Say {n}."}] for n in range(60)]

    def answers() -> list[str]:
        writer = OpenAIServer("m", server.url, concurrency=1, cache=tmp_path / ANSWERS)
        return [answer.text for (answer,) in writer.answer(prompts, temperature=0.0)]

    with ModelServer(lambda body: prompt_of(body) * 500) as server:
        with (
            files_of_at_most(100_000),
            pytest.raises(UserError, match=r"cannot be used as a cache \(.*\); free some space"),
        ):
            answers()
        kept = len(server.answered) - 1
        assert 0 < kept < 60
        assert answers() == [f"Say {n}." * 500 for n in range(60)]
        assert len(server.answered) == 60 + 1, "only what could not be kept"


@pytest.fixture(params=["below a file", "read-only"])
def closed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder that cannot be made."""
    if request.param == "below a file":
        (tmp_path / "file").write_text("")
        return tmp_path / "file" / "out"
    if not os.geteuid():
        pytest.skip("root may write everywhere")
    (tmp_path / "closed").mkdir(mode=0o555)
    return tmp_path / "closed" / "out"


def door(build: Callable[[], object], capsys: pytest.CaptureFixture) -> tuple[int, list[str]]:
    """A build's exit code, and what it said on standard error."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        run_command(lambda: build() and 0)
    return left.value.code, capsys.readouterr().err.splitlines()


def test_a_dataset_that_cannot_be_written_is_a_one_line_error(tmp_path, capsys, closed):
    texts = tmp_path / "texts.txt"
    texts.write_text("one two three")
    code, errors = door(Words(closed, [str(texts)]).build, capsys)
    assert (code, len(errors)) == (2, 1), errors
    assert "cannot be written" in errors[0]
