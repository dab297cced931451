"""The FactReasoner experiment: its tables and tests, and the picture of a document's graph."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from components.statistics import bootstrap
from eval.commands.report import build_report
from eval.decompose.given import Given
from eval.experiments import quantities
from eval.experiments.factreasoner.factreasoner import FactReasoner as Experiment
from eval.report.render import terminal_summary
from eval.verify.factreasoner.stage import FactReasoner
from eval.verify.majority import Majority
from records import (
    Verdict,
    write_jsonl,
)

ATTACK = "</title><script>alert(1)</script>"
LABELS = {"+": "supported", "-": "not_supported", "!": "contradicted", "?": "undecided"}


class Marks:
    """A passage entails, or contradicts, the claims whose word stands behind + or - in it."""

    def __init__(self, sure=0.9):
        self.sure, self.calls = sure, 0

    def relations(self, pairs):
        self.calls += 1
        return np.asarray([self._row(*pair) for pair in pairs]).reshape(-1, 3)

    def _row(self, premise, hypothesis):
        rest = (1 - self.sure) / 2
        for place, sign in ((0, "+"), (2, "-")):
            if f"{sign}{hypothesis.split()[0]}" in premise.split():
                row = [rest, rest, rest]
                row[place] = self.sure
                return row
        return [rest, self.sure, rest]


class Script:
    """Gives each claim of a document the label that stands for it; x has failed."""

    judges_sets = False

    def __init__(self, script, dies_at=0):
        self.script, self.dies_at, self.calls = script, dies_at, 0

    def __call__(self, documents, claims, passages):
        self.calls += 1
        if self.calls == self.dies_at:
            raise KeyboardInterrupt
        return [
            [
                self._verdict(claim, mark)
                for claim, mark in zip(group, self.script[d.id], strict=True)
            ]
            for d, group in zip(documents, claims, strict=True)
        ]

    def _verdict(self, claim, mark):
        if mark == "x":
            return Verdict(claim=claim.id, assessor="s", label="failed", reason="no answer")
        return Verdict(claim=claim.id, assessor="s", label=LABELS[mark])


def document(name, labels, passages):
    """A document of claims "w0 …", "w1 …" with their labels; all share the passages."""
    ids = [f"c{number}" for number in range(len(passages))]
    claims = [
        {"id": f"a{i}", "text": f"w{i} {ATTACK}", "label": label, "contexts": ids}
        for i, label in enumerate(labels)
    ]
    texts = [{"id": i, "text": text} for i, text in zip(ids, passages, strict=True)]
    return {"id": name, "topic": name, "text": "Some text.", "claims": claims, "passages": texts}


@pytest.fixture
def sets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(quantities, "bootstrap", partial(bootstrap, resamples=5))
    rows = [
        document("one", ["S", "NS"], ["+w0 -w1", "+w0"]),
        document("two", ["S", "S", "NS", "NS"], ["+w0 +w1", "-w2 and more"]),
        document("three", ["S", "S"], ["+w0", "-w0", "+w1"]),
    ]
    write_jsonl("bios.jsonl", rows)
    return {"bios": "bios.jsonl"}


A = {"one": "+-", "two": "++-!", "three": "+?"}
B = {"one": "++", "two": "++++", "three": "xx"}


def experiment(sets, assessors=None, **more):
    default_assessors = {"A": Script(A), "B": Script(B)}
    return Experiment(sets, assessors or default_assessors, decompose=Given(), **more)


def value_of(file, assessor, metric, group="given", against=None, variant=None):
    place = (assessor, metric, group, against, variant)
    (row,) = [
        r for r in file.results if (r.assessor, r.metric, r.group, r.against, r.variant) == place
    ]
    return row.value, row.n, row.failed


def test_the_tables_by_hand(sets):
    file = experiment(sets).run(Path("run"), {})
    assert file.provenance["k"] == {"bios": 2}
    assert value_of(file, "A", "precision") == (0.5, 3, 0)
    assert value_of(file, "A", "precision", variant="sd") == (0, 3, 0)
    assert value_of(file, "B", "precision") == (1, 2, 2)
    assert [value_of(file, "A", m)[0] for m in ("supported", "not_supported")] == [4 / 3, 2 / 3]
    assert value_of(file, "A", "contradicted")[0] == value_of(file, "A", "undecided")[0] == 1 / 3
    # F1@2 of 1/2 and 1/2, 1/2 and 1, 1/2 and 1/2.
    assert value_of(file, "A", "f1_at_k")[0] == pytest.approx((0.5 + 2 / 3 + 0.5) / 3)
    # F1 of the class supported: 1, 1, 2/3; MAE 0, 0, 1/2. B: 2/3, 2/3, and no value.
    assert value_of(file, "A", "f1")[0] == pytest.approx((1 + 1 + 2 / 3) / 3)
    assert value_of(file, "A", "f1", variant="sd")[0] == pytest.approx(
        np.std([1, 1, 2 / 3], ddof=1)
    )
    assert value_of(file, "A", "precision_mae")[0] == pytest.approx(0.5 / 3)
    assert value_of(file, "B", "f1") == (pytest.approx(2 / 3), 2, 2)
    # B supports all six claims that it judged, three of them rightly.
    assert value_of(file, "B", "f1_micro") == (pytest.approx(2 * 3 / (2 * 3 + 3)), 2, 2)
    assert value_of(file, "B", "accuracy_micro")[0] == 0.5
    assert value_of(file, "A", "f1_micro") == (pytest.approx(2 * 4 / (2 * 4 + 1)), 3, 0)
    assert value_of(file, "A", "balanced_accuracy")[0] == pytest.approx((4 / 5 + 1) / 2)
    assert value_of(file, "A", "accuracy_micro")[0] == pytest.approx(7 / 8)
    # The document that failed for B is in no test.
    assert value_of(file, "A", "accuracy", against="B") == (0.5, 2, 1)
    assert value_of(file, "A", "precision_mae", against="B", variant="p") == (0, 2, 1)
    assert value_of(file, "B", "precision", against="A", variant="p")[0] == 0
    assert value_of(file, "B", "precision", against="A", variant="p_holm")[0] == 0
    assert value_of(file, "A", "precision", against="B", variant="p_holm")[0] == 1
    assert value_of(file, "A", "balanced_accuracy", against="B") == (0.5, 2, 2)
    assert "precision A 0.500" in " ".join(terminal_summary(Experiment.page, file).split())
    build_report("run")
    # Of B's three documents two have these values; A has all in all three.
    (scores,) = (t for t in Experiment.page.tables if t.title == "Scores")
    table = scores.of(file.results)
    notes = {(row[2], row[3]): dict(zip(table.head, row, strict=True)) for row in table.rows}
    assert (notes["B", ""]["Pr"].note, notes["B", ""]["n"]) == ("n = 2", "3")
    assert (notes["A", ""]["Pr"].note, notes["A", ""]["n"]) == ("", "3")
    assert Path("run/tables.csv").read_text().count("\n") == 1 + len(file.results)


class Sure(Script):
    """Gives each claim of a document its probability; ``None`` has failed."""

    def _verdict(self, claim, p):
        if p is None:
            return Verdict(claim=claim.id, assessor="s", label="failed", reason="no answer")
        label = "supported" if p > 0.5 else "not_supported"
        return Verdict(claim=claim.id, assessor="s", label=label, p=p)


def test_probabilities_are_compared_and_tested_by_hand(sets):
    p = {"one": (0.9, 0.2), "two": (0.8, 0.6, 0.4, 0.1), "three": (0.7, 1.0)}
    q = {"one": (0.5, 0.4), "two": (0.3, 0.6, 0.4, 0.3), "three": (None, 0.6)}
    file = experiment(sets, {"P": Sure(p), "Q": Sure(q)}).run(Path("run"), {})
    # Squared errors of the seven claims that both judged: S, NS; S, S, NS, NS; S.
    errors = 0.1**2 + 0.2**2 + 0.2**2 + 0.4**2 + 0.4**2 + 0.1**2 + 0
    theirs = 0.5**2 + 0.4**2 + 0.7**2 + 0.4**2 + 0.4**2 + 0.3**2 + 0.4**2
    brier = value_of(file, "P", "brier", against="Q")
    assert brier == (pytest.approx((errors - theirs) / 7), 3, 1)
    # Eq. 1 of each text; the smaller is the better, so that it is P that is tested to be less.
    e = [
        [np.mean([-x * np.log10(x) for x in column if x is not None]) for column in each.values()]
        for each in (p, q)
    ]
    assert value_of(file, "P", "e_measure", against="Q")[0] == pytest.approx(
        np.mean(e[0]) - np.mean(e[1])
    )
    less = ttest_rel(*e, alternative="less").pvalue
    assert 0 < less < 0.5
    actual = value_of(file, "P", "e_measure", against="Q", variant="p")
    assert actual == (pytest.approx(less), 3, 0)
    # Two tests are the family: the smaller of two is doubled.
    holm = value_of(file, "P", "e_measure", against="Q", variant="p_holm")
    assert holm[0] == pytest.approx(2 * less)


def test_relations_are_swapped_and_challengers_are_tested_against_the_others(sets):
    assessors = {"FR": FactReasoner(Marks()), "vote": Majority(Marks()), "A": Script(A)}
    swapped = {"sure": Marks(0.95), "unsure": Marks(0.4)}
    more = {"relations": swapped, "challengers": ["FR"], "k": 3}
    file = experiment(sets, assessors, **more).run(Path("run"), {})
    names = [*(f"FR ({r}) fr{v}" for r in swapped for v in (1, 2, 3)), "vote (sure)"]
    names += ["vote (unsure)", "A"]
    means = [r for r in file.results if (r.against, r.variant) == (None, None)]
    assert [r.assessor for r in means if r.metric == "precision"] == names
    # Nothing is said to be related at 0.4: E of 0.5 everywhere.
    assert value_of(file, "FR (unsure) fr3", "e_measure")[0] == pytest.approx(0.150515, abs=1e-6)
    assert value_of(file, "FR (unsure) fr3", "undecided")[0] == pytest.approx(8 / 3)
    # "three": one context for its first claim, one against it.
    assert value_of(file, "FR (sure) fr2", "supported")[0] == pytest.approx((1 + 2 + 1) / 3)
    assert value_of(file, "FR (sure) fr2", "brier")[0] < 0.1
    assert file.provenance["k"] == {"bios": 3}
    tests = [r for r in file.results if (r.metric, r.variant) == ("f1", "p")]
    pairs = [(a, b) for a in names[:6] for b in names[6:]]
    assert [(r.assessor, r.against) for r in tests] == pairs
    assert "A" not in {r.assessor for r in means if r.metric == "e_measure"}


def test_no_evidence_option_gives_all_assessors_the_same_label(sets):
    text = document("one", ["S", "NS"], ["+w0"])
    text["claims"][1]["contexts"] = []
    silent = {"id": "no", "topic": "no", "text": "I am sorry, I do not know.", "claims": []}
    write_jsonl("alone.jsonl", [text, silent | {"passages": []}])
    assessors = {"FR": FactReasoner(Marks(), versions=[1, 2]), "vote": Majority(Marks())}

    def actual(name, **more):
        sets = {"alone": "alone.jsonl"}
        file = experiment(sets, assessors, k=1, **more).run(Path(name), {"name": name})
        names = ("FR fr1", "FR fr2", "vote")
        return file, [value_of(file, assessor, "precision")[::2] for assessor in names]

    assert actual("own")[1] == [(0.5, 0), (0.5, 0), (1, 1)], "by default denominators differ"
    file, values = actual("undecided", no_evidence="undecided")
    assert values == [(0.5, 0)] * 3
    assert value_of(file, "vote", "undecided")[0] == 1
    assert actual("failed", no_evidence="failed")[1] == [(1, 1)] * 3
    # The text that does not respond counts 0, or is left out, under its own name.
    assert value_of(file, "vote", "f1_at_k")[0] == pytest.approx(2 / 3 / 2)
    assert value_of(file, "vote", "f1_at_k_responding")[:2] == (pytest.approx(2 / 3), 1)


def test_brier_of_texts_is_a_mean_and_sd_over_texts(sets):
    file = experiment(sets, {"FR": FactReasoner(Marks(), versions=[1])}).run(Path("run"), {})
    texts = []
    for line in Path("run/scored.jsonl").read_text().splitlines():
        row = json.loads(line)
        true = {claim["id"]: claim["label"] == "S" for claim in row["claims"]}
        texts.append(np.mean([(v["p"] - true[v["claim"]]) ** 2 for v in row["verdicts"]]))
    assert len(set(texts)) == 3
    assert value_of(file, "FR fr1", "brier_of_texts")[:2] == (pytest.approx(np.mean(texts)), 3)
    sd = value_of(file, "FR fr1", "brier_of_texts", variant="sd")[0]
    assert sd == pytest.approx(np.std(texts, ddof=1))
    assert value_of(file, "FR fr1", "brier")[0] != pytest.approx(np.mean(texts)), "over claims"


def test_the_claims_of_a_text_that_does_not_respond_are_in_no_measure(sets):
    assessors = {"FR": FactReasoner(Marks(), versions=[1])}
    alone = experiment(sets, assessors, k=2).run(Path("alone"), {})
    refused = document("four", ["NS", "S"], ["+w0 -w1"]) | {"responds": False}
    rows = Path("bios.jsonl").read_text().splitlines()
    write_jsonl("bios.jsonl", [*map(json.loads, rows), refused])
    file = experiment(sets, assessors, k=2).run(Path("run"), {})
    measures = ("e_measure", "graded_precision", "f1", "accuracy_micro", "brier", "ece")
    for metric in (*measures, "brier_of_texts", "precision_mae"):
        actual = value_of(file, "FR fr1", metric)
        assert actual == value_of(alone, "FR fr1", metric), metric
        assert actual[0] is not None
    # Its recall is 0 and counts.
    assert value_of(file, "FR fr1", "recall_at_k")[1] == 4
