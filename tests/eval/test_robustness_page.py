"""The robustness page: the answer in words and numbers, and every text, inert."""

import base64
import csv
import gzip
import json
import random
import re
import shutil

import pytest

from eval.commands.report import build_comparison, build_report
from eval.experiments.robustness.figures import distributions, read_training
from eval.experiments.robustness.grid import Judged, Row
from eval.experiments.robustness.kept import reached
from eval.experiments.robustness.lookup import lookups_of
from eval.experiments.robustness.page import PAGE
from eval.experiments.robustness.texts import MAX_CLAIMS, packed
from eval.experiments.robustness.words import absent
from eval.metrics.document import score_document
from eval.pipeline import score_selected
from eval.report.render import told, write_page
from eval.stages import Selection
from records import (
    BadInput,
    Claim,
    Document,
    Result,
    ResultFile,
    UserError,
    Verdict,
    read_results,
    write_jsonl,
    write_results,
    write_text,
)
from tests.eval.html_page import Page, in_browser

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
        yield (
            row("break_even", least, against="clean", **own)
            if least
            else row("break_even", None, against="clean", **own)
        )


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
        "texts": {"info": 24, "normal": 24},
        "targets": [
            {"kind": "info", "metric": "kept_share", "selection": "core", "at_most": 0.1},
            {"kind": "normal", "metric": "kept_share", "selection": "core", "at_least": 0.8},
            {"kind": "other", "metric": "kept_share", "selection": "core", "at_least": 0.8},
        ],
    } | provenance
    file = ResultFile(experiment="robustness", provenance=given, results=list(results))
    write_results(folder / "results.json", file)
    if texts:
        write_jsonl(folder / "texts.jsonl", texts)
    for name, content in training:
        write_text(folder / "training" / f"{name}.csv", content)
    return folder


@pytest.fixture
def whole_run(tmp_path):
    texts = [text(n, kind) for n, kind in enumerate(["normal", "normal", "info"])]
    return write_run(
        tmp_path / "run", [*rows_of(), *curve_rows()], texts, [("unli", LOG), ("empty", "step\n")]
    )


def page_of(folder):
    return Page(build_report(folder).read_text(encoding="utf-8"))


def words_of(results, tmp_path, **provenance):
    return page_of(write_run(tmp_path / "run", results, **provenance)).text


# The first screen


def test_the_first_screen_says_who_is_gamed_by_what_and_what_a_defence_does(whole_run):
    found = page_of(whole_run).text
    assert (
        "Yes: without a defence 1 of 1 metric scores adversarial texts above normal ones (1 gain "
        "above 0). With core none of them stays above 0, at a cost of at most +0.02 "
        "[-0.03, +0.07] on normal texts."
    ) in found
    assert (
        "nli : gamed by info texts (+0.30 [+0.25, +0.35]) without a defence, core stops info "
        "(-0.02); normal texts score 0.50, cost of core +0.02; corrupted texts overtake clean ones "
        "(appended, k up to 4, n = 24) at k = 4 without a defence and never with core."
    ) in found
    assert "nli gain of info texts +0.30 [+0.25, +0.35] gamed -0.02 [-0.07, +0.03] not gamed" in (
        found
    )
    assert "nli cost on normal texts – +0.02 [-0.03, +0.07] 24 (3)" in found
    assert "nli break-even of appended 4 overtaken ∞ never 24 (3)" in found


def test_a_defence_that_does_not_stop_an_attack_or_lets_it_in(tmp_path):
    found = words_of(rows_of(gains=(0.3, 0.2)), tmp_path)
    assert "With core 1 of them stays above 0" in found
    assert "core does not stop info (+0.20)" in found
    found = words_of([*rows_of(gains=(0.0, 0.2)), *rows_of("two")], tmp_path)
    assert (
        "not gamed by info texts (+0.00 [-0.05, +0.05]) without a defence, core is gamed" in found
    )


