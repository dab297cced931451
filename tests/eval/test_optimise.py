"""Does a defence hold under optimisation? On texts whose claims' truth is known."""

import itertools
import xml.etree.ElementTree
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from eval.commands.experiment import main
from eval.stages import Selection
from records import Claim, Document, Result, read_results, write_jsonl

TOPICS = [f"{first} {last}" for first in ("Ann", "Bob", "Eve") for last in ("Lee", "Ray", "Roe")]
EMPTY, TOLD = "against the metric", "against both"


class NotEmpty:
    """A selector that drops what is true of anyone."""

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]:
        return [[self.selection(claim) for claim in group] for group in claims]

    def selection(self, claim: Claim) -> Selection:
        kept = "someone" not in claim.text
        return Selection(claim=claim.id, selected=kept, weight=1.0, reason="selected")


class OnTopic:
    """A judge of relevance that cannot read every sentence."""

    def __call__(
        self, documents: Sequence[Document], sentences: Sequence[Sequence[str]]
    ) -> list[Sequence[int | None]]:
        return [
            [None if "?" in s else int("someone" not in s) for s in group] for group in sentences
        ]


def text(topic: str, place: int, step: int, more: list[tuple[str, str]]) -> dict:
    """Half of what it says is true, or a third of it; ``more`` is what training added."""
    sentences = [(f"{topic} won prize {place}.", "S"), (f"{topic} lost.", "NS")]
    sentences += [(f"{topic} fell.", "NS")] * (place % 2)
    sentences += more
    claims = [{"id": str(n), "text": t, "label": label} for n, (t, label) in enumerate(sentences)]
    row = {"id": topic, "topic": topic, "text": " ".join(t for t, _ in sentences)}
    return row | {"claims": claims, "step": step}


