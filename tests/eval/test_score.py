"""The score command: it goes on after a kill, asks nothing twice, keeps configurations apart."""

import csv
import json

import pytest

from eval.commands.report import build_report
from eval.commands.score import main as score_main
from eval.decompose.given import Given
from eval.pipeline import Pipeline, Scored
from eval.run.run import LimitReached, Run
from eval.verify.labels import Labels
from records import Claim, Document, Passage, UserError, read_results, write_jsonl

CONFIG = """
pipeline:
  decompose: {class_path: eval.decompose.given.Given}
  verify: [{class_path: eval.verify.labels.Labels}]
"""
ARGUMENTS = ["--config", "config.yaml", "--documents", "documents.jsonl", "--output", "out"]


def document(text, **more):
    return Document(**{"id": "d", "topic": "Ann Lee", "text": text} | more)


DOCUMENTS = [
    document(f"Ann painted {n} birds; she sold them. She {verb}.", id=str(n))
    for n, verb in enumerate(("rested", "wrote", "rested", "sang"))
]


def test_score_command_writes_scores_and_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    claims = [Claim(id="a", text="x", label="S"), Claim(id="b", text="y", label="NS")]
    write_jsonl("documents.jsonl", [document("x. y.", claims=claims)])
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert score_main(ARGUMENTS) == 0
    files = ["claims.csv", "documents.csv", "results.json", "scored.jsonl"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == files
    results = read_results("out/results.json").results
    assert [r.value for r in results if r.metric == "factual_precision"] == [0.5]
    (row,) = map(json.loads, (tmp_path / "out/scored.jsonl").read_text().splitlines())
    assert [v["label"] for v in row["verdicts"]] == ["supported", "not_supported"]


def cells(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_all_documents_and_claims_are_in_tables_and_on_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    claims = [Claim(id="a", text="=x", label="S"), Claim(id="b", text="y", label="NS")]
    rows = [document("x. y.", id=f"d{n}", claims=claims) for n in range(200)]
    write_jsonl("documents.jsonl", rows)
    shouting = [document(f"x. {'Great! ' * 5}", id=f"s{n}", claims=claims) for n in range(9)]
    write_jsonl("documents.jsonl", [*rows, *shouting])
    pipeline = Pipeline(Given(), [Labels()])
    limited = Run("score", pipeline, {}, "killed", limit=20)
    with limited, pytest.raises(LimitReached):
        limited.process("scored", pipeline.score, rows, Scored)
    monkeypatch.setattr("eval.run.run._begun_folders", set())  # as in another process
    with Run("score", pipeline, {}, "killed") as run:
        run.process("scored", pipeline.score, rows, Scored)
    assert "scored: resumes after 20 of 200 documents\n" in capsys.readouterr().err

    assert score_main(ARGUMENTS) == 0
    assert len(cells("out/documents.csv")) == 209
    assert cells("out/documents.csv")[0]["precision"] == "0.5"
    judged = cells("out/claims.csv")
    assert [(row["document"], row["claim"], row["verdict"]) for row in judged[:2]] == [
        ("d0", "'=x", "supported"),
        ("d0", "y", "not_supported"),
    ]
    page = build_report("out").read_text(encoding="utf-8")
    assert all(f">{name}<" in page for name in ("d0", "d150", "s8"))


def scored(pipeline, folder):
    with Run("score", pipeline, {}, folder) as run:
        return run.process("scored", pipeline.score, DOCUMENTS, Scored, chunk=2), run.usage()


def test_limit_prints_the_cost_per_document_and_of_all(relation, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    passages = [Passage(id=str(n), title="Ann", text=f"Ann painted {n} birds.") for n in range(9)]
    write_jsonl("documents.jsonl", [d.model_copy(update={"passages": passages}) for d in DOCUMENTS])
    entailment = (
        f"{{class_path: eval.models.encoder.Entailment, init_args: {{checkpoint: {relation}}}}}"
    )
    (tmp_path / "config.yaml").write_text(f"""
pipeline:
  decompose: {{class_path: eval.decompose.sentences.Sentences}}
  verify: [{{class_path: eval.verify.nli.NLI, init_args: {{entailment: {entailment}}}}}]
""")
    assert score_main([*ARGUMENTS, "--limit", "2"]) == 0
    each, total = [line for line in capsys.readouterr().out.splitlines() if " pairs, " in line]
    # Two documents with two sentences and nine passages, of which "She rested." is judged once.
    assert each.startswith("per document: 18.0 pairs, ")
    assert total.startswith("all 4 documents: 72.0 pairs, ")
    assert not capsys.readouterr().err
    assert score_main([*ARGUMENTS, "--limit", "2"]) == 0
    assert "pairs" not in capsys.readouterr().out  # nothing was scored


def test_a_folder_holds_one_configuration(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    claims = [Claim(id="a", text="x", label="S")]
    write_jsonl("documents.jsonl", [document("x. y.", claims=claims)])
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert score_main(ARGUMENTS) == 0
    before = (tmp_path / "out/results.json").read_bytes()
    printed = capsys.readouterr().out
    assert printed.split()[:6] == ["kind", "of", "text", "generator", "Core", "assessor"]
    assert score_main([*ARGUMENTS, "--chunk", "1"]) == 0, "done already, however it is cut"
    assert capsys.readouterr().out == printed
    other = r"results of another configuration.*\(differing: pipeline.gamma\).*--overwrite"
    with pytest.raises(UserError, match=other):
        score_main([*ARGUMENTS, "--pipeline.gamma", "0"])
    # Nothing was done in the one, and killed while writing the other.
    left = [tmp_path / f"out/.{n}" for n in ("scored.0123.partial.jsonl", "results.json.a1b2c3d4")]
    for path in left:
        path.write_text("")
    assert score_main(ARGUMENTS) == 0
    assert (tmp_path / "out/results.json").read_bytes() == before
    assert not any(path.exists() for path in left)
    (tmp_path / "out/results.json").unlink()
    left[0].write_text("{}\n")
    with pytest.raises(UserError, match=r"unfinished.*--overwrite"):
        score_main(ARGUMENTS)


def test_a_finished_run_is_aggregated_in_other_ways(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = {"first": ("S", None), "second": ("NS", "NS")}
    rows = [
        document("x. y.", id=name, claims=[Claim(id=i, text=i, label=of[i == "b"]) for i in "ab"])
        for name, of in labels.items()
    ]
    write_jsonl("documents.jsonl", rows)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "ids.txt").write_text("second\n")

    def precision(*options):
        assert score_main([*ARGUMENTS, *options]) == 0
        results = read_results("out/results.json").results
        chosen = [r for r in results if r.metric == "factual_precision" and r.variant is None]
        return [(r.value, r.failed) for r in chosen]

    assert precision() == [(0.5, 1)]
    plain, calls = (tmp_path / "out/results.json").read_bytes(), []
    monkeypatch.setattr(Run, "process", lambda *_, **__: calls.append(1))
    assert precision("--failed", "wrong") == [(0.25, 1)]
    assert precision("--exclude", "[second]") == precision("--exclude", "ids.txt") == [(1.0, 1)]
    with pytest.raises(UserError, match="no document has the id 'third'"):
        score_main([*ARGUMENTS, "--exclude", "[third]"])
    assert precision() == [(0.5, 1)]
    assert not calls
    assert (tmp_path / "out/results.json").read_bytes() == plain
