"""The report: what it says is in the run folder, and nothing in the run folder can run in it."""

import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from eval.commands.report import build_report, main
from eval.experiments.robustness.page import MAX_DOCUMENTS, read_documents, read_training
from eval.experiments.robustness.tables import Table, reached
from eval.metrics.corpus import summarise
from eval.metrics.document import score_document
from eval.pipeline import Scored
from eval.report.tables import number
from eval.stages import Selection
from records import (
    BadInput,
    Claim,
    Document,
    Passage,
    Result,
    ResultFile,
    UserError,
    Verdict,
    write_jsonl,
    write_results,
    write_text,
)

ATTACK = "</script><script>alert('gamed')</script><img src=x onerror=alert(1)>"
KINDS = {"normal": (0.62, 0.6, 0.7), "uninformative": (0.98, 0.12, 0.04)}


def row(metric, selection="core", kind="normal", value=0.5, **more):
    interval = None if value is None else (max(0.0, value - 0.05), value + 0.02)
    given = {"generator": "kb", "domain": "biographies", "n": 24, "failed": 3, "ci95": interval}
    given |= {"config_hash": "c0ffee", "variant": "trained", **more}
    return Result(metric=metric, selection=selection, kind=kind, value=value, **given)


def rows_of(variant, **more):
    for kind, (none, core, kept) in KINDS.items():
        kept = kept if variant == "trained" else 0.9
        for selection, value in (("none", none), ("core", core)):
            shared = {"selection": selection, "kind": kind, "variant": variant, **more}
            yield row("factual_precision", value=value, **shared)
            yield row("claims", value=12.4 if selection == "none" else 12.4 * kept, **shared)
        yield row("kept_share", kind=kind, value=kept, variant=variant, **more)


def curve_rows():
    for count in (0, 2, 4):
        for selection, value in (("none", 0.6 + 0.05 * count), ("core", 0.6)):
            yield row("factual_precision", selection, "corrupted", value, variant=count)


def document(kind="normal", topic="Ann Lee", text="Ann Lee was a painter.", **more):
    claim = {"text": text, "label": "supported", "selected": True, "weight": 1.25}
    claim |= {"document_entailment": 0.97, "reason": "selected", "duplicate_of": None}
    again = claim | {"selected": False, "reason": "duplicate", "duplicate_of": text, "label": None}
    given = {"id": "d", "generator": "kb", "components": "trained", "claims": [claim, again]}
    return given | {"kind": kind, "topic": topic, **more}


def write_run(folder, results, documents=(), training=(), **provenance):
    core = {"p": 1.0, "epsilon": 0.7, "weighting": "capped", "bleached": "bleached.txt"}
    provenance = {
        "config": {"seed": 7, "pipeline": {"select": {"init_args": core}}},
        "checkpoints": {"checkpoints/unli": {"component": "unli", "sha256": "feed", "metrics": {}}},
        "data": {"data/test.jsonl": "beef"},
        "versions": {"torch": "2.13.0"},
        "targets": [
            {"kind": "uninformative", "metric": "kept_share", "at_most": 0.1},
            {"kind": "normal", "metric": "kept_share", "at_least": 0.6},
        ],
    } | provenance
    file = ResultFile(experiment="robustness", provenance=provenance, results=list(results))
    write_results(folder / "results.json", file)
    write_jsonl(folder / "selections.jsonl", documents)
    for name, text in training:
        write_text(folder / "training" / f"{name}.csv", text)
    return folder


LOG = "epoch,step,train/loss,dev/loss,dev/pearson\n0,9,0.7,,\n0,19,,0.5,0.41\n0,29,0.6,,\n"


@pytest.fixture
def whole_run(tmp_path):
    results = [*rows_of("trained"), *rows_of("untrained"), *curve_rows()]
    documents = [document(kind) for kind in KINDS]
    return write_run(tmp_path, results, documents, [("unli", LOG)])


