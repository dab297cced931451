"""The report: what it says is in the run folder, and nothing in the run folder can run in it."""

import csv
from io import StringIO
from xml.etree import ElementTree

import pytest

from eval.commands.experiment import EXPERIMENTS
from eval.commands.report import build_report
from eval.commands.report import page_of as page_of_experiment
from eval.metrics.corpus import summarise
from eval.metrics.document import score_document
from eval.pipeline import Scored
from eval.report.declare import Cell, Figure, Table, TextTable
from eval.report.render import write_page
from eval.report.tables import as_csv, latex_table, named_apart, plain_table, table_csv
from eval.stages import Selection
from records import (
    Claim,
    Document,
    Passage,
    Result,
    ResultFile,
    Verdict,
    write_jsonl,
    write_results,
)
from tests.eval.html_page import Page

ATTACK = "</script><script>alert('gamed')</script><img src=x onerror=alert(1)>"


def page_of(folder):
    return Page(build_report(folder).read_text(encoding="utf-8"))


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
    fields = {"p": 0.75, "evidence": ["p1", "web"], "steps": [{"query": f"who is {text}"}]}
    verdicts = [
        Verdict(claim="c0", label="supported", **judged, **fields),
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
        scores=[score_document(True, claims, verdicts, s) for s in (None, {"c0"})],
    )


def scored_run(folder, documents, **provenance):
    write_jsonl(folder / "scored.jsonl", documents)
    results = summarise(documents, "c0ffee", "biographies", k=2)
    fields = {"config": {"pipeline": {"gamma": 10}}, "k": 2} | provenance
    file = ResultFile(experiment="score", provenance=fields, results=results)
    write_results(folder / "results.json", file)
    return folder


def test_page_of_scored_documents_is_bounded_and_escaped(tmp_path):
    kinds = ["normal"] * 60 + [ATTACK] * 60
    documents = [scored_document(n, f"{ATTACK}{n}", kind, ATTACK) for n, kind in enumerate(kinds)]
    rows = [Claim(id=f"x{n}", text=f"Claim {n}.") for n in range(100)]
    documents[0] = documents[0].model_copy(update={"claims": rows})
    counts = dict.fromkeys(("answers", "failed", "prompt_tokens", "completion_tokens"), 1)
    usage = [{"model": {"model": ATTACK}, **counts}]
    more = {"usage": usage, "models": [{"model": ATTACK}], "prompts": {ATTACK: ATTACK}}
    path = build_report(scored_run(tmp_path, documents, **more))
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "img", "a"})
    assert not any(name.startswith("on") for _, entry in page.elements for name in entry)
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    assert "script-src 'none'" in policy
    displayed = [n for n in range(120) if f"who is {ATTACK}{n} " in page.text]
    assert displayed == [*range(1, 30), *range(60, 90)]  # the first one's claims are others
    assert "60 of 120." in page.text
    assert sum(a.get("class") == "document" for _, a in page.elements) == 60
    assert "40 more claims are not shown." in page.text
    assert ("Claim 59." in page.text, "Claim 60." in page.text) == (True, False)
    (tmp_path / "scored.jsonl").unlink()
    assert "document" not in {a.get("class") for _, a in page_of(tmp_path).elements}


def written_page(name, folder):
    """The page of results that each declared table of an experiment shows, with hostile names."""
    page = page_of_experiment(name)
    names = {"kind": ATTACK, "generator": ATTACK, "domain": ATTACK, "n": 1, "failed": 0}
    shared = {**names, "value": 0.5, "ci95": (0.4, 0.6), "config_hash": "c"}
    results = []
    for table in (table for table in page.tables if isinstance(table, Table)):
        keys = table.heads or table.metrics
        fields = table.columns if table.heads else ("metric",)
        where = {k: v[0] if isinstance(v, tuple) else v for k, v in table.where.items()}
        where = {k: ATTACK if callable(v) else v for k, v in where.items()}
        for key in keys:
            by_name = dict(zip(fields, key if isinstance(key, tuple) else (key,), strict=True))
            metric = {"metric": next(iter(table.metrics), "m")}
            results.append(Result(**shared | {"assessor": ATTACK} | metric | where | by_name))
    file = ResultFile(experiment=name, provenance={}, results=results)
    return file, write_page(page, file, folder).read_text(encoding="utf-8")


