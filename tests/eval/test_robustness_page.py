"""The robustness page: every number of the run in its tables, and texts that stay inert."""

from eval.commands.report import build_report
from eval.experiments.robustness.robustness_grid import JudgedByMetric, TextScores
from eval.metrics.document import score_document
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
    fields = {"generator": "all", "domain": "biographies", "n": 24, "failed": 3, "ci95": interval}
    fields |= {"config_hash": "c0ffee", **more}
    key = {"assessor": assessor, "selection": selection, "kind": kind, "value": value}
    return Result(metric=metric, **key, **fields)


def rows_of(assessor="nli", honest=0.5, gains=(0.3, -0.02), cost=0.02, defences=("none", "core")):
    """One attack, without a defence and with it."""
    for defence, gain in zip(defences, gains, strict=True):
        key = {"assessor": assessor, "selection": defence}
        for kind, value in (("normal", honest), ("info", honest + gain)):
            yield row("factual_precision", value, kind=kind, **key)
            yield row("claims", 12.4, kind=kind, **key)
            if defence != "none":
                yield row("kept_share", 0.7 if kind == "normal" else 0.04, kind=kind, **key)
        verdict = "gamed" if gain > 0.05 else "unclear"
        rate, bounds = (0.9, (0.8, 1.0)) if gain > 0.05 else (0.1, (0.0, 0.3))
        excess = row("excess_inflation", gain, kind="info", verdict=verdict, variant=64, **key)
        yield excess.model_copy(update={"bounds": (gain - 0.1, gain + 0.1)})
        yield row("asr", rate, kind="info", bounds=bounds, **key)
        if verdict == "unclear":
            yield row("units_needed", 72, kind="info", **key)
            yield row("single_excess", -0.2, kind="info", **key)
            yield row("single_successes", 0.0, kind="info", **key)
        for name, value in (("excess_inflation", gain), ("asr", rate)):
            yield row(f"worst_{name}", value, kind="all", variant="info", bounds=bounds, **key)
        yield row("certificate", 2, kind="all", verdict="fails", **key)
        yield row("order", 0.7, **key)
        yield row("acceptance", 0.9, kind="false negation", variant="unseen", **key)
        yield row("rung", 0.4, variant=0.2, **key)
        if defence != "none":
            yield row("cost", cost, against="none", **key)


def curve_rows(assessor="nli"):
    for defence, values, least in (("none", (0.4, 0.55, 0.8), 4), ("core", (0.4, 0.4, 0.4), None)):
        key = {"assessor": assessor, "selection": defence, "kind": "appended"}
        yield row("factual_precision", 0.6, variant="clean", **key)
        for k, value in zip((0, 2, 4), values, strict=True):
            yield row("factual_precision", value, variant=k, **key)
            yield row("gain", value - 0.6, variant=k, against="clean", **key)
        yield row("break_even", least, against="clean", **key)


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
    selections = [
        Selection(claim="c0", selected=True, weight=1.25, reason="selected"),
        Selection(claim="c1", selected=False, weight=-0.5, reason="duplicate", duplicate_of="c0"),
    ]
    verdicts = [
        Verdict(claim="c0", assessor="nli", label="supported", p=0.75),
        Verdict(claim="c1", assessor="nli", label="not_supported", p=0.25),
    ]
    scores = [
        score_document(True, claims, verdicts, None),
        score_document(True, claims, verdicts, {"c0"}),
    ]
    judged_text = JudgedByMetric(
        claims=claims,
        selections={"core": selections},
        verdicts={"none": verdicts},
        scores=scores,
    )
    return TextScores(document=document, metrics={"nli": judged_text} | more)


def write_run(folder, results, texts=(), training=(), **provenance):
    folder.mkdir(exist_ok=True)
    all_provenance = {
        "config": {"seed": 7},
        "versions": {"torch": "2.13.0"},
        "controls": [],
        "honest": ["normal"],
        "families": {"info": "relevance"},
    } | provenance
    file = ResultFile(experiment="robustness", provenance=all_provenance, results=list(results))
    write_results(folder / "results.json", file)
    if texts:
        write_jsonl(folder / "texts.jsonl", texts)
    for name, content in training:
        write_text(folder / "training" / f"{name}.csv", content)
    return folder


def page_of(folder):
    return Page(build_report(folder).read_text(encoding="utf-8"))