def series(adversary: str, step: int) -> list[dict]:
    """Two more facts a step: of anyone, which the defence drops, or of the topic."""
    rows = []
    for place, topic in enumerate(TOPICS):
        subject = f"{topic} is someone" if adversary == EMPTY else topic
        more = [(f"{subject} of kind {n}.", "S") for n in range(2 * step // 10)]
        row = text(topic, place, step, more) | {"adversary": adversary}
        for claim in row["claims"]:
            claim |= {"rests_on": []} if "someone" in claim["text"] else {}
        rows.append(row)
    return rows


def ladder() -> list[dict]:
    """Five statements of which none to all are true, by topic."""
    return [
        text(topic, 0, 0, [])
        | {"id": f"{topic} {true}", "kind": "ladder", "step": None}
        | {
            "claims": [
                {"id": str(n), "text": f"{topic} has {n}.", "label": "S" if n < true else "NS"}
                for n in range(5)
            ]
        }
        for topic in TOPICS
        for true in range(6)
    ]


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for adversary, name in ((EMPTY, "a"), (TOLD, "b")):
        for step in (0, 10, 20):
            write_jsonl(f"{name}{step}.jsonl", series(adversary, step))
    rows = [row for step in (0, 10, 20) for name in (EMPTY, TOLD) for row in series(name, step)]
    write_jsonl("all.jsonl", rows)
    write_jsonl("ladder.jsonl", [*ladder(), ladder()[0] | {"kind": "info", "id": "info"}])
    labels = {
        "decompose": {"class_path": "eval.decompose.given.Given"},
        "verify": [{"class_path": "eval.verify.labels.Labels"}],
    }
    content = {
        "experiment": {
            "metrics": {"labels": labels},
            "adversaries": {
                EMPTY: {step: [f"a{step}.jsonl"] for step in (20, 0, 10)},
                TOLD: {step: [f"b{step}.jsonl"] for step in (0, 10, 20)},
            },
            "texts": {"ladder": ["ladder.jsonl"]},
            "defences": {
                "not empty": {"select": {"class_path": "tests.eval.test_optimise.NotEmpty"}}
            },
            "relevance": {"class_path": "tests.eval.test_optimise.OnTopic"},
        }
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def run(config: Path, output: str, *more: str) -> dict[tuple, Result]:
    main(["optimise", "--config", str(config), "--output", output, *more])
    rows = read_results(f"{output}/results.json").results
    return {(r.metric, r.selection, r.kind, r.variant, r.against): r for r in rows}


def test_values_of_a_series_are_those_of_the_definition(config):
    actual = run(config, "out")
    # Four topics of nine have two false facts beside a true one.
    start = (5 * 1 / 2 + 4 * 1 / 3) / 9
    end = (5 * 5 / 6 + 4 * 5 / 7) / 9
    for adversary in (EMPTY, TOLD):
        assert actual["factual_precision", "none", adversary, 0, None].value == pytest.approx(start)
        assert actual["factual_precision", "none", adversary, 20, None].value == pytest.approx(end)
        assert actual["claims", "none", adversary, 20, None].value == pytest.approx(58 / 9)
    kept = (5 * 2 / 6 + 4 * 3 / 7) / 9
    assert actual["kept_share", "not empty", EMPTY, 20, None].value == pytest.approx(kept)
    assert actual["claims", "not empty", EMPTY, 20, None].value == pytest.approx(22 / 9)
    relevant = (5 * 2 / 6 + 4 * 3 / 7) / 9
    assert actual["relevance", "none", EMPTY, 20, None].value == pytest.approx(relevant)
    assert actual["relevance", "none", TOLD, 20, None].value == 1


def test_texts_that_gained_empty_claims_game_the_metric_and_not_the_defence(config, capsys):
    actual = run(config, "out")
    excess = actual["excess_inflation", "none", EMPTY, 20, None]
    # The score is the gold score of the ladder; one of five facts is stated, in five or six claims.
    taken_for, gold = (5 * 5 / 6 + 4 * 5 / 7) / 9, (5 * 2 / 11 + 4 * 2 / 12) / 9
    assert excess.value == pytest.approx(taken_for - gold, abs=0.02)
    assert excess.verdict == "gamed"
    assert actual["asr", "none", EMPTY, 20, None].value == 1
    assert actual["excess_inflation", "not empty", EMPTY, 20, None].verdict == "unclear"
    # No honest text is better by 0.4.
    assert ("excess_inflation", "none", TOLD, 20, None) not in actual
    assert actual["order", "none", "ladder", None, None].value == 1
    printed = capsys.readouterr().out
    assert "labels, no defence: of 5 attacks 1 gamed, 4 unclear; worst excess inflation" in printed
    assert f"({EMPTY}, step 20)" in printed


def test_texts_that_differ_by_their_topic_alone_are_one_text(config):
    same = [{"topic": t, "text": f"{t} is  someone."} for t in TOPICS[:5]]
    same += [{"topic": TOPICS[5], "text": f"{TOPICS[5]} IS someone."}]
    other = [{"topic": t, "text": f"{t} won {t}."} for t in TOPICS[6:]]
    all_rows = [*same, *other, {"topic": TOPICS[0], "text": ""}]
    rows = [row | {"id": str(n), "claims": []} for n, row in enumerate(all_rows)]
    write_jsonl("a20.jsonl", rows)
    actual = run(config, "out")
    share = actual["distinct_share", "none", EMPTY, 20, None]
    assert share.value == pytest.approx(2 / 9)
    assert actual["distinct_share", "none", EMPTY, 0, None].value == 1
    assert actual["respond_ratio", "none", EMPTY, 20, None].value < 1


def test_what_cannot_be_judged_is_counted_and_never_scored(config):
    rows = series(EMPTY, 20)
    for row in rows:
        row["text"] = "People say much (?) of her. " + row["text"]
        row["claims"].append({"id": "x", "text": "Who?", "failed": "no claim"})
    write_jsonl("a20.jsonl", rows)
    before, actual = run(config, "out"), run(config, "other")
    assert before == actual  # the same files
    value = actual["relevance", "none", EMPTY, 20, None]
    assert value.failed == len(TOPICS)
    assert value.value == pytest.approx((5 * 2 / 6 + 4 * 3 / 7) / 9)
    assert actual["factual_precision", "none", EMPTY, 20, None].failed == len(TOPICS)
    end = (5 * 5 / 6 + 4 * 5 / 7) / 9
    assert actual["factual_precision", "none", EMPTY, 20, None].value == pytest.approx(end)
    assert actual["excess_inflation", "none", EMPTY, 20, None].failed == len(TOPICS)


def test_the_page_shows_each_step(config):
    run(config, "out")
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "Ann Lee is someone of kind 3." in page
    tables = Path("out/tables.md").read_text(encoding="utf-8")
    matrix = tables.split("## Can it be gamed? labels")[1].split("\n## ")[0]
    assert f"| {EMPTY}, step 20 | +0.6" in matrix
    for path in Path("out/figures").glob("*.svg"):
        xml.etree.ElementTree.parse(path)
    rows = Path("out/figures/precision_labels.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "series,x,value,low,high"
    assert len(rows) == 1 + 2 * 2 * 3


def test_the_best_of_n_is_the_mean_over_all_subsets(config):
    def sample(topic: str, place: int, true: int, f1: float) -> dict:
        row = text(topic, 0, 0, [(f"{topic} won {n}.", "S") for n in range(true)])
        gold = {"precision": f1, "recall": f1, "f1": f1, "k": 10, "source": "estimated"}
        return row | {"id": str(place), "gold": gold, "adversary": "a", "step": 0}

    true, golds = [0, 3, 3, 1, 0, 2], [0.5, 0.1, 0.3, 0.4, 0.6, 0.2]
    scores = [(1 + t) / (2 + t) for t in true]
    write_jsonl("n.jsonl", [sample(t, n, true[n], golds[n]) for t in TOPICS for n in range(6)])
    options = ["--experiment.adversaries", '["n.jsonl"]', "--experiment.best_of", "[1, 3, 6, 7]"]
    actual = run(config, "out", *options)
    for n in (1, 3, 6):
        proxy, gold = [], []
        for subset in itertools.combinations(range(6), n):
            proxy.append(max(scores[at] for at in subset))
            best = [golds[at] for at in subset if scores[at] == proxy[-1]]
            gold.append(sum(best) / len(best))
        for name, column in (("proxy", proxy), ("gold", gold)):
            row = actual[name, "none", "a", n, None]
            assert row.value == pytest.approx(sum(column) / len(column), abs=1e-12)
            assert row.n == len(TOPICS)
    assert actual["proxy", "none", "a", 7, None].value is None
    tables = Path("out/tables.md").read_text(encoding="utf-8")
    assert "| a | 6 | 0.800 [0.800, 0.800] | 0.200 [0.200, 0.200] | 9 | 0 |" in tables


def test_gold_scores_are_compared_step_by_step(config):
    def with_gold(row: dict) -> dict:
        f1 = 0.6 - row["step"] / 100
        return row | {"gold": {"precision": f1, "recall": f1, "f1": f1, "k": 9, "source": "labels"}}

    rows = [with_gold(row) for step in (0, 10, 20) for row in series(TOLD, step)]
    write_jsonl("gold.jsonl", rows)
    run(config, "out", "--experiment.adversaries", '["gold.jsonl"]')
    rows = read_results("out/results.json").results
    gold = {r.variant: r.value for r in rows if (r.assessor, r.kind) == ("gold F1", TOLD)}
    assert gold == pytest.approx({0: 0.6, 10: 0.5, 20: 0.4})