def test_a_defence_stops_nothing_where_nothing_could_be_judged(tmp_path):
    """With the defence there is no gain, or none with an interval: that is not 0."""
    rows = [
        r.model_copy(update={"ci95": None, "value": None})
        if (r.metric, r.selection, r.assessor) == ("gain", "core", "nli")
        else r
        for r in (*rows_of(), *rows_of("two"))
    ]
    found = words_of(rows, tmp_path)
    assert "With core none of them stays above 0 and 1 cannot be told" in found
    assert "core stops info" in found.split("two :")[1]
    assert "core stops info" not in found.split("two :")[0]
    bare = [
        r.model_copy(update={"ci95": None}) if (r.metric, r.selection) == ("gain", "core") else r
        for r in rows_of()
    ]
    found = words_of(bare, tmp_path)
    assert "With core none of them can be told" in found
    assert "core stops" not in found
    assert "core cannot be told of info (-0.02)" in found


def test_it_says_when_the_phenomenon_is_absent(tmp_path, whole_run):
    results = list(rows_of(gains=(0.03, 0.0)))
    found = words_of(results, tmp_path / "run")
    assert (
        "The phenomenon is absent: without a defence no gain is above 0 (the largest is +0.03 "
        "[-0.02, +0.08], info texts under nli). There is nothing that a defence could stop, so "
        "this run shows nothing about defences."
    ) in found
    for rows, said in ((results, True), ([*results, *curve_rows()], False), (rows_of(), False)):
        file = ResultFile(experiment="robustness", provenance={}, results=list(rows))
        assert absent(lookups_of(file)[0]) is said
    file = ResultFile(experiment="robustness", provenance={}, results=results)
    assert told(PAGE, file).startswith("The phenomenon is absent")
    assert "Only along a curve" in words_of([*results, *curve_rows()], tmp_path / "run")


def test_a_gain_without_an_interval_is_no_sign_that_there_is_none(tmp_path):
    control = [r for r in rows_of("bad", defences=("none", "no")) if r.selection == "none"]
    single = [
        r.model_copy(update={"ci95": None})
        for r in (*rows_of(gains=(0.5, 0.0)), *curve_rows(), *control)
    ]
    found = words_of(single, tmp_path, controls=["bad"])
    assert (
        "Whether the score can be gamed cannot be told: no gain has an interval, since there are "
        "too few topics (the largest is +0.50, info texts under nli)."
    ) in found
    assert "nli : no interval tells whether it is gamed by info texts (+0.50) without" in found
    assert "The control metric bad cannot be told of: no gain has an interval." in found
    nothing = [
        r.model_copy(update={"ci95": None, "value": None}) if r.metric == "gain" else r
        for r in rows_of()
    ]
    found = words_of(nothing, tmp_path)
    assert "cannot be told: no gain could be measured." in found
    assert "absent" not in found
    # One of two metrics could be judged.
    found = words_of([*rows_of("two", gains=(0.0, 0.0)), *nothing], tmp_path)
    assert "As far as can be told, the phenomenon is absent" in found
    assert "nothing about defences; 1 of 2 gains cannot be told." in found
    # The largest gain that is named is one that is told; a curve is one of more gains.
    untold = [r.model_copy(update={"ci95": None}) for r in (*rows_of(), *curve_rows())]
    found = words_of([*rows_of("two", gains=(0.0, 0.0)), *untold], tmp_path)
    assert "no gain is above 0 (the largest is +0.00 [-0.05, +0.05], info texts under two)" in found
    assert "nothing about defences; 4 of 5 gains cannot be told." in found


def test_a_control_that_cannot_be_judged_does_not_fail_to_stop(tmp_path):
    control = [
        r.model_copy(update={"ci95": None}) if r.metric == "gain" else r
        for r in rows_of(defences=("none", "bad"))
        if r.selection == "bad"
    ]
    found = words_of([*rows_of(), *control], tmp_path, controls=["bad"])
    assert "The control bad stops 0 of 1 gain (1 cannot be told)" in found


def test_it_says_when_honest_texts_leave_no_room(tmp_path):
    found = words_of(rows_of(honest=0.97, gains=(0.0, 0.0)), tmp_path)
    assert "normal texts score above 0.9 under nli, which leaves no room for a gain" in found
    assert "normal texts score 0.97, which is above 0.9 and leaves no room for a gain" in found
    assert "no room" not in words_of(rows_of(honest=0.9, gains=(0.0, 0.0)), tmp_path)