class Page(HTMLParser):
    """Element names with attributes, visible text, and by drawing what shows under the pointer."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.words, self.figures, self._open = [], [], {}, []
        self._drawing = None
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "figure":
            self._drawing = self.figures.setdefault(dict(attributes)["aria-label"], [])
        self._open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tag, _ = self._open[-1] if self._open else ("", {})
        within = [name for name, _ in self._open]
        if tag == "title" and "svg" in within:
            self._drawing.append(data)
        elif "svg" not in within and tag not in {"script", "style"}:
            self.words.append(data)


def page_of(folder):
    return Page(build_report(folder).read_text(encoding="utf-8"))


def test_says_in_words_what_the_numbers_say(whole_run):
    text = page_of(whole_run).text
    assert "uninformative texts score 0.98 without Core, 0.12 with Core" in text
    assert "Core keeps 70 % of normal, 4 % of uninformative" in text
    assert "the trained components reach 2 of 2 targets" in text
    assert "the untrained control reaches 1 of 2 targets." in text
    assert "4 appended adversarial sentences move precision from 0.60 to 0.80 without Core" in text
    assert "at most 10 % 4.0 % [0.0, 6.0] n = 24, 3 not judged yes" in text
    assert "p = 1.0 , ε in nats = 0.7 , weighting = capped" in text
    assert "+1.25 nats" in text
    assert "repeats a subclaim that was kept: “Ann Lee was a painter.”" in text


BARS = "Factual precision by kind of text, trained components"
CURVE = "Factual precision against the number of appended adversarial sentences"


def test_drawings_show_the_results_with_their_intervals(whole_run):
    figures = page_of(whole_run).figures
    trained = [f"Training of unli: {what}" for what in ("loss", "dev/pearson")]
    control = BARS.replace("trained components", "untrained control")
    assert list(figures) == [BARS, control, CURVE, *trained]
    assert figures[BARS] == [
        f"{kind}, {said}: {value} [{low}, {high}], n = 24, 3 not judged"
        for said, rows in (
            ("without Core", (("0.620", "0.570", "0.640"), ("0.980", "0.930", "1.000"))),
            ("with Core", (("0.600", "0.550", "0.620"), ("0.120", "0.070", "0.140"))),
        )
        for kind, (value, low, high) in zip(KINDS, rows, strict=True)
    ]
    curve = [hint.partition(" [")[0] for hint in figures[CURVE]]
    assert curve == [
        f"{count} appended, {said}: {value}"
        for said, values in (
            ("without Core", ("0.600", "0.700", "0.800")),
            ("with Core", ("0.600", "0.600", "0.600")),
        )
        for count, value in zip((0, 2, 4), values, strict=True)
    ]
    # The gap is joined.
    assert figures[trained[0]] == ["step 9: 0.7", "step 29: 0.6", "step 19: 0.5"]
    assert figures[trained[1]] == ["step 19: 0.41"]
    text = page_of(whole_run).text
    assert "4 0.800 [0.750, 0.820] n = 24, 3 not judged 0.600" in text


def test_groups_and_bins_have_tables(tmp_path):
    split = [row("kept_share", value=0.25, group="painters")]
    split += [row("factual_precision", "none", value=0.75, bin="rare")]
    text = page_of(write_run(tmp_path, [*rows_of("trained"), *split])).text
    kept = "25.0 % [20.0, 27.0] n = 24, 3 not judged"
    assert f"group painters normal (kb) trained – {kept}" in text
    scored = "0.750 [0.700, 0.770] n = 24, 3 not judged"
    assert f"frequency rare normal (kb) trained {scored} –" in text
    assert "Core keeps 70 % of normal" in text, "they are not the whole"


def test_equal_runs_give_equal_bytes_and_leave_nothing_else(whole_run):
    before = {path.name for path in whole_run.iterdir()}
    first = build_report(whole_run).read_bytes()
    assert build_report(whole_run).read_bytes() == first
    assert {path.name for path in whole_run.iterdir()} == before | {"report.html"}


def test_page_asks_for_nothing_outside_itself(whole_run):
    page = page_of(whole_run)
    for tag, attributes in page.elements:
        assert "src" not in attributes, tag
        assert attributes.get("href", "data:,") == "data:,", tag
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]


def test_hostile_text_stays_text(tmp_path):
    results = [*rows_of("trained"), *rows_of("trained", generator=ATTACK)]
    results += [row("factual_precision", s, ATTACK, 0.5) for s in ("none", "core")]
    documents = [document(ATTACK, topic=ATTACK, text=ATTACK, generator=ATTACK)]
    log = LOG.replace("dev/pearson", f'"dev/{ATTACK}"')
    write_run(tmp_path, results, documents, [("unli", log)], versions={ATTACK: ATTACK})
    html = build_report(tmp_path).read_text(encoding="utf-8")
    page = Page(html)
    names = [tag for tag, _ in page.elements]
    assert names.count("script") == 1
    assert "img" not in names
    assert not any(name.startswith("on") for _, given in page.elements for name in given)
    assert ATTACK in page.text  # shown, in full
    assert f"{ATTACK} ({ATTACK}), with Core" not in html  # shown in a drawing, escaped
    assert any(ATTACK in hint for hint in page.figures[BARS])
    assert "<script>alert" not in html


@pytest.mark.parametrize(
    ("left_out", "sentence"),
    [
        ("untrained", "No untrained control: the run has no rows of untrained components."),
        ("curve", "Left out: the run has no results for appended sentences"),
        ("selections", "Left out: the run folder has no selections.jsonl"),
        ("training", "Left out: the run folder has no training log"),
        ("precision", "Left out: results.json has no factual_precision."),
    ],
)
def test_missing_part_is_a_sentence_and_no_empty_plot(tmp_path, left_out, sentence):
    results = [*rows_of("trained")]
    if left_out == "precision":
        results = [r for r in results if r.metric != "factual_precision"]
    if left_out != "untrained":
        results += [r for r in rows_of("untrained") if r.metric != "factual_precision"]
    if left_out not in {"curve", "precision"}:
        results += curve_rows()
    documents = [] if left_out == "selections" else [document()]
    empty = [("unli", "epoch,step,train/loss\n0,1,\n")]
    training = empty if left_out == "training" else [("unli", LOG)]
    page = page_of(write_run(tmp_path, results, documents, training))
    assert sentence in page.text
    assert all(page.figures.values())


def test_result_without_a_value_has_no_bar_and_a_dash(tmp_path):
    results = [*rows_of("trained"), row("factual_precision", "none", "sampled", 0.9)]
    results += [row("factual_precision", "core", "sampled", None, n=0, failed=8)]
    page = page_of(write_run(tmp_path, results))
    assert len([hint for hint in page.figures[BARS] if "with Core" in hint]) == 2
    assert "– n = 0, 8 not judged" in page.text


def test_target_of_an_absent_kind_is_not_reached(tmp_path):
    targets = [{"kind": "repetitive", "metric": "kept_share", "at_most": 0.25}]
    text = page_of(write_run(tmp_path, rows_of("trained"), targets=targets)).text
    assert "reach 0 of 1 targets" in text
    assert "The target for repetitive texts (at most 25 %) has no value" in text


@pytest.mark.parametrize(
    ("target", "value", "ci95", "said"),
    [
        ({"at_most": 0.1}, 0.1, (0.02, 0.1), "yes"),
        ({"at_most": 0.1}, 0.11, (0.105, 0.2), "no"),
        ({"at_least": 0.6}, 0.7, (0.65, 0.8), "yes"),
        ({"at_least": 0.6}, 0.58, (0.5, 0.7), "no (its interval holds the bound)"),
        ({"at_least": 0.6}, None, None, "no value"),
    ],
)
def test_reached(target, value, ci95, said):
    assert reached(target, row("kept_share", value=value, ci95=ci95)) == said


def test_kinds_by_several_generators_are_told_apart():
    table = Table([*rows_of("trained"), row("kept_share", generator="adversary", value=0.1)])
    assert [t.label for t in table.texts] == ["normal (kb)", "normal (adversary)", "uninformative"]
    assert number(table.get("kept_share", "core", table.texts[1], "trained").value) == "0.100"


def test_first_documents_of_every_kind_and_components(tmp_path):
    documents = [
        document(kind, components=components, id=f"{kind}-{index}")
        for components in ("trained", "untrained")
        for kind in ("uninformative", "normal")
        for index in range(40)
    ]
    write_jsonl(tmp_path / "selections.jsonl", documents)
    shown = read_documents(tmp_path / "selections.jsonl")
    assert len(shown) == MAX_DOCUMENTS
    cells = [(d.kind, d.components) for d in shown]
    assert sorted(cells.count(cell) for cell in set(cells)) == [7, 7, 8, 8]
    assert shown[0].id == "normal-0"


def test_users_mistakes_are_one_line(tmp_path):
    with pytest.raises(UserError, match="no such run folder"):
        build_report(tmp_path / "absent")
    with pytest.raises(UserError, match=r"has no results\.json"):
        build_report(tmp_path)
    with pytest.raises(UserError, match="no results in it"):
        build_report(write_run(tmp_path, []))
    write_run(tmp_path, rows_of("trained"), [document(), document() | {"claims": [{}]}])
    with pytest.raises(BadInput, match=r"selections\.jsonl:2: claims\.0\.text"):
        build_report(tmp_path)
    write_text(tmp_path / "log.csv", "step,train/loss\n1,low\n")
    with pytest.raises(UserError, match=r"log\.csv:2: train/loss: not a number: 'low'"):
        read_training(tmp_path / "log.csv")


def test_command_prints_where_the_page_is(whole_run, capsys):
    assert main(["--run", str(whole_run)]) == 0
    assert capsys.readouterr().out.strip() == str(whole_run / "report.html")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on PATH")
@pytest.mark.parametrize("hostile", [False, True])
def test_browser_shows_the_page_without_an_error(whole_run, tmp_path, hostile):
    if hostile:
        write_run(whole_run, [*rows_of("trained"), *rows_of("trained", generator=ATTACK)])
    path = build_report(whole_run)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command += ["--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=60
    )
    page = Page(done.stdout)
    figures = [attributes for tag, attributes in page.elements if tag == "figure"]
    assert done.stdout.count("<svg ") == len(figures) > 0
    assert "CONSOLE" not in done.stderr
    assert not any(tag == "img" for tag, _ in page.elements)


def scored_document(
    number=0, text="Ann Lee paints.", kind="normal", generator="gpt-x", failing=False
):
    """A revised, a dropped and a failed claim; verdicts of SAFE, with evidence and searches."""
    shared = {"sentence": 0, "source": f"{text} She is a person."}
    claims = [
        Claim(id="c0", text=text, original="She paints.", **shared),
        Claim(id="c1", text="Ann is a person.", **shared),
        Claim(id="c2", text="Sure, here!", failed=f"no list: {text}", **shared),
    ]
    document = Document(id=f"d{number}", topic=text, text=text, kind=kind, generator=generator)
    weighed = {"weight": 1.25, "document_entailment": 0.97}
    selections = [
        Selection(claim="c0", selected=True, reason="selected", **weighed),
        Selection(claim="c1", selected=False, reason="duplicate", duplicate_of="c0", **weighed),
    ]
    judged = {"assessor": "safe", "name": "default"}
    found = {"p": 0.75, "evidence": ["p1", "web"], "steps": [{"query": f"who is {text}"}]}
    verdicts = [
        Verdict(claim="c0", label="supported", **judged, **found),
        Verdict(claim="c1", label="failed", reason=f"rating: {text}", **judged),
    ]
    if failing:
        verdicts = [v.model_copy(update={"label": "failed", "reason": "x"}) for v in verdicts]
    return Scored(
        document=document,
        claims=claims,
        selections=selections,
        passages=[Passage(id="p1", title=text, text=text * 100, url=f"https://a.example/{text}")],
        verdicts=verdicts,
        scores=[score_document(document, claims, verdicts, s) for s in (None, {"c0"})],
    )


def scored_run(folder, documents, **provenance):
    write_jsonl(folder / "scored.jsonl", documents)
    results = summarise(documents, "c0ffee", "biographies", k=2)
    given = {"config": {"pipeline": {"gamma": 10}}, "k": 2} | provenance
    file = ResultFile(experiment="score", provenance=given, results=results)
    write_results(folder / "results.json", file)
    return folder


def test_page_of_scored_documents(tmp_path):
    used = {"answers": 1234, "failed": 5, "prompt_tokens": 9, "completion_tokens": 8, "cost": 0.25}
    usage = [{"model": {"model": "gpt-x", "base_url": "http://a.example"}, **used}]
    prompts = {"safe_rating.jinja": "feed"}
    documents = [scored_document(), scored_document(1, failing=True)]
    folder = scored_run(tmp_path, documents, usage=usage, prompts=prompts)
    text = page_of(folder).text
    # Of six claims in two texts one is supported, two have no list and three no verdict.
    said = "1.000 without Core (n = 1, 5 failed); 1.000 with Core (n = 1, 3 failed)."
    assert f"Precision of normal texts (gpt-x): {said}" in text
    assert "with Core 1.000 n = 1, 3 failed 1.000 n = 1, 3 failed" in text
    assert "gpt-x 1,234 5 9 8 0.25" in text
    assert "safe_rating.jinja feed" in text
    assert "K = 2." in text
    assert "All 2 documents." in text
    assert "Ann Lee paints. (was: She paints.)" in text
    assert "✗ duplicate of “Ann Lee paints.” weight +1.25, entailed 0.97" in text
    assert "safe: supported p = 0.75 [1][web] searched: who is Ann Lee paints." in text
    assert "safe: failed (rating: Ann Lee paints.)" in text
    assert "Sure, here! – failed (no list: Ann Lee paints.)" in text
    assert "[1] Ann Lee paints. https://a.example/Ann Lee paints. Ann Lee paints.Ann Lee" in text
    assert "safe, without Core: precision –, 0 of 0 judged claims supported, 3 failed." in text
    first = (folder / "report.html").read_bytes()
    assert build_report(folder).read_bytes() == first


def test_page_of_scored_documents_is_bounded_and_escaped(tmp_path):
    kinds = ["normal"] * 60 + [ATTACK] * 60
    documents = [scored_document(n, f"{ATTACK}{n}", kind, ATTACK) for n, kind in enumerate(kinds)]
    many = [Claim(id=f"x{n}", text=f"Claim {n}.") for n in range(100)]
    documents[0] = documents[0].model_copy(update={"claims": many})
    usage = [{"model": {"model": ATTACK}, "answers": 1}]
    more = {"usage": usage, "models": [{"model": ATTACK}], "prompts": {ATTACK: ATTACK}}
    path = build_report(scored_run(tmp_path, documents, **more))
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "img", "a"})
    assert not any(name.startswith("on") for _, given in page.elements for name in given)
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    assert "script-src 'none'" in policy
    shown = [n for n in range(120) if f"who is {ATTACK}{n} " in page.text]
    assert shown == [*range(1, 25), *range(60, 85)]  # the first one's claims are others
    assert "50 of 120 documents: the first of each kind and generator." in page.text
    assert sum(a.get("class") == "document" for _, a in page.elements) == 50
    assert "40 more claims are not shown." in page.text
    assert ("Claim 59." in page.text, "Claim 60." in page.text) == (True, False)
    write_jsonl(tmp_path / "scored.jsonl", [documents[1], {"document": {}}])
    with pytest.raises(UserError, match=r"scored\.jsonl:2: document\.id"):
        build_report(tmp_path)
    (tmp_path / "scored.jsonl").unlink()
    assert "the run folder has no scored.jsonl" in page_of(tmp_path).text
