"""The robustness page: every number of the run in its tables, and texts that stay inert."""

import csv

from eval.commands.report import build_report
from eval.experiments.robustness.robustness_grid import Judged, Row
from eval.metrics.document import score_document
from eval.pipeline import score_selected
from eval.stages import Selection
from records import (
    Claim,
    Document,
    Result,
    ResultFile,
    Verdict,
    write_jsonl,
    write_results,
    write_text,
)
from tests.eval.html_page import Page

ATTACK = "</script><script>alert('gamed')</script><img src=x onerror=alert(1)>"
LOG = "epoch,step,train/loss,dev/loss,dev/pearson\n0,9,0.7,,\n0,19,,0.5,0.41\n0,29,0.6,,\n"


def row(metric, value, assessor="nli", selection="none", kind="normal", half=0.05, **more):
    interval = None if value is None else (value - half, value + half)
    given = {"generator": "all", "domain": "biographies", "n": 24, "failed": 3, "ci95": interval}
    given |= {"config_hash": "c0ffee", **more}
    own = {"assessor": assessor, "selection": selection, "kind": kind, "value": value}
    return Result(metric=metric, **own, **given)


def rows_of(assessor="nli", honest=0.5, gains=(0.3, -0.02), cost=0.02, defences=("none", "core")):
    """One attack, without a defence and with it."""
    for defence, gain in zip(defences, gains, strict=True):
        own = {"assessor": assessor, "selection": defence}
        for kind, value in (("normal", honest), ("info", honest + gain)):
            yield row("factual_precision", value, kind=kind, **own)
            yield row("claims", 12.4, kind=kind, **own)
            if defence != "none":
                yield row("kept_share", 0.7 if kind == "normal" else 0.04, kind=kind, **own)
        yield row("gain", gain, kind="info", against="normal", **own)
        yield row("gamed", float(gain > 0.05), kind="info", against="normal", **own)
        if defence != "none":
            yield row("cost", cost, against="none", **own)


def curve_rows(assessor="nli"):
    for defence, values, least in (("none", (0.4, 0.55, 0.8), 4), ("core", (0.4, 0.4, 0.4), None)):
        own = {"assessor": assessor, "selection": defence, "kind": "appended"}
        yield row("factual_precision", 0.6, variant="clean", **own)
        for k, value in zip((0, 2, 4), values, strict=True):
            yield row("factual_precision", value, variant=k, **own)
            yield row("gain", value - 0.6, variant=k, against="clean", **own)
        yield row("break_even", least, against="clean", **own)


def text(number=0, kind="normal", words="Ann Lee was a painter.", generator="kb", **more):
    """A kept claim, one that repeats it, and one that failed."""
    document = Document(
        id=f"d{number}", topic=words, text=words, kind=kind, generator=generator, bin="rare"
    )
    claims = [
        Claim(id="c0", text=words),
        Claim(id="c1", text=f"{words} {number}"),
        Claim(id="c2", text="Sure!", failed=f"no list: {words}"),
    ]
    weighed = {"weight": 1.25, "document_entailment": 0.97}
    selections = [
        Selection(claim="c0", selected=True, reason="selected", **weighed),
        Selection(claim="c1", selected=False, weight=-0.5, reason="duplicate", duplicate_of="c0"),
    ]
    judged = {"assessor": "nli", "name": "default"}
    verdicts = [
        Verdict(claim="c0", label="supported", p=0.75, **judged),
        Verdict(claim="c1", label="not_supported", p=0.25, **judged),
    ]
    scores = [
        score_document(document, claims, verdicts, None),
        score_selected(document, claims, verdicts, selections, 10, "core"),
    ]
    own = Judged(
        claims=claims,
        selections={"core": selections},
        verdicts=verdicts,
        again={},
        scores=scores,
    )
    return Row(document=document, metrics={"nli": own} | more)


def write_run(folder, results, texts=(), training=(), **provenance):
    folder.mkdir(exist_ok=True)
    given = {
        "config": {"seed": 7},
        "versions": {"torch": "2.13.0"},
        "controls": [],
        "against": "normal",
        "targets": [
            {"kind": "info", "selection": "core", "at_most": 0.1, "at_least": 0.0},
            {"kind": "normal", "selection": "core", "at_most": 1.0, "at_least": 0.8},
        ],
    } | provenance
    file = ResultFile(experiment="robustness", provenance=given, results=list(results))
    write_results(folder / "results.json", file)
    if texts:
        write_jsonl(folder / "texts.jsonl", texts)
    for name, content in training:
        write_text(folder / "training" / f"{name}.csv", content)
    return folder


def page_of(folder):
    return Page(build_report(folder).read_text(encoding="utf-8"))


def words_of(results, tmp_path, **provenance):
    return page_of(write_run(tmp_path / "run", results, **provenance)).text