@pytest.mark.parametrize(
    ("gain", "cost", "said"),
    [
        (0.2, 0.0, "The control bad stops 0 of 1 gain"),
        (0.0, 0.01, "it passes as well, so these gains show nothing about a defence."),
        (0.0, 0.4, "as many as core, but at a higher cost."),
    ],
)
def test_controls_stand_apart(tmp_path, gain, cost, said):
    control = [
        r
        for r in rows_of(gains=(0.3, gain), cost=cost, defences=("none", "bad"))
        if r.selection == "bad"
    ]
    found = words_of([*rows_of(), *control], tmp_path, controls=["bad"])
    assert said in found
    first, _, second = found.partition("Untrained controls")
    assert f"{gain:+.2f} [" in second
    assert "bad" not in first[first.index("Gain, cost and break-even") :]


def test_a_control_that_stops_as_little_as_a_defence_passes_nothing(tmp_path):
    control = [r for r in rows_of(gains=(0.3, 0.2), defences=("none", "bad"))]
    control = [r for r in control if r.selection == "bad"]
    found = words_of([*rows_of(gains=(0.3, 0.2)), *control], tmp_path, controls=["bad"])
    assert "on normal texts; no defence stops one." in found
    assert "passes as well" not in found


def test_a_run_without_a_control_says_so(whole_run):
    assert "The run has no untrained control" in page_of(whole_run).text


def test_a_control_metric_is_told_by_its_verdicts_as_well(tmp_path):
    results = [*rows_of(), *rows_of("bad.grouped")]
    found = words_of(results, tmp_path, controls=["bad"])
    assert "The control metric bad.grouped is gamed by info as well." in found
    assert "1 of 1 metric scores" in found


# The tables


def test_kept_shares_are_held_against_their_targets(whole_run):
    found = page_of(whole_run).text
    assert "nli info 4.0 % [-1.0, 9.0] reached: at most 10 %" in found
    assert "nli normal 70.0 % [65.0, 75.0] missed: at least 80 %" in found
    assert "1 of 3 targets are reached under every metric." in found
    assert "The target for other texts under core (at least 80 %) has no value" in found


def test_targets_that_a_control_reaches_as_well_show_nothing(tmp_path):
    control = [r for r in rows_of(defences=("none", "bad")) if r.selection == "bad"]
    found = words_of([*rows_of(), *control], tmp_path, controls=["bad"])
    assert "The control bad reaches 1 of them, so they show nothing." in found
    kept = [r.model_copy(update={"value": 0.5}) if r.metric == "kept_share" else r for r in control]
    found = words_of([*rows_of(), *kept], tmp_path, controls=["bad"])
    assert "The control bad reaches 0 of them." in found


@pytest.mark.parametrize(
    ("target", "value", "said"),
    [
        ({"at_most": 0.1}, 0.1, True),
        ({"at_most": 0.1}, 0.11, False),
        ({"at_least": 0.6}, 0.7, True),
        ({"at_least": 0.6, "at_most": 0.65}, 0.7, False),
        ({"at_least": 0.6}, None, None),
    ],
)
def test_reached(target, value, said):
    assert reached(target, row("kept_share", value)) is said


def test_bounds_and_strata_and_agreement_and_labels(tmp_path):
    results = [*rows_of()]
    for name, value in (("failed_supported", 0.6), ("failed_not_supported", 0.45)):
        results.append(row("factual_precision", value, variant=name))
    results += [row("pearson", 0.9, against="core"), row("label_correlation", 0.8)]
    results += [row("supported_if_true", 0.9), row("supported_if_false", 0.2)]
    results += [r.model_copy(update={"bin": "rare"}) for r in rows_of(gains=(0.4, 0.1))]
    found = words_of(results, tmp_path)
    assert "nli normal 0.500 [0.450, 0.550] bounds 0.450 to 0.600; n = 24, 3 not judged" in found
    assert "By frequency (2)" in found
    assert "rare nli info 0.900 [0.850, 0.950]" in found
    assert "nli No defence core 0.900 [0.850, 0.950]" in found
    assert "nli normal 90.0 % [85.0, 95.0] n = 24, 3 not judged 20.0 % [15.0, 25.0]" in found
    assert "normal texts score 0.50 and 20 % of their false claims are called supported" in found
    assert "nli correlation with labelled precision 0.800 [0.750, 0.850]" in found


