"""The experiment that chooses Core's settings: one scoring, two halves of the topics, its page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from components.encoding import Pair
from eval.__main__ import main
from eval.commands.report import build_report
from eval.decompose.given import Given
from eval.experiments.core.core_settings import (
    HELD_BACK,
    TUNING,
    CoreSettings,
    SettingMeasures,
    assign_halves,
    best_setting,
    compute_measures,
)
from eval.experiments.core.informativeness import TextFile
from eval.experiments.core.labelled_texts import LabelledText, read_texts
from eval.experiments.experiment import half_of
from eval.pipeline import Pipeline
from eval.select.core import Core
from eval.verify.labels import Labels
from records import (
    Claim,
    Document,
    UserError,
    read_results,
    write_jsonl,
)

TOPICS = ("Ann", "Bob", "Cy", "Dee", "Eve", "Flo")
ASKED: list[Pair] = []


class Graded:
    """Models whose answers are a hash of the pair: nothing is equal, every setting differs."""

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        ASKED.extend(pairs)
        p = np.array([grade("entails", *pair) ** 2 for pair in pairs])
        return np.stack([p, 0.8 * (1 - p), 0.2 * (1 - p)], axis=1).reshape(-1, 3)

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        ASKED.extend(("likely", claim + premise) for premise, claim in pairs)
        return np.array([0.7 * grade("likely", *pair) for pair in pairs])


def grade(*words: str) -> float:
    total = sum((place + 7) * ord(letter) for place, letter in enumerate("".join(words)))
    return (total % 997) / 997


def texts_of(kind, claims=4, topics=TOPICS, label=None):
    documents = []
    for topic in topics:
        text = f"{topic} {kind}."
        rows = [
            Claim(id=f"c{n}", text=f"{topic} {kind} {n}.", source=text, label=label)
            for n in range(claims)
        ]
        documents.append(
            Document(id=f"{kind}-{topic}", topic=topic, text=text, kind=kind, claims=rows)
        )
    return documents


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ASKED.clear()
    labelled = texts_of("honest", label="S")
    labelled[0].claims[0] = labelled[0].claims[0].model_copy(update={"label": "NS"})
    write_jsonl("honest.jsonl", labelled)
    write_jsonl("info.jsonl", texts_of("info"))
    return {"honest": TextFile(file="honest.jsonl"), "info": TextFile(file="info.jsonl")}


def experiment(files, **options):
    model = Graded()
    return CoreSettings(files, model, model, ["{topic} is.", "{topic} was."], **options)


def test_every_setting_is_selected_from_one_scoring(files, tmp_path):
    grid = {"p": (0.0, 0.5, 1.0), "epsilon": (0.001, 0.8), "entail_threshold": (None, 0.8)}
    run = experiment(files, **grid).run(tmp_path / "run", {})
    assert max(Counter(ASKED).values()) == 1, "no pair is asked for twice"
    settings = run.provenance["settings"]
    assert len(settings) == 12
    actual = {(r.metric, r.kind, r.variant, r.group): r for r in run.results}
    honest_texts = read_texts("honest.jsonl", "honest", None)
    half = assign_halves([*honest_texts, *read_texts("info.jsonl", "info", None)], 0)
    values = set()
    for number, setting in enumerate(settings):
        core = Core(Graded(), Graded(), ["{topic} is.", "{topic} was."], **setting)
        for name in (TUNING, HELD_BACK):
            half_texts = [t for t in honest_texts if half[t.document.topic] == name]
            chosen = core([t.document for t in half_texts], [t.claims for t in half_texts])
            share = np.mean([np.mean([s.selected for s in group]) for group in chosen])
            row = actual["kept_share", "honest", number, name]
            assert row.value == pytest.approx(share)
            assert (row.n, row.selection) == (len(half_texts), "core")
            values.add(row.value)
    assert len(values) > 4, "the settings differ"


def text(kind, topic, number=0):
    document = Document(id="d", topic=topic, text="x")
    return LabelledText(id=f"{kind}{topic}{number}", kind=kind, document=document, claims=[])


def selected(name, shares, plain=None):
    precision = [plain] * len(shares)
    return SettingMeasures(id=name, kept_share=shares, precision=precision, plain=plain, failed=0)


def rows(shares, kind, plain=None):
    return [
        (text(kind, f"t{place}"), selected(f"{kind}{place}", shares_of_text, plain))
        for place, shares_of_text in enumerate(shares)
    ]


def test_the_margin_is_to_the_worst_of_the_others():
    judged_rows = rows([[0.9, 0.6], [0.7, 0.6]], "honest")
    judged_rows += rows([[0.8, 0.1], [0.8, 0.1]], "info") + rows(
        [[0.2, 0.3], [0.2, 0.3]], "repetitive"
    )
    actual = compute_measures(judged_rows, ["honest", "info", "repetitive"], "honest", seed=0)
    margins = [actual["margin_kept_share", "honest", number]["value"] for number in (0, 1)]
    assert margins == pytest.approx([0.0, 0.3])
    assert actual["kept_share", "honest", 0]["value"] == pytest.approx(0.8)
    assert actual["margin_precision", "honest", 0]["value"] is None
    assert best_setting(actual, "margin_kept_share", 2) == 1
    assert best_setting(actual, "margin_precision", 2) is None
    equal = rows([[0.5, 0.9, 0.9]] * 2, "honest") + rows([[0.5, 0.1, 0.1]] * 2, "info")
    actual = compute_measures(equal, ["honest", "info"], "honest", seed=0)
    assert best_setting(actual, "margin_kept_share", 3) == 1, "the first of equal settings"


def test_setting_is_chosen_on_the_tuning_half_only(files, tmp_path, monkeypatch):
    """Of the topics held back the other setting would be the better one."""
    half = assign_halves(
        [t for kind, s in files.items() for t in read_texts(s.file, kind, None)], seed=0
    )

    def select_by_half(self, texts):
        shares = [float((half[t.document.topic] == TUNING) == (t.kind == "honest")) for t in texts]
        return [selected(t.id, [s, 1 - s]) for t, s in zip(texts, shares, strict=True)]

    monkeypatch.setattr(CoreSettings, "_select", select_by_half)
    run = experiment(files, p=(0.0,), epsilon=(0.1, 0.8), entail_threshold=(None,)).run(
        tmp_path / "run", {}
    )
    assert run.provenance["chosen"] == 0
    margin = {(r.variant, r.group): r.value for r in run.results if r.metric == "margin_kept_share"}
    assert margin == {(0, TUNING): 1, (1, TUNING): -1, (0, HELD_BACK): -1, (1, HELD_BACK): 1}


def test_scored_jsonl_provides_claims_and_verdicts(files, tmp_path):
    documents = [*texts_of("normal", label="S"), *texts_of("info", label="NS")]
    write_jsonl("scored.jsonl", Pipeline(Given(), [Labels()]).score(documents))
    sources = {
        "honest": TextFile(file="scored.jsonl", kind="normal"),
        "info": TextFile(file="scored.jsonl", kind="info"),
    }
    options = {"p": (0.0,), "epsilon": (0.001,), "entail_threshold": (0.9,)}
    run = experiment(sources, choose_by="precision", **options).run(tmp_path / "run", {})
    plain = {
        (r.kind, r.group): (r.value, r.n)
        for r in run.results
        if (r.metric, r.selection) == ("precision", "none")
    }
    assert plain == {(k, h): (v, 3) for k, v in (("honest", 1), ("info", 0)) for h in (TUNING, HELD_BACK)}  # noqa: E501  # fmt: skip
    with pytest.raises(UserError, match="assessor: expected one of labels"):
        read_texts("scored.jsonl", "honest", "nli")


def test_a_selection_of_which_no_claims_truth_is_known_has_no_precision(files, tmp_path):
    grid = {"p": (0.0,), "epsilon": (0.3,), "entail_threshold": (None,)}
    labelled = texts_of("honest", label="S")
    core = Core(Graded(), Graded(), ["{topic} is.", "{topic} was."], p=0.0, epsilon=0.3)
    selections = core(labelled, [text.claims for text in labelled])
    selected = [[selection.selected for selection in group] for group in selections]
    place = next(n for n, group in enumerate(selected) if set(group) == {True, False})
    # Of this text's claims those alone have a label that Core leaves out.
    unlabelled = [
        claim.model_copy(update={"label": None}) if kept else claim
        for claim, kept in zip(labelled[place].claims, selected[place], strict=True)
    ]
    labelled[place] = labelled[place].model_copy(update={"claims": unlabelled})
    write_jsonl("honest.jsonl", labelled)
    file = experiment(files, **grid).run(tmp_path / "run", {})
    half = half_of(TOPICS[place], 0)
    name = HELD_BACK if half == "test" else TUNING
    rows = {(r.metric, r.kind, r.variant, r.group): r for r in file.results}
    plain, kept = (rows["precision", "honest", number, name] for number in (None, 0))
    other_places = [n for n, topic in enumerate(TOPICS) if half_of(topic, 0) == half and n != place]
    assert (plain.value, plain.n) == (1.0, len(other_places) + 1)
    assert (kept.value, kept.n) == (
        np.mean([any(selected[n]) for n in other_places]),
        len(other_places),
    )


def test_the_command_and_its_page(files, tmp_path, capsys, relation, unli):
    engines = [
        {"class_path": f"eval.models.encoder.{name}", "init_args": {"checkpoint": str(path)}}
        for name, path in (("Entailment", relation), ("Unli", unli))
    ]
    config = {
        "texts": {kind: source.model_dump() for kind, source in files.items()},
        "entailment": engines[0],
        "unli": engines[1],
        "bleached": ["{topic} is."],
        "p": [0.0, 1.0],
        "epsilon": [0.001, 0.8],
        "entail_threshold": [None, 0.5],
    }
    (tmp_path / "config.yaml").write_text(json.dumps({"experiment": config}))
    command = ["experiment", "core_settings", "--config", "config.yaml", "--output", "run"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "chosen by kept_share: p = " in printed
    file = read_results(tmp_path / "run/results.json")
    assert {row.variant for row in file.results} == {None, *range(8)}
    page = build_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "The chosen setting" in page
    assert "All settings" in page
