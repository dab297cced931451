"""A run: what decides its key, whose its folder is, and how it goes on after a kill."""

import json
import multiprocessing
import shutil
from importlib import import_module

import pytest

from eval.decompose.given import Given
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline, Scored
from eval.prompting.prompts import Prompt
from eval.report import terminal
from eval.run.provenance import hash_inputs
from eval.run.run import Run
from eval.verify.labels import Labels
from records import Claim, Document, Result, UserError
from tests.model_server import ModelServer

DOCUMENTS = [
    Document(id=str(i), topic="Ann", text="x", claims=[Claim(id="a", text="x", label="S")])
    for i in range(5)
]


class Holder:
    def __init__(self, *parts):
        self.parts = parts


def result(value=0.5):
    row = {"metric": "m", "selection": "none", "kind": "k", "generator": "g", "domain": "d"}
    return Result(**row, n=1, failed=0, value=value, ci95=None, config_hash="x")


def files(folder):
    return sorted(path.name for path in folder.iterdir())


class Breaks(Labels):
    """Judges, and is killed in its second chunk."""

    calls = 0

    def __call__(self, *arguments):
        self.calls += 1
        if self.calls == 2:
            raise KeyboardInterrupt
        return super().__call__(*arguments)


def scored(run, pipeline, part="scored"):
    return run.process(part, pipeline.score, DOCUMENTS, Scored, chunk=2)


def test_a_killed_run_goes_on_and_ends_the_same(tmp_path):
    calm = Pipeline(Given(), [Breaks()])
    calm.verify[0].calls = 2
    with Run("score", calm, {}, tmp_path / "calm") as run:
        whole = scored(run, calm)
        finished = run.finish([result()])
    broken = Pipeline(Given(), [Breaks()])
    with pytest.raises(KeyboardInterrupt), Run("score", broken, {}, tmp_path / "a") as run:
        scored(run, broken)
    (journal,) = (tmp_path / "a").iterdir()
    assert journal.name == f".scored.{run.key[:16]}.partial.jsonl"
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [row.get("documents") or row["document"]["id"] for row in rows] == ["0", "1", ["0", "1"]]
    # As if it had been killed in the middle of writing its second chunk.
    torn = json.dumps(rows[0]) + '\n{"document": "é'
    with open(journal, "ab") as file:
        file.write(torn.encode()[:-1])
    with Run("score", broken, {}, tmp_path / "a") as run:
        assert run.read_finished() is None
        assert scored(run, broken) == whole
        assert run.finish([result()]) == finished
    assert broken.verify[0].calls == 4
    assert files(tmp_path / "a") == files(tmp_path / "calm") == ["results.json"]
    calm_bytes = (tmp_path / "calm/results.json").read_bytes()
    assert (tmp_path / "a/results.json").read_bytes() == calm_bytes


def test_all_that_decides_the_results_is_in_the_key(tmp_path):
    data, prompt = tmp_path / "data.jsonl", tmp_path / "own.jinja"
    data.write_text("{}")
    prompt.write_text("Say.")

    def key(name="score", config=None, files=(data,)):
        holder = Holder(Prompt(prompt))
        return Run(name, holder, config or {"p": 0.5}, tmp_path / "out", list(map(str, files))).key

    keys = [key(), key("robustness"), key(config={"p": 0.6}), key(files=()), key(files=(prompt,))]
    keys.append(key(config={"p": 0.5, "data": str(data)}))
    costs = [{"cache": "x", "batch_size": 1, "timeout_s": 2}, {"cache": None, "batch_size": 2}]
    slower, faster = (key(config={"m": {"init_args": {"p": 0.5, **cost}}}) for cost in costs)
    assert slower == faster
    # What is called so by the user is no cost.
    keys += [key(config={"metrics": {"cache": cache}}) for cache in ("NLI", str(data))]
    data.write_text("{} ")
    keys.append(key())
    prompt.write_text("Say it.")
    keys.append(key())
    assert len(set(keys)) == len(keys)
    assert not (tmp_path / "out").exists(), "a run that is not entered writes nothing"


def test_a_stage_of_ones_own_that_was_edited_is_another_stage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lab_of_one").mkdir()
    judges = tmp_path / "lab_of_one/judges.py"
    judges.write_text("class Judge:\n    class Inner:\n        pass\ndef judge(): ...\n")
    import_module("lab_of_one.judges")
    ours = {
        "class_path": "eval.verify.labels.Labels",
        "init_args": {"assessor": "lab_of_one.judges", "of": "lab_of_one.judges.jsonl"},
    }
    inner = {"class_path": "lab_of_one.judges.Judge.Inner"}
    for part in ({"class_path": "lab_of_one.judges.Judge"}, inner, "lab_of_one.judges.judge"):
        config = {"decompose": part, "verify": [ours, {"class_path": "numpy.array"}]}
        before = hash_inputs(config)
        assert list(before) == ["lab_of_one/judges.py"]
        judges.write_text(judges.read_text() + "# edited\n")
        assert hash_inputs(config) != before
    assert hash_inputs({"verify": [ours]}) == {}