def test_only_metrics_with_a_precision_of_their_texts_have_boxes(tmp_path):
    by_k = list(rows_of(assessor="nli, F1@10"))
    folder = write_run(tmp_path / "run", [*rows_of(), *by_k], [text(0), text(1, "info")])
    own, _ = lookups_of(read_results(folder / "results.json"))
    drawing = distributions(own, folder / "texts.jsonl")["by_kind"].svg
    assert (">nli<" in drawing, "F1@10" in drawing) == (True, False)


def test_tables_and_figures_are_files_as_well(whole_run):
    stale = whole_run / "figures/by_group.svg"
    stale.parent.mkdir()
    stale.write_text("old")
    file = read_results(whole_run / "results.json")
    write_page(PAGE, file, whole_run)
    assert not stale.exists()
    names = {path.name for path in (whole_run / "figures").iterdir()}
    both = ("curve_appended", "by_kind", "training_unli_0", "training_unli_1")
    assert names >= {f"{name}.{end}" for name in both for end in ("svg", "csv")}
    with open(whole_run / "figures/curve_appended.csv", newline="") as table:
        points = list(csv.DictReader(table))
    assert [(p["defence"], p["k"], p["score"], p["clean"]) for p in points[:3]] == [
        ("none", "0", "0.4", "0.6"),
        ("none", "2", "0.55", "0.6"),
        ("none", "4", "0.8", "0.6"),
    ]
    assert {p["break_even"] for p in points} == {"4.0", ""}
    with open(whole_run / "figures/by_kind.csv", newline="") as table:
        boxes = {(b["defence"], b["texts"]): b for b in csv.DictReader(table)}
    assert (boxes["none", "normal"]["n"], boxes["none", "normal"]["mean"]) == ("2", "0.5")
    assert boxes["core", "normal"]["mean"] == "1.0"
    gains = (whole_run / "tables/gain_cost_and_break_even.csv").read_text()
    assert 'nli,gain of info texts,+0.30,"[+0.25, +0.35]",gamed' in gains
    latex = (whole_run / "tables/gain_cost_and_break_even.tex").read_text()
    assert r"nli & gain of info texts & +0.30 [+0.25, +0.35] gamed &" in latex
    assert "| nli | gain of info texts | +0.30 [+0.25, +0.35] gamed |" in (
        whole_run / "tables.md"
    ).read_text(encoding="utf-8")


# Every text


def test_equal_runs_give_equal_bytes_and_ask_for_nothing_outside(whole_run):
    before = {path.name for path in whole_run.iterdir()}
    first = build_report(whole_run).read_bytes()
    assert build_report(whole_run).read_bytes() == first
    assert {path.name for path in whole_run.iterdir()} == before | {"report.html"}
    page = page_of(whole_run)
    for tag, attributes in page.elements:
        assert "src" not in attributes, tag
        assert attributes.get("href", "data:,") == "data:,", tag
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]
    assert "empty: its training log has no loss and no dev measure." in page.text


def hostile_run(folder):
    results = [*rows_of(), *rows_of(ATTACK), *curve_rows()]
    results += [r.model_copy(update={"kind": ATTACK}) for r in [*rows_of(), *curve_rows()]]
    texts = [text(0, ATTACK, ATTACK, ATTACK), text(1), text(2, "info", generator="x")]
    log = LOG.replace("dev/pearson", f'"dev/{ATTACK}"')
    return write_run(folder, results, texts, [("unli", log)], versions={ATTACK: ATTACK})


def test_hostile_text_stays_text(tmp_path):
    html = build_report(hostile_run(tmp_path / "run")).read_text(encoding="utf-8")
    page = Page(html)
    names = [tag for tag, _ in page.elements]
    assert names.count("script") == 2, "the texts, which are data, and what shows them"
    assert "img" not in names
    assert not any(name.startswith("on") for _, given in page.elements for name in given)
    assert ATTACK in page.text  # shown, in full
    assert "<script>alert" not in html


needs_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on PATH")


