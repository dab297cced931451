"""The score command: it goes on after a kill, asks nothing twice, keeps configurations apart."""

import json
from pathlib import Path

import pytest

from eval.commands.score import main as score_main
from eval.decompose.by_sentence import BySentence, Failed
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline, Scored
from eval.prompting.prompts import Prompt
from eval.report.terminal import format_cost
from eval.run.run import Run
from records import Claim, Document, Passage, UserError, Verdict, read_results, write_jsonl
from tests.model_server import ModelServer

CONFIGS = Path(__file__).parents[2] / "configs/eval"

CONFIG = """
pipeline:
  decompose: {class_path: eval.decompose.given.Given}
  verify: [{class_path: eval.verify.labels.Labels}]
"""
ARGUMENTS = ["--config", "config.yaml", "--documents", "documents.jsonl", "--output", "out"]


class Halves(BySentence):
    """A user's own decomposer: a model splits a sentence at its semicolons."""

    def __init__(self, writer, prompt):
        self.models = {"splitter": writer}
        self.prompts = [Prompt(prompt)]

    def subclaims(self, places):
        asked = [self.prompts[0].messages(sentence=place.sentence) for place in places]
        answers = self.models["splitter"].answer(asked, temperature=0.0, max_new_tokens=10)
        return [
            Failed(answer.failed) if answer.failed else answer.text.split("; ")
            for (answer,) in answers
        ]


class Ask:
    """A user's own verifier that asks up to three times a claim."""

    judges_sets = False

    def __init__(self, writer):
        self.writer = writer

    def __call__(self, documents, claims, passages):
        flat = [c for own in claims for c in own]
        asked = [[{"role": "user", "content": f"Is it so? {claim.text}"}] for claim in flat]
        answers = iter(self.writer.answer(asked, temperature=0.0, max_new_tokens=4))
        return [
            [
                Verdict(claim=c.id, assessor="ask", label="failed", reason=a.failed)
                if (a := next(answers)[0]).failed
                else Verdict(claim=c.id, assessor="ask", label="supported")
                for c in own
            ]
            for own in claims
        ]


def document(text, **more):
    return Document(**{"id": "d", "topic": "Ann Lee", "text": text} | more)


DOCUMENTS = [
    document(f"Ann painted {n} birds; she sold them. She {verb}.", id=str(n))
    for n, verb in enumerate(("rested", "wrote", "rested", "sang"))
]
# Each text's own sentence, three distinct second ones, and their two or one claims to judge.
DISTINCT = (4 + 3) + (4 + 1 + 3)


@pytest.fixture
def prompt(tmp_path):
    (tmp_path / "halves.jinja").write_text("Split this. {{ sentence }}")
    return tmp_path / "halves.jinja"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.01)
    with ModelServer(
        lambda body: body["messages"][-1]["content"].removeprefix("Split this. ")
    ) as running:
        yield running


def asking(server, prompt, cache):
    writer = OpenAIServer(
        "m", server.url, retries=0, concurrency=1, cache=cache, prices=(1e6, 2e6), timeout_s=5
    )
    return Pipeline(Halves(writer, prompt), [Ask(writer)])


def test_score_command_writes_scores_and_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    claims = [Claim(id="a", text="x", label="S"), Claim(id="b", text="y", label="NS")]
    write_jsonl("documents.jsonl", [document("x. y.", claims=claims)])
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert score_main(ARGUMENTS) == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["results.json", "scored.jsonl"]
    results = read_results("out/results.json").results
    assert [r.value for r in results if r.metric == "factual_precision"] == [0.5]
    (row,) = map(json.loads, (tmp_path / "out/scored.jsonl").read_text().splitlines())
    assert [v["label"] for v in row["verdicts"]] == ["supported", "not_supported"]


def scored(pipeline, folder):
    with Run("score", pipeline, {}, folder) as run:
        return run.process("scored", pipeline.score, DOCUMENTS, Scored, chunk=2), run.usage()


def test_a_server_that_dies_costs_nothing_twice(server, prompt, tmp_path):
    whole, calm = scored(asking(server, prompt, None), tmp_path / "calm")
    assert [c.text for c in whole[0].claims] == [
        "Ann painted 0 birds",
        "she sold them.",
        "She rested.",
    ]
    assert len(server.answered) == DISTINCT
    server.answered.clear()

    # Dies in the second chunk, between its decomposition and its verdicts.
    server.faults.extend([None] * 12 + ["503"])
    with pytest.raises(UserError, match="503"):
        scored(asking(server, prompt, None), tmp_path / "rough")
    again, rough = scored(asking(server, prompt, None), tmp_path / "rough")
    assert again == whole
    assert len(server.answered) == DISTINCT, "no question was answered twice"
    assert rough == calm
    (row,) = rough
    assert row["cost"] == row["prompt_tokens"] + 2 * row["completion_tokens"] > 0
    assert (row["answers"], row["failed"]) == (18, 0), "within a chunk each is counted once"


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


def test_cost_counts_answers_and_tokens_of_the_language_model(server, prompt, tmp_path):
    pipeline = asking(server, prompt, None)
    with Run("score", pipeline, {}, tmp_path) as run:
        run.process("scored", pipeline.score, DOCUMENTS[:1], Scored)
        lines = format_cost(run.cost, 10)
    # Two sentences and three claims; the server counts 7 tokens per prompt and 3 per answer.
    assert lines[0].startswith("per document: 5.0 calls, 35.0 prompt tokens, 15.0 new tokens, ")
    assert lines[1].startswith("all 10 documents: 50.0 calls, 350.0 prompt tokens, ")


def test_two_documents_of_one_id_are_told_with_their_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = document("x. y.")
    write_jsonl("documents.jsonl", [one, one.model_copy(update={"id": "other"}), one])
    arguments = ["--pipeline.decompose", "eval.decompose.given.Given", "--output", "out"]
    arguments += ["--pipeline.verify+", "eval.verify.labels.Labels"]
    with pytest.raises(UserError, match=r"^documents\.jsonl: documents 1 and 3: field .id."):
        score_main(["--documents", "documents.jsonl", *arguments])
    with pytest.raises(UserError, match=r": a folder; expected a JSONL"):
        score_main(["--documents", str(tmp_path), *arguments])


def test_numbers_as_labels_are_read_as_the_option_states(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CONFIG)
    Path("pairs.csv").write_text(
        "premise,hypothesis,label\nIda wove.,Ida wove.,1\nIda wove.,Ida sang.,0\n"
    )
    arguments = ["--config", "config.yaml", "--documents", "pairs.csv", "--output", "out"]
    with pytest.raises(UserError, match=r"label: the number 1, .* pass --labels"):
        score_main(arguments)
    assert score_main([*arguments, "--labels", "{0: contradiction, 1: entailment}"]) == 0
    assert "precision 0.500" in capsys.readouterr().out


def test_a_folder_holds_one_configuration(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    claims = [Claim(id="a", text="x", label="S")]
    write_jsonl("documents.jsonl", [document("x. y.", claims=claims)])
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert score_main(ARGUMENTS) == 0
    before = (tmp_path / "out/results.json").read_bytes()
    said = capsys.readouterr().out
    assert said.split()[:6] == ["kind", "of", "text", "generator", "Core", "assessor"]
    assert score_main([*ARGUMENTS, "--chunk", "1"]) == 0, "done already, however it is cut"
    assert capsys.readouterr().out == said
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