def table_of(folder, title):
    """A table of ``tables.md``: a dictionary for each row."""
    section = (folder / "tables.md").read_text("utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def test_the_matrix_comes_first_with_certificate_order_verdicts_and_costs(tmp_path):
    results = [*rows_of(), *rows_of("two", defences=("none", "bad"))]
    more = {"same": {"three, core": "nli, core"}, "skipped": ["1 row"]}
    folder = write_run(tmp_path / "run", results, controls=["bad"], **more)
    page = page_of(folder)
    title = "Can it be gamed? nli"
    assert page.text.index(title) < page.text.index("Scores by kind of text")
    certificate, order, attack, inflation, rate, cost = table_of(folder, title)
    assert certificate["core"] == "2 of 24 families fails"
    assert order["core"] == "0.70 [0.65, 0.75]"
    assert attack["Attack"] == "relevance: info"
    assert attack["no defence"] == "+0.30 [0.20, 0.40] gamed (ASR 0.90 [0.80, 1.00], n = 24)"
    assert attack["core"] == (
        "-0.02 [-0.12, 0.08] unclear, best of 64 (ASR 0.10 [0.00, 0.30], n = 24, decided with "
        "n = 72; a single text -0.20, ASR 0.00)"
    )
    assert rate["core"] == "0.10 [0.00, 0.30] (info)"
    assert inflation["no defence"] == "0.30 [0.80, 1.00] (info)"
    assert (cost["no defence"], cost["core"]) == ("–", "0.02 [-0.03, 0.07]")
    assert (
        "nli, no defence: of 1 attacks 1 gamed; worst excess inflation +0.30 (info), "
        "worst success rate 0.90 (info); certificate: fails."
    ) in page.text
    assert "three, core is the same pipeline as nli, core." in page.text
    assert "Yes. Gamed: nli, no defence; two, no defence." in page.text
    assert "Details (6)" in page.text
    assert "Skipped 1 row." in page.text


def test_a_worse_text_with_a_higher_score_comes_first_next_to_a_better_one(tmp_path):
    def scored(kind, words, score, gold):
        document = Document(id=kind, topic="Ann Lee", text=words, kind=kind, gold=gold)
        return TextScores(document=document, metrics={}, text_scores={"overlap": score})

    texts = [scored("normal", "She painted.", 0.5, 0.9), scored("info", "She was.", 0.8, 0.2)]
    folder = write_run(tmp_path / "run", rows_of("overlap"), texts)
    page = page_of(folder)
    title = "Worst example: info under overlap"
    attack, honest = table_of(folder, title)
    assert attack == {"Text": "Attack", "Score": "0.80", "Gold F1": "0.20", "Words": "She was."}
    assert honest["Score"] == "0.50"
    assert page.text.index(title) < page.text.index("Can it be gamed? overlap")


def test_other_tables_are_folded_and_have_each_metric_with_n_and_failures(tmp_path):
    results = [*rows_of(), *curve_rows(), row("label_correlation", 0.8, against="labels")]
    for name, value in (("failed_supported", 0.6), ("failed_not_supported", 0.45)):
        results.append(row("factual_precision", value, variant=name))
    results += [row("supported_if_true", 0.9), row("supported_if_false", 0.2)]
    results += [r.model_copy(update={"bin": "rare"}) for r in rows_of(gains=(0.4, 0.1))]
    folder = write_run(tmp_path / "run", results)
    html = build_report(folder).read_text("utf-8")
    assert html.count("</summary>") >= 7

    def first(name):
        return table_of(folder, name)[0]

    scores = first("Scores by kind of text")
    assert scores.items() >= {"n": "24", "failed": "3"}.items()
    assert first("Which statements are accepted")["unseen"].startswith("90.0 %")
    assert first("Break-even")["no defence"].endswith("overtaken")
    assert first("Break-even")["core"] == "– never"
    assert first("Scores by kind of text")["Score, no defence"] == "0.500 [0.450, 0.550]"
    assert first("Bounds of the score by failures")["None supported"].startswith("0.450")
    clean, *steps = table_of(folder, "Corrupted texts with sentences appended")
    assert clean["Score, no defence"].startswith("0.600")
    assert [r["k"] for r in steps] == ["0", "2", "4"]
    assert first("Verdicts against known labels")["False claims"].startswith("20.0 %")
    assert first("By frequency")["Frequency"] == "rare"


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
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert ATTACK in page.text  # shown, in full
    for tag, attributes in page.elements:
        assert "src" not in attributes, tag
        assert attributes.get("href", "data:,") == "data:,", tag
