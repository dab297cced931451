"""The D-FActScore experiment over texts whose every value is known by hand."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from eval.commands.report import build_report
from eval.decompose.given import Given
from eval.experiments.dfactscore import dfactscore_values
from eval.experiments.dfactscore.dfactscore import DFActScore
from eval.experiments.dfactscore.page_views import Views
from eval.metrics.citations import Citations
from eval.metrics.judged_texts import JudgedClaim, JudgedText, output_type
from eval.verify.dfactscore.local_groups import LocalGroups
from eval.verify.dfactscore.stage import DFActScore as Verifier
from records import UserError, read_records, write_jsonl

PAGES = {
    "Ann Lee (painter)": "Ann Lee was a painter from Oslo who won the Brush.",
    "Ann Lee (politician)": "Ann Lee was a politician from Rome who sat in the house.",
}
FACTS = {
    "painter": ["Ann Lee was a painter.", "Ann Lee was from Oslo.", "Ann Lee won the Brush."],
    "politician": ["Ann Lee was a politician.", "Ann Lee sat in the house."],
}


class Words:
    """An entailment model: what has no new word is entailed. Dies once at a word."""

    def __init__(self, dies_at=None):
        self.dies_at = dies_at
        self.asked = 0

    def relations(self, pairs):
        self.asked += len(pairs)
        if self.dies_at and any(self.dies_at in h for _, h in pairs):
            self.dies_at = None
            raise KeyboardInterrupt
        words = [[set(re.findall(r"\w+", text.lower())) for text in pair] for pair in pairs]
        return np.array([[0.9, 0.1, 0] if h <= p else [0.2, 0.7, 0.1] for p, h in words])


def text(generator, name, sentences, number=0, **more):
    """A text of (sentence, claims); the passages are the two pages, [1] and [2]."""
    claims = [
        {"id": f"c{i}.{k}", "text": c.replace("Ann Lee", name), "source": s, "sentence": i}
        for i, (s, facts) in enumerate(sentences)
        for k, c in enumerate(facts)
    ]
    passages = [
        {"id": f"p{k}", "title": t.replace("Ann Lee", name), "text": p.replace("Ann Lee", name)}
        for k, (t, p) in enumerate(PAGES.items())
    ]
    body = " ".join(s.replace("Ann Lee", name) for s, _ in sentences)
    row = {"id": f"d{number}", "topic": name, "generator": generator, "text": body}
    return {**row, "claims": claims, "passages": passages, **more}


def documents(tmp_path):
    merged = [
        ("Ann Lee was a painter from Oslo [1].", FACTS["painter"][:2]),
        ("She sat in the house [2].", ["Ann Lee sat in the house."]),
        ("She won nothing [9].", ["Ann Lee won nothing."]),
    ]
    apart = [
        ("Ann Lee was a painter from Oslo. [1]", FACTS["painter"][:2]),
        ("Another Ann Lee was a politician. [2]", FACTS["politician"][:1]),
    ]
    sentences = [("Ann Lee was a painter from Oslo.", FACTS["painter"][:2])]
    silent = [("I could not find any information about Ann Lee.", [])]
    rows = []
    for name in ("Ann Lee", "Eva Moe"):
        rows += [text("merging", name, merged, len(rows)), text("careful", name, apart, len(rows))]
    rows += [text("careful", "Una Ray", sentences, 8), text("careful", "Ida Orr", silent, 9)]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def experiment(paths, model=None, **options):
    model = model or Words()
    verify = Verifier(model, LocalGroups())
    options.setdefault("citations", Citations(model))
    return DFActScore(paths, Given(), verify, **options)


def run(tmp_path, paths, model=None, output="run", **options):
    folder = tmp_path / output
    config = {name: options.get(name) for name in ("people", "views", "names")}
    file = experiment(paths, model, **options).run(folder, config | {"documents": paths})
    keys = ("metric", "variant", "against", "kind", "generator")
    return {tuple(getattr(r, key) for key in keys): r for r in file.results}, folder


def of(metric, kind, generator, against=None):
    """The key of a value; a metric, or a metric and its variant."""
    name, variant = (metric, None) if isinstance(metric, str) else metric
    return name, variant, against, kind, generator


ALONE, GROUPED = ("factual_precision", "independent"), ("factual_precision", "grouped")


def test_values_by_hand(tmp_path):
    actual, folder = run(tmp_path, [documents(tmp_path)])

    def value(metric, generator, kind="automatic"):
        return actual[of(metric, kind, generator)].value

    assert value(ALONE, "merging") == 0.75
    assert value(GROUPED, "merging") == 0.5
    assert value("gap", "merging") == 0.25
    assert value(GROUPED, "careful") == 1
    assert value("biographies", "merging") == value("linked_people", "merging") == 1
    assert value("entities", "merging") == 2
    assert value("biographies", "careful") == pytest.approx(5 / 3)
    assert value(("output_type", "merged"), "merging") == 1
    assert value(("output_type", "kept apart"), "careful") == pytest.approx(2 / 3)
    assert value(("output_type", "one person"), "careful") == pytest.approx(1 / 3)
    assert value("respond_ratio", "careful") == 0.75
    # Of the merged text one sentence has a citation that is not there.
    assert value("citation_recall", "merging") == pytest.approx(1 / 3)
    assert value("citation_precision", "merging") == pytest.approx(1 / 3)
    # The model knows no "another", and the third text has no citation.
    assert value("citation_recall", "careful") == pytest.approx(1 / 3)
    assert value("citation_precision", "careful") == pytest.approx(1 / 3)
    assert value("gap", "all") == pytest.approx(0.5 / 5)
    row = actual[of("gap", "automatic", "careful")]
    assert (row.n, row.failed) == (3, 0)
    assert actual[of("gap", "automatic", "merging")].ci95 == (0.25, 0.25)
    texts = read_records(folder / "texts.jsonl", JudgedText)
    assert len(texts) == 6
    assert output_type(texts[0]) == "merged"
    page = build_report(folder).read_text()
    with open(folder / "tables.csv", newline="") as table:
        assert {row["metric"] for row in csv.DictReader(table)} == {metric for metric, *_ in actual}
    assert "| merging | automatic | 0.750 [0.750, 0.750]" in (folder / "tables.md").read_text()
    assert "Ann Lee: 0.75 → 0.50 merged" in page
    assert page.count("<svg ") == 2


def test_file_and_people_verdicts_are_compared(tmp_path):
    path = documents(tmp_path)
    texts = []
    for number, name in ((0, "Ann Lee"), (2, "Eva Moe")):
        claims = [
            JudgedClaim(text=f"{name} {t}.", group=group, entity=e, grouped=s, independent=s)
            for t, group, e, s in [
                ("was a painter", "g0", f"{name} (painter)", True),
                ("was from Oslo", "g0", f"{name} (politician)", True),
                ("sat in the house", "g0", f"{name} (painter)", False),
                ("was tall", "g1", None, False),
            ]
        ]
        key = {"source": "people", "topic": name, "generator": "merging"}
        texts.append(JudgedText(id=f"merging/d{number}", claims=claims, **key))
    write_jsonl(tmp_path / "people.jsonl", texts)
    actual, _ = run(tmp_path, [path], people=[str(tmp_path / "people.jsonl")])
    assert actual[of(GROUPED, "people", "merging")].value == 0.5
    assert actual[of("biographies", "people", "merging")].value == 2
    assert actual[of("gap", "automatic on people's texts", "merging")].value == 0.25
    place = ("automatic", "merging", "people")
    assert actual[of(("balanced_accuracy", "grouped"), *place)].value == 1
    alone = actual[of(("balanced_accuracy", "independent"), *place)]
    assert (alone.value, alone.failed) == (0.5, 2)
    assert actual[of("linked_alike", *place)].value == 0.5
    write_jsonl(tmp_path / "other.jsonl", [texts[0].model_copy(update={"id": "x"})])
    with pytest.raises(UserError, match="is not in documents"):
        run(tmp_path, [path], output="other", people=[str(tmp_path / "other.jsonl")])
    with pytest.raises(UserError, match="judged twice"):
        run(tmp_path, [path], output="twice", people=[str(tmp_path / "people.jsonl")] * 2)


def ambigbio(tmp_path):
    """AmbigBio's published form, with its authors' verdicts."""
    painter, politician = PAGES
    section = f"Title: {painter}\n{PAGES[painter]}\nTitle: {politician}\n{PAGES[politician]}"
    alone = [(FACTS["painter"][0], painter), (FACTS["politician"][0], politician), ("No.", None)]
    grouped = [(FACTS["painter"][0], painter), (FACTS["politician"][0], None), ("No.", None)]
    rows = []
    for number, name in enumerate(("Ann Lee", "Ann Lee Moe")):
        atoms = [
            [
                {"atom": a, "is_supported": t is not None, "supporting_topic": t}
                for a, t in atoms_of_form
            ]
            for atoms_of_form in (alone, grouped)
        ]
        cited = [("Ann Lee was a painter.", 1), ("She was tall.", 0)]
        rows.append(
            {
                **{"qid": number, "name": name, "generator": "gen"},
                "output": "Ann Lee was a painter. She was tall. She was a politician.",
                **{"atoms_independent": atoms[0], "atoms_grouped": atoms[1]},
                "citations": [{"claim": c, "passage": [section], "entailed": e} for c, e in cited],
            }
        )
    path = tmp_path / "ambigbio.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_ambigbio_s_own_verdicts(tmp_path):
    path = ambigbio(tmp_path)
    actual, _ = run(tmp_path, {"gen A": path})
    file = {key[:2]: r.value for key, r in actual.items() if key[3] == "file"}
    assert file[ALONE] == pytest.approx(2 / 3)
    assert file[GROUPED] == pytest.approx(1 / 3)
    assert (file["entities", None], file["linked_people", None]) == (2, 1)
    assert file["citation_recall", None] == pytest.approx(1 / 3)
    assert ("citation_precision", None) not in file
    accuracy = ("balanced_accuracy", "grouped")
    for metric in (accuracy, "linked_alike", "citation_auroc", "citation_accuracy"):
        assert actual[of(metric, "automatic", "gen A", "file")].value == 1
    # The file determines what is cited, not the brackets in its texts.
    file = tmp_path / "brackets.jsonl"
    file.write_text(Path(path).read_text().replace("She was tall. She", "She was tall [3] . She"))
    repeated, _ = run(tmp_path, {"gen A": str(file)}, output="again")
    # Some released files do not name the people that groups are linked to.
    file.write_text(re.sub('(_topic": )"[^"]+"', r"\1null", Path(path).read_text()))
    unlinked, _ = run(tmp_path, {"gen A": str(file)}, output="unlinked")
    assert {"entities", "linked_people"} & {k[0] for k in unlinked if k[3] == "file"} == {
        "entities"
    }
    assert repeated[of("citation_recall", "automatic", "gen A")].value == pytest.approx(1 / 3)


def released(tmp_path):
    """The three released files about the same texts: generations, verdicts, citations."""
    painter, politician = PAGES
    docs = [{"title": title, "text": text} for title, text in PAGES.items()]
    texts = ["Ann Lee was a painter [1]. She was tall.", "She sat. [2]", "", "Ann Lee had a cat."]
    data = [{"question": "Tell me a bio of Ann Lee", "output": t, "docs": docs} for t in texts]
    # An atom that stands twice counts twice.
    atoms = [("A.", painter), ("A.", None), ("B.", politician)], [("C.", painter)]
    alone = [
        [{"atom": a, "is_supported": t is not None, "supporting_topic": t} for a, t in group]
        for group in atoms
    ]
    grouped = [alone[0][1:], alone[1]]
    passage = [f"Title: {painter}\n{PAGES[painter]}"]
    log = [
        {"qid": q, "question": data[q]["question"], "output": texts[q], "model_type": "NLI"}
        | {"claim": c, "passage": passage, "model_output": entailed}
        for q, c, entailed in ((0, "Ann Lee was a painter [1].", 1), (1, "She sat.", 0))
    ]
    verdicts = {
        **{"score": 0.5, "init_score": 0.75, "decisions": [*alone, None, None]},
        **{"global_decisions": [*grouped, None, None], "num_groups": 1.5, "nan": 0.0},
    }
    wholes = {
        "x.json": {"args": {}, "data": data},
        "x_factscore_output.json": verdicts,
        "x.json.score": {"citation_rec": 33.5, "citation_prec": 40.0, "autoais_log": log},
    }
    for name, whole in wholes.items():
        (tmp_path / name).write_text(json.dumps(whole))
    return [str(tmp_path / name) for name in wholes]


def run_without_models(tmp_path, documents, output="given", **options):
    """A run without any model."""
    made = DFActScore(documents, **options)
    folder = tmp_path / output
    file = made.run(folder, {"documents": documents})
    return {(r.metric, r.variant): r for r in file.results}, folder


def test_released_verdicts_give_the_paper_s_values_without_a_model(tmp_path):
    files = released(tmp_path)
    actual, folder = run_without_models(tmp_path, {"gen": files})
    assert {row.kind for row in actual.values()} == {"file"}
    assert actual[ALONE].value == pytest.approx((2 / 3 + 1) / 2)
    assert actual[GROUPED].value == pytest.approx((1 / 2 + 1) / 2)
    assert actual["entities", None].value == 1.5
    assert actual["linked_people", None].value == 1
    assert (actual["respond_ratio", None].value, actual[ALONE].n) == (0.5, 1)
    # The empty text does not count, one that cites nothing does.
    assert actual["citation_recall", None].value == pytest.approx((1 / 2 + 0 + 0) / 3)
    texts = read_records(folder / "texts.jsonl", JudgedText)
    assert [text.responded for text in texts] == [True, True, False, False]
    page = build_report(folder).read_text()
    assert "As the files report" in page
    row = "| gen | 0.750 | 0.500 | 1.500 | 0.335 | 0.400 |"
    assert row in (folder / "tables.md").read_text()
    # The same from the citations alone.
    cited, _ = run_without_models(tmp_path, {"gen": [files[2]]}, "cited")
    assert cited["citation_recall", None].value == pytest.approx(1 / 4)
    assert {("claims", None), ALONE, ("respond_ratio", None)}.isdisjoint(cited)


def test_released_texts_are_judged_by_their_own_passages(tmp_path):
    files = released(tmp_path)
    actual, folder = run(tmp_path, {"gen": files[:2]})
    # "[1]" is the first of the five documents that the text was written from.
    texts = [t for t in read_records(folder / "texts.jsonl", JudgedText) if t.source == "automatic"]
    assert [[s.recalled for s in text.citations] for text in texts] == [
        [True, False], [False], [], [False],
    ]  # fmt: skip
    assert [text.titles for text in texts[:2]] == [list(PAGES)] * 2
    assert texts[0].claims[0].text == "A."
    # The empty text does not respond; of the last one its authors have no claims.
    assert [text.responded for text in texts] == [True, True, False, True]
    assert actual[of("respond_ratio", "file", "gen")].value == 0.5


def test_failed_texts_have_no_value():
    claims = [
        JudgedClaim(text="a", group="g0", grouped=True, independent=True, alone="p"),
        JudgedClaim(text="b", group="g1", grouped=None, independent=True, failed=["grouped"]),
        JudgedClaim(text="c", group="g1", failed=["independent", "grouped"]),
    ]
    automatic = JudgedText(
        source="automatic", id="x", topic="X", generator="g", claims=claims, failed=1
    )

    def values(texts):
        rows = dfactscore_values.compute_values(texts, None, seed=0)
        return {(row["metric"], row["variant"], row.get("against")): row for row in rows}

    actual = values([automatic])
    single = {name: row for (name, variant, _), row in actual.items() if variant is None}
    assert actual[*ALONE, None]["failed"] == 1 + 1
    assert actual[*GROUPED, None]["failed"] == single["gap"]["failed"] == 1 + 2
    assert (single["claims"]["failed"], single["respond_ratio"]["failed"]) == (1, 0)
    # The difference is that of the claims that have both verdicts.
    assert (single["gap"]["value"], single["biographies"]["value"]) == (0, 2)
    claims[2] = claims[2].model_copy(update={"group": None})
    unknown = automatic.model_copy(update={"claims": claims})
    actual = values([unknown])
    assert actual["biographies", None, None]["value"] is None
    assert actual["output_type", "one person", None]["value"] is None
    # Against others, a claim without a verdict here is neither right nor wrong.
    theirs = [
        JudgedClaim(text=t, group="g0", entity="p", grouped=s, independent=s)
        for t, s in (("a", True), ("b", True), ("d", False))
    ]
    claims[0] = claims[0].model_copy(update={"entity": "p"})
    other = JudgedText(source="people", id="x", topic="X", generator="g", claims=theirs)
    silent = JudgedText(source="people", id="y", topic="Y", generator="g", claims=[])
    quiet = automatic.model_copy(update={"id": "y", "topic": "Y", "claims": []})
    sources = [automatic.model_copy(update={"claims": claims}), quiet, other, silent]
    alike = values(sources)["linked_alike", None, "people"]
    assert (alike["value"], alike["n"], alike["failed"]) == (1, 1, 1)


def test_a_correlation_with_views_counts_the_texts_that_have_both(tmp_path):
    titles = [f"Ann Lee ({number})" for number in range(4)]
    rows = [{"title": title, "views": 10**place} for place, title in enumerate(titles)]
    write_jsonl(tmp_path / "views.jsonl", rows)
    texts = []
    for place, alone in enumerate((True, False, True, None)):
        atom_fields = {"group": "g0", "entity": titles[place], "independent": alone}
        claims = [JudgedClaim(text=str(n), grouped=n <= place, **atom_fields) for n in range(4)]
        name = {"id": str(place), "topic": f"t{place}", "generator": "g"}
        texts.append(JudgedText(source="automatic", **name, claims=claims, titles=titles))
    rows = dfactscore_values.compute_values(texts, Views(tmp_path / "views.jsonl"), 0)
    actual = {row["metric"]: (row["n"], row["failed"]) for row in rows}
    assert actual["views_of_the_person"] == (4, 0)
    assert actual["spearman_of_factual_precision"] == (4, 0)
    # Of the last text nobody could tell FActScore.
    assert actual["spearman_of_gap"] == (3, 1)


def test_page_views(tmp_path):
    path = documents(tmp_path)
    people = [
        {"title": f"{name} ({job})", "views": views}
        for name, pair in (("Ann Lee", (900, 5)), ("Eva Moe", (7, 1000)))
        for job, views in zip(("painter", "politician"), pair, strict=True)
    ]
    write_jsonl(tmp_path / "views.jsonl", people)
    actual, _ = run(tmp_path, [path], views=str(tmp_path / "views.jsonl"))
    # One biography each of Ann Lee and of Eva Moe, of whom two people were retrieved.
    first = actual[of("most_viewed", "automatic", "merging")]
    assert (first.value, first.n, first.failed) == (0.5, 2, 0)
    assert actual[of("most_viewed_by_chance", "automatic", "merging")].value == 0.5
    # The careful texts tell of two people, or of one of whose pages nobody gave the views.
    assert of("most_viewed", "automatic", "careful") not in actual
    seen = actual[of("views_of_the_person", "automatic", "careful")]
    assert (seen.value, seen.failed) == (pytest.approx(np.mean(np.log10([901, 8]))), 1)
    # A page that was not retrieved is no choice, and a single page leaves none.
    names = [{"name": "Ann Lee", "candidates": [*people[:2], {"title": "x", "views": 1000}]}]
    names.append({"name": "Eva Moe", "candidates": people[2:3]})
    write_jsonl(tmp_path / "names.jsonl", names)
    actual, _ = run(tmp_path, [path], output="two", views=str(tmp_path / "names.jsonl"))
    first = actual[of("most_viewed", "automatic", "merging")]
    assert (first.value, first.n, first.failed) == (1, 1, 0)
    averages = [{"title": "a", "views": 0.4}, {"title": "b", "views": "0.2"}]
    write_jsonl(tmp_path / "averages.jsonl", averages)
    assert Views(tmp_path / "averages.jsonl").is_first("b", ["a", "b"]) == 0