@needs_browser
@pytest.mark.parametrize("hostile", [False, True])
def test_browser_shows_the_texts_without_an_error(whole_run, tmp_path, hostile):
    folder = hostile_run(tmp_path / "hostile") if hostile else whole_run
    dom, errors = in_browser(build_report(folder), tmp_path / "profile", "#text=d1")
    assert "CONSOLE" not in errors
    page = Page(dom)
    assert "3 of 3 texts; page 1 of 1" in page.text
    assert not any(tag == "img" for tag, _ in page.elements)
    shown = [a for tag, a in page.elements if tag == "details" and a.get("class") == "document"]
    assert len(shown) == 3
    assert "nli 0.50, core 1.00" in page.text
    assert (ATTACK in page.text) == hostile
    # One of them is open, with its claims, verdicts and what the defence made of them.
    words = "Ann Lee was a painter."
    assert f"id: d1 Claim nli core {words} supported p = 0.75" in page.text
    assert "✓ kept weight +1.25, entailed 0.97" in page.text
    # On a narrow page they stand in one line, where a blank that begins a box is none.
    assert '✓ kept</b> <span class="n">weight +1.25' in dom
    assert "✗ duplicate weight -0.50, entailed –" in page.text
    assert f"repeats a claim that was kept: “{words}”" in page.text
    assert f"Sure! failed (no list: {words}) – –" in page.text


def unpacked(found):
    return json.loads(gzip.decompress(base64.b64decode(found.data)))


def test_a_text_is_packed_with_all_that_is_known_of_it(tmp_path):
    other = text(0).metrics["nli"]
    first = other.verdicts[0].model_copy(update={"label": "contradicted"})
    other = other.model_copy(update={"verdicts": [first, other.verdicts[1]]})
    write_jsonl(tmp_path / "texts.jsonl", [text(0, other=other)])
    found = packed(tmp_path)
    assert (found.shown, found.total, found.cut) == (1, 1, 0)
    content = unpacked(found)
    assert (content["head"]["metrics"], content["head"]["defences"]) == (["nli", "other"], ["core"])
    (one,) = content["texts"]
    assert (one["i"], one["k"], one["b"], one["x"]) == (
        "d0",
        "normal",
        "rare",
        "Ann Lee was a painter.",
    )
    (claims,) = one["s"]  # both metrics share them
    assert claims["c"][1] == "Ann Lee was a painter. 0"
    assert claims["f"] == {"2": "no list: Ann Lee was a painter."}
    assert claims["d"] == {"0": ["03-", [1.25, -0.5, 0.0], [97, None, 0], {"1": 0}]}
    first, second = one["m"]
    assert first == [0, 0, "01-", [75, 25, None], {}, {"-1": 0.5, "0": 1.0}, {}]
    assert second[:3] == [1, 0, "21-"]