# The page of core_settings needs the settings in its provenance: tests/eval/test_core_settings.py.
DECLARED = {*EXPERIMENTS, "score"} - {"core_settings", "optimise", "robustness"}


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_every_declared_table_is_on_the_page_and_no_name_runs_in_it(tmp_path, name):
    file, html = written_page(name, tmp_path)
    page = Page(html)
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "img"})
    tables = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "<img" not in tables
    declared = [t for t in page_of_experiment(name).tables if isinstance(t, Table)]
    for table in declared:
        if not any(map(callable, table.where.values())):
            assert f"## {table.title}" in tables
    for path in (tmp_path / "figures").glob("*.svg"):
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
        assert not tags & {"script", "img", "image", "foreignObject"}
    assert (tmp_path / "tables.csv").read_text().count("\n") == 1 + len(file.results)


# Tables as files


def test_a_table_as_csv_latex_and_for_a_terminal():
    cell = Cell("1.5", "[1, 2]", "n = 3", "gamed", False)
    table = TextTable("T & x", "100 %", ["Kind_of", "A"], [["a_b", cell], ["c", Cell("–")]])
    assert table_csv(table).splitlines() == [
        "Kind_of,A,A: interval,A: mark,A: note",
        'a_b,1.5,"[1, 2]",gamed,n = 3',
        "c,–,,,",
    ]
    latex = latex_table(table)
    assert latex.startswith("% T & x\n% 100 %\n\\begin{tabular}{lr}\n")
    assert r"Kind\_of & A \\" in latex
    assert r"a\_b & 1.5 [1, 2] gamed (n = 3) \\" in latex
    assert plain_table(["k", "v"], [["long", "1"], ["s", ""]]).splitlines() == [
        "k     v",
        "long  1",
        "s",
    ]


def test_no_text_is_a_formula_and_numbers_stay_numbers():
    acts = ["=1+1", "+A1", "-cmd", "@SUM(1)", "\tx", " =1", "＝1"]
    texts = [*acts, "-0.5", "+3.1 %", "-1e-05", "a=b", ""]
    written = as_csv([{"=head": text, "b": -0.5} for text in texts])
    assert as_csv([{"a": "x\r=1"}]) == 'a\n"x\n=1"\n'
    head, *rows = csv.reader(StringIO(written, newline=""))
    assert head == ["'=head", "b"]
    assert [text for text, _ in rows] == [f"'{text}" for text in acts] + texts[len(acts) :]
    assert {number for _, number in rows} == {"-0.5"}


def test_names_of_files_are_plain_and_told_apart():
    assert named_apart(["A/../b", "a b", "", "…"]) == ["a_b", "a_b_2", "unnamed", "unnamed_2"]


def test_tables_and_figures_are_declared_by_fields():
    shared = {"domain": "d", "ci95": None, "config_hash": "c", "n": 3, "failed": 0}
    results = [
        Result(metric="m", kind="b", variant=2, value=0.5, **shared),
        Result(metric="m", kind="a", variant=1, value=0.25, **shared),
        Result(metric="m", kind="b", variant=1, value=0.75, **(shared | {"n": 2})),
        Result(metric="m", kind="b", variant=1, against="x", value=1e-5, **shared),
        Result(metric="other", kind="b", value=1, **shared),
    ]
    declared = Table(
        "T",
        {"kind": "Kind", "generator": "Generator", "variant": "k"},
        columns=["metric", "against"],
        metrics={"m": "M"},
        unit={"m": "p"},
        mark=lambda row: ("big", True) if row.value > 0.5 else ("", None),
    )
    table = declared.of(results)
    assert table.head == ["Kind", "k", "M", "M, against x", "n", "failed"]
    assert [[str(part) for part in row] for row in table.rows] == [
        ["b", "2", "0.5000", "–", "3", "0"],
        ["b", "1", "0.7500 big (n = 2)", "1.0e-05", "3", "0"],
        ["a", "1", "0.2500", "–", "3", "0"],
    ]
    (plot,) = Figure("F", "variant", ["kind"], {"m": "M"}, kind="lines").of(results)
    assert plot.series == {"b": [(1, 0.75, None), (2, 0.5, None)], "a": [(1, 0.25, None)]}
    first, second = Figure("F", "kind", ["metric"], each=["against"]).of(results)
    assert (first.title, second.title) == ("F", "F (against x)")
    assert first.series["m"] == [("b", 0.75, None), ("a", 0.25, None)]
