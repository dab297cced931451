"""Writing: atomic, resumable, and the result schema."""

import json
import os

import pytest

from records import (
    JsonlAppender,
    Result,
    ResultFile,
    UserError,
    escape_markdown,
    read_results,
    write_json,
    write_jsonl,
    write_results,
)
from records.writing import lock_folder

RESULT = {
    "metric": "factual_precision",
    "selection": "core",
    "kind": "normal",
    "generator": "given",
    "domain": "biographies",
    "n": 3,
    "failed": 1,
    "value": 0.5,
    "ci95": [0.2, 0.8],
    "config_hash": "abc",
}


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"a": float("nan")})
    with pytest.raises(TypeError):
        write_jsonl(tmp_path / "b.jsonl", [{"a": object()}])
    (tmp_path / "c").mkdir()
    with pytest.raises(UserError, match=rf"^{tmp_path}/c: cannot be written \(Is a directory\)"):
        write_json(tmp_path / "c", {})
    assert sorted(os.listdir(tmp_path)) == ["a.json", "c"]
    assert json.loads(path.read_text()) == {"a": 1}


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o002, 0o664)])
def test_written_files_follow_the_umask(umask, mode, tmp_path):
    before = os.umask(umask)
    try:
        write_json(tmp_path / "a.json", {})
        with lock_folder(tmp_path):
            files = [tmp_path / "a.json", tmp_path / ".lock"]
            assert [path.stat().st_mode & 0o777 for path in files] == [mode, mode]
    finally:
        os.umask(before)


def test_an_appender_resumes_after_a_torn_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    with JsonlAppender(path, key="id") as rows:
        rows.append([{"id": 1, "v": "ä"}, {"id": 2, "v": "b"}])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id": 3, "v": "c')
    with JsonlAppender(path, key="id") as rows:
        assert sorted(rows.done) == [1, 2]
        rows.append([{"id": 3, "v": "c"}])
    assert path.read_bytes() == whole + b'{"id": 3, "v": "c"}\n'


def test_results_are_read_as_written_and_invalid_ones_refused(tmp_path):
    path = tmp_path / "results.json"
    file = ResultFile(experiment="e", provenance={}, results=[Result(**RESULT)])
    write_results(path, file)
    assert read_results(path) == file
    content = json.loads(path.read_text())
    content["results"][0]["n"] = -1
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"results\.0\.n"):
        read_results(path)
    with pytest.raises(UserError, match="does not exist; run the experiment first"):
        read_results(tmp_path / "absent.json")


def test_markdown_characters_are_escaped():
    assert escape_markdown("a | b\nc \\ d") == r"a \| b c \\ d"
    assert escape_markdown("<img src=x> & ![a](b)") == r"&lt;img src=x&gt; &amp; ![a]\(b)"
    assert escape_markdown("0.5 [0.4, 0.6] (n = 2)") == "0.5 [0.4, 0.6] (n = 2)"