def test_many_texts_fit_and_those_left_out_are_told(tmp_path):
    draw = random.Random(0)
    kinds = ["normal"] * 60 + ["info"] * 20
    texts = [text(n, k, str(draw.random()) * 20) for n, k in enumerate(kinds)]
    path = tmp_path / "texts.jsonl"
    write_jsonl(path, texts)
    whole = packed(tmp_path)
    assert (whole.shown, whole.total) == (80, 80)
    small = packed(tmp_path, most=len(whole.data) // 2)
    assert len(small.data) <= len(whole.data) // 2
    kept = [one["k"] for one in unpacked(small)["texts"]]
    assert small.shown == len(kept) < 80
    assert kept.count("info") >= 15, "the first of each kind stay"
    long = text(0, words="x" * 10_000)
    own = long.metrics["nli"]
    many = [Claim(id=f"m{n}", text="y") for n in range(MAX_CLAIMS + 5)]
    cut = own.model_copy(update={"claims": own.claims + many})
    write_jsonl(path, [Row(document=long.document, metrics={"nli": cut})])
    found = packed(tmp_path)
    (one,) = unpacked(found)["texts"]
    assert (found.cut, len(one["s"][0]["c"])) == (1, MAX_CLAIMS)
    assert len(one["x"]) < 5000


def curve_texts(count=1):
    """Clean twins with their corrupted texts, as ``curves.jsonl`` has them."""
    for number in range(count):
        twin = text(100 + number, "clean", f"Clean {number}.")
        yield {"curve": "added", **twin.model_dump()}
        for k in (0, 4):
            own = text(f"{number}-{k}", "corrupted", f"Corrupted {number}." + " It is." * k)
            document = own.document.model_dump() | {"clean": twin.document.id, "k": k}
            yield {"curve": "added", **own.model_dump(), "document": document}


def test_texts_of_curves_are_packed_with_their_twins_and_k(tmp_path):
    write_jsonl(tmp_path / "texts.jsonl", [text(0)])
    write_jsonl(tmp_path / "curves.jsonl", curve_texts(9))
    found = packed(tmp_path)
    assert (found.shown, found.total) == (28, 28)
    (first, twin, none, four), rest = (own := unpacked(found)["texts"])[:4], own[4:]
    assert first.keys() & {"v", "n", "w"} == set()
    assert (twin["v"], twin["i"], twin["k"], "n" in twin) == ("added", "d100", "clean", False)
    assert [(t["v"], t["n"], t["w"]) for t in (none, four)] == [
        ("added", k, "d100") for k in (0, 4)
    ]
    assert four["m"], "with its verdicts"
    # Where there is no room for all, a twin and its texts stay or go together.
    some = unpacked(packed(tmp_path, most=len(found.data) * 2 // 3))["texts"][1:]
    assert 3 <= len(some) < len(rest)
    assert [t["i"] for t in some] == [t["i"] for t in own[1 : 1 + len(some)]]


@needs_browser
def test_an_id_typed_into_the_open_page_s_address_opens_its_text(whole_run, tmp_path):
    html = build_report(whole_run).read_text(encoding="utf-8")
    policy = re.search(r"script-src '[^']*'", html)[0]
    typed = "<script>setTimeout(() => { location.hash = 'text=d1'; }, 2000)</script>"
    page = tmp_path / "typed.html"
    write_text(page, html.replace(policy, "script-src 'unsafe-inline'") + typed)
    dom, errors = in_browser(page, tmp_path / "profile")
    assert "CONSOLE" not in errors
    words = Page(dom).text
    assert ("id: d1 Claim" in words, "id: d0 Claim" in words) == (True, False)


@needs_browser
def test_browser_shows_a_text_of_a_curve_with_its_twin(whole_run, tmp_path):
    write_jsonl(whole_run / "curves.jsonl", curve_texts())
    dom, errors = in_browser(build_report(whole_run), tmp_path / "profile", "#text=d0-4")
    assert "CONSOLE" not in errors
    page = Page(dom)
    assert "6 of 6 texts; page 1 of 1" in page.text
    assert "corrupted added, k = 4 kb rare" in page.text
    assert "clean added, clean kb rare" in page.text
    assert "id: d0-4 its clean twin, d100" in page.text
    assert "whole in texts.jsonl and curves.jsonl" in page.text


def test_what_a_run_left_out_is_on_its_page(tmp_path):
    said = "texts: rare: on 3 of the 10 topics that are drawn"
    assert f"Left out: {said}." in words_of(rows_of(), tmp_path, skipped=[said])
    file = ResultFile(experiment="robustness", provenance={"skipped": [said]}, results=[*rows_of()])
    assert told(PAGE, file).endswith(f"\nleft out: {said}")


def test_a_run_without_texts_says_so(tmp_path):
    assert "Left out: the run folder has no texts.jsonl" in words_of(rows_of(), tmp_path)


def test_users_mistakes_are_one_line(tmp_path):
    folder = write_run(tmp_path / "run", rows_of(), [text(0), {"document": {"id": "x"}}])
    with pytest.raises(BadInput, match=r"texts\.jsonl:2: document\.topic"):
        build_report(folder)
    write_text(tmp_path / "log.csv", "step,train/loss\n1,low\n")
    with pytest.raises(UserError, match=r"log\.csv:2: train/loss: not a number: 'low'"):
        read_training(tmp_path / "log.csv")


def test_two_runs_are_compared_text_by_text(tmp_path):
    one = write_run(tmp_path / "one", rows_of(), [text(n) for n in range(3)])
    moved = text(1)
    scores = [s.model_copy(update={"precision": 0.25}) for s in moved.metrics["nli"].scores]
    moved.metrics["nli"] = moved.metrics["nli"].model_copy(update={"scores": scores})
    two = write_run(tmp_path / "two", rows_of(), [text(0), moved, text(2, words="Other.")])
    found = Page(build_comparison(one, two)[0].read_text(encoding="utf-8")).text
    assert "2 texts are in both runs; 0 only here, 0 only there, 1 have the same id" in found
    assert "nli none normal 2 of 2 0.500 0.375 +0.125" in found
    assert "Ann Lee was a painter. normal kb d1 nli core 1.000 0.250" in found
    (two / "texts.jsonl").unlink()
    with pytest.raises(UserError, match=r"texts\.jsonl: no texts to compare"):
        build_comparison(one, two)