def test_a_folder_holds_one_configuration(tmp_path):
    pipeline = Pipeline(Given(), [Labels()])
    with Run("score", pipeline, {"a": 1}, tmp_path) as run:
        scored(run, pipeline)
    (journal,) = tmp_path.iterdir()
    with pytest.raises(UserError, match=r"unfinished.*--overwrite to replace it"):
        Run("score", pipeline, {"a": 2}, tmp_path).__enter__()
    assert journal.is_file(), "another configuration's journal is not ours to delete"
    with Run("score", pipeline, {"a": 1}, tmp_path) as run:
        scored(run, pipeline)
        run.finish([result()])
    for name, config in (("score", {"a": 2}), ("robustness", {"a": 1})):
        with pytest.raises(UserError, match=r"results of another configuration.*--overwrite"):
            Run(name, pipeline, config, tmp_path).__enter__()
    before = (tmp_path / "results.json").read_bytes()
    with Run("score", pipeline, {"a": 2}, tmp_path / "other", overwrite=True) as run:
        scored(run, pipeline)
    with Run("score", pipeline, {"a": 3}, tmp_path / "other", overwrite=True) as run:
        assert not list((tmp_path / "other").glob(".*.partial.jsonl"))
    shutil.rmtree(tmp_path / "other")
    # Nothing was done in the one, and killed while writing the others.
    (tmp_path / "tables").mkdir()
    torn = (".results.json.a1b2c3d4", ".tables.md.a1b2c3d_", "tables/.by_kind.csv.a1b2c3d4")
    user_files = [".answers.sqlite-wal", ".mine", ".mine.settings", "tables/.mine"]
    for left in (".scored.0123.partial.jsonl", *torn, *user_files):
        (tmp_path / left).write_text("")
    with Run("score", pipeline, {"a": 1}, tmp_path) as run:
        assert run.read_finished("scored.jsonl") is None
        assert run.read_finished().results == [result()]
    left = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert left == [*user_files[:3], "results.json", "tables/.mine"]
    assert (tmp_path / "results.json").read_bytes() == before


def _enter(folder, messages):
    try:
        with Run("score", [], {}, folder):
            messages.put("in")
    except UserError as error:
        messages.put(str(error))


def test_a_second_process_on_the_folder_is_refused_in_one_line(tmp_path):
    context = multiprocessing.get_context("spawn")
    messages = context.Queue()
    with Run("score", [], {}, tmp_path):
        other = context.Process(target=_enter, args=(tmp_path, messages))
        other.start()
        (line,) = messages.get(timeout=300).splitlines()
        other.join()
    assert f"{tmp_path}: another process runs in this folder" in line
    _enter(tmp_path, messages)
    assert messages.get(timeout=300) == "in"
    assert files(tmp_path) == []
    # What a killed process left is nobody's.
    (tmp_path / ".lock").write_text("")
    _enter(tmp_path, messages)
    assert messages.get(timeout=300) == "in"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.01)
    with ModelServer(lambda body: "Yes.") as running:
        yield running


class Asks:
    """Asks about each document, in a step for each of its models."""

    def __init__(self, *writers):
        self.writers = writers

    def work(self, documents):
        for writer in self.writers:
            writer.answer([[{"role": "user", "content": d.id}] for d in documents], temperature=0.0)
        return documents


def test_usage_is_that_of_a_run_that_was_never_cut(tmp_path, server):
    def ask(folder, faults=()):
        server.faults.extend(faults)
        writers = [
            OpenAIServer(name, server.url, retries=0, concurrency=1, prices=(1e6, 2e6), timeout_s=5)
            for name in ("m", "m", "other")
        ]
        asks = Asks(*writers)
        with Run("asks", asks, {}, folder) as run:
            for part in ("one", "two"):
                documents = [d.model_copy(update={"id": f"{part} {d.id}"}) for d in DOCUMENTS]
                run.process(part, asks.work, documents, Document, chunk=2)
            return run.finish([])

    calm = ask(tmp_path / "calm")
    answers = len(server.answered)
    server.answered.clear()
    with pytest.raises(UserError, match="503"):
        ask(tmp_path / "rough", [None] * 7 + ["503"])
    rough = ask(tmp_path / "rough")
    assert len(server.answered) == answers, "no question was answered twice"
    assert rough == calm
    same, other = rough.provenance["usage"]
    assert (same["model"]["model"], other["model"]["model"]) == ("m", "other")
    assert (same["answers"], other["answers"]) == (20, 10), "one model's parts share a row"
    assert other["cost"] == other["prompt_tokens"] + 2 * other["completion_tokens"] > 0
    assert terminal.format_usage(other).startswith("other: 10 answers (0 failed), ")