def table_of(folder, title):
    """A table of ``tables.md``: a dictionary for each row."""
    section = (folder / "tables.md").read_text("utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def test_a_sentence_for_each_metric_has_every_gain_with_its_interval(tmp_path):
    second = [r for r in rows_of("two") if (r.metric, r.selection) != ("gain", "core")]
    results = [*rows_of(), *second, row("gain", None, "two", "core", "info", against="normal")]
    found = words_of(results, tmp_path, skipped=["texts: rare: on 3 of 10 topics"])
    assert (
        "nli: info texts gain +0.30 [+0.25, +0.35]; with core -0.02 [-0.07, +0.03]. "
        "two: info texts gain +0.30 [+0.25, +0.35]; with core not measured. "
        "Left out: texts: rare: on 3 of 10 topics."
    ) in found


def test_tables_have_each_metric_with_its_interval_n_and_failures(tmp_path):
    results = [*rows_of(), *rows_of("nli, F1@10"), *curve_rows()]
    for name, value in (("failed_supported", 0.6), ("failed_not_supported", 0.45)):
        results.append(row("factual_precision", value, variant=name))
    results += [row("pearson", 0.9, against="core"), row("label_correlation", 0.8)]
    results += [row("supported_if_true", 0.9), row("supported_if_false", 0.2)]
    results += [r.model_copy(update={"bin": "rare"}) for r in rows_of(gains=(0.4, 0.1))]
    folder = write_run(tmp_path / "run", results)
    build_report(folder)
    sizes = {"n": "24", "failed": "3"}

    def first(name):
        return table_of(folder, name)[0]

    gain = first("Gain of attacks")
    assert gain.items() >= sizes.items()
    assert gain["Gain, no defence"] == "0.300 [0.250, 0.350] gamed"
    assert gain["Gain, core"] == "-0.020 [-0.070, 0.030] not gamed"
    assert "0.020 [-0.030, 0.070]" in first("Cost on honest texts")["Cost, core"]
    assert first("Break-even")["no defence"].endswith("overtaken")
    assert first("Break-even")["core"] == "– never"
    score = first("Score by kind of text")
    assert score["Score, no defence"] == "0.500 [0.450, 0.550]"
    assert score["Subclaims, core"].startswith("12.4")
    assert first("Bounds of the score by failures")["None supported"].startswith("0.450")
    kept = {r["Kind of text"]: r["core"] for r in table_of(folder, "What a defence keeps")}
    assert kept["info"] == "4.0 % [-1.0, 9.0] reached: 0 to 10 %"
    assert kept["normal"] == "70.0 % [65.0, 75.0] missed: 80 to 100 %"
    clean, *steps = table_of(folder, "Corrupted texts with sentences appended")
    assert clean["Score, no defence"].startswith("0.600")
    assert [r["k"] for r in steps] == ["0", "2", "4"]
    assert steps[-1]["Over the clean twins, no defence"].startswith("0.200")
    assert first("Verdicts against known labels")["False claims"].startswith("20.0 %")
    agreement = first("Agreement of metrics and of defences")
    assert (agreement["With"], agreement["Pearson"]) == ("core", "0.900 [0.850, 0.950]")
    rare = table_of(folder, "By frequency")
    assert {r["Frequency"] for r in rare} == {"rare"}
    assert any("0.400" in r["Gain, no defence"] for r in rare)


def test_controls_are_marked(tmp_path):
    control = [r for r in rows_of(defences=("none", "bad")) if r.selection == "bad"]
    results = [*rows_of(), *control, *rows_of("guess.grouped")]
    folder = write_run(tmp_path / "run", results, controls=["bad", "guess"])
    build_report(folder)
    gains = {r["Metric"]: r for r in table_of(folder, "Gain of attacks")}
    assert set(gains) == {"nli", "guess.grouped (control)"}
    assert "-0.020" in gains["nli"]["Gain, bad (control)"]
    kept = table_of(folder, "What a defence keeps")
    assert any("reached" in r["bad (control)"] for r in kept)


def test_figures_are_files_as_well(tmp_path):
    texts = [text(n, kind) for n, kind in enumerate(["normal", "normal", "info"])]
    logs = [("unli", LOG), ("empty", "step\n")]
    folder = write_run(tmp_path / "run", [*rows_of(), *curve_rows()], texts, logs)
    build_report(folder)
    points = {}
    for path in (folder / "figures").glob("*.csv"):
        with open(path, encoding="utf-8", newline="") as table:
            points[path.stem] = list(csv.DictReader(table))
        assert path.with_suffix(".svg").is_file()
    (curve,) = (rows for name, rows in points.items() if name.startswith("corrupted"))
    lines = {(p["series"], p["x"]): p["value"] for p in curve}
    assert [lines["no defence", k] for k in "024"] == ["0.4", "0.55", "0.8"]
    assert {lines["no defence, clean twins", k] for k in "024"} == {"0.6"}
    (boxes,) = (rows for name, rows in points.items() if name.endswith("by_kind_nli"))
    values = [(p["series"], p["x"], p["value"]) for p in boxes]
    assert values.count(("no defence", "normal", "0.5")) == 2
    assert values.count(("core", "info", "1.0")) == 1
    loss, measure = (points[f"training_of_unli_{name}"] for name in ("loss", "dev_pearson"))
    assert [(p["series"], p["value"]) for p in loss] == [
        ("train/loss", "0.7"),
        ("train/loss", "0.6"),
        ("dev/loss", "0.5"),
    ]
    assert [p["value"] for p in measure] == ["0.41"]


def test_hostile_text_stays_text_and_equal_runs_give_equal_bytes(tmp_path):
    results = [*rows_of(), *rows_of(ATTACK), *curve_rows()]
    results += [r.model_copy(update={"kind": ATTACK}) for r in [*rows_of(), *curve_rows()]]
    texts = [text(0, ATTACK, ATTACK, ATTACK), text(1), text(2, "info", generator="x")]
    log = LOG.replace("dev/pearson", f'"dev/{ATTACK}"')
    folder = write_run(tmp_path / "run", results, texts, [("unli", log)])
    html = build_report(folder).read_text(encoding="utf-8")
    assert build_report(folder).read_text(encoding="utf-8") == html
    page = Page(html)
    names = [tag for tag, _ in page.elements]
    assert not {"script", "img"} & {*names}
    assert not any(name.startswith("on") for _, given in page.elements for name in given)
    assert ATTACK in page.text  # shown, in full
    for tag, attributes in page.elements:
        assert "src" not in attributes, tag
        assert attributes.get("href", "data:,") == "data:,", tag
