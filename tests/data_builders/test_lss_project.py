"""Label Studio there and back, votes, agreement, and the dataset that comes of them."""

import json
from collections import Counter

import datasets
import pytest

from components.words import join_words, split_words
from data_builders.annotated.labelstudio_exports import values_of
from data_builders.annotated.lss.lss import Lss
from data_builders.annotated.lss.lss_answers import read_answers
from data_builders.annotated.lss.lss_project import LssProject
from data_builders.annotated.lss.lss_tasks import (
    FORM,
    Unreadable,
    from_values,
    to_span,
    to_task,
)
from data_builders.annotated.lss.votes import merge_gold, vote
from eval.metrics.lss_agreement import agreement, as_markdown, merge
from records import Annotation, BadInput, LssExample, read_records, write_jsonl

CLAIM = "In 1931 Ann Lee, a painter from Oslo, won the Silver Brush."


def example(*annotations, claim=CLAIM, reference="Ann Lee won the Silver Brush.", **more):
    made = [a if isinstance(a, Annotation) else Annotation(lss=a) for a in annotations]
    return LssExample(reference=reference, claim=claim, annotations=made, **more)


RECORDS = [
    example(
        Annotation(lss="Ann Lee won the Silver Brush.", lss_star="Ann Lee won it.", rating=4),
        Annotation(lss="ann lee  won the Brush", rating=3, annotator="w2", difficult=True),
        id="a",
        title="Ann Lee",
        url="https://page.example/1",
    ),
    # No subsequence; nothing supported; everything; a rating between two stars.
    example("Lee paints well", reference="Lee.", id="b"),
    example(Annotation(lss="", lss_star="", rating=1, unrelated=True), reference="Else.", id="c"),
    example(Annotation(lss=CLAIM, rating=4.5), reference="All of it.", section=""),
]


def exported(examples):
    """What Label Studio's full export holds after ``to_task(…, 'annotations')`` was imported."""
    tasks = [to_task(e, "annotations") for e in examples]
    number = 0
    for place, task in enumerate(tasks, 1):
        task |= {"id": place, "predictions": []}
        for entry in task["annotations"]:
            number += 1
            entry |= {"id": number, "completed_by": 1}
    return json.loads(json.dumps(tasks))


def write(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def test_exported_records_are_read_unchanged(tmp_path):
    path = write(tmp_path / "export.json", exported(RECORDS))
    exports = (tmp_path / "export.json").read_bytes()
    (tmp_path / "export.json").write_bytes(b"\xef\xbb\xbf" + exports)  # as some editors save it
    dropped = Counter()
    assert merge(read_answers(path, dropped), dropped) == RECORDS
    assert +dropped == {}


def answer(*marks, star=None, rating=None, flags=(), extra=()):
    result = [
        {"from_name": "removed", "value": {"start": s, "end": e, "text": CLAIM[s:e]}}
        for s, e in marks
    ]
    if star is not None:
        result.append({"from_name": "lss_star", "value": {"text": [star]}})
    if rating is not None:
        result.append({"from_name": "rating", "value": {"rating": rating}})
    if flags:
        result.append({"from_name": "flags", "value": {"choices": list(flags)}})
    return values_of({"result": [*result, *extra]})


def test_marks_become_an_lss():
    # A mark that ends inside a word takes the whole word; marks may overlap.
    result = from_values(
        answer((0, 5), (3, 7), (15, 37), rating=4, flags=["difficult"]), CLAIM, "w"
    )
    assert result == Annotation(
        lss="Ann Lee won the Silver Brush.", rating=4, annotator="w", difficult=True
    )
    assert from_values(answer(rating=5, star="All."), CLAIM, None) == Annotation(
        lss=CLAIM, lss_star="All.", rating=5
    )
    assert from_values(answer(flags=["unrelated"]), CLAIM, None).lss == ""


def test_marks_in_utf_16_units_are_read():
    claim = "🎉👩‍🔬 Ann Lee won twice."  # three characters of two units
    start = claim.index("twice")
    for shift in (0, 3):
        mark = {"start": start + shift, "end": start + shift + 5, "text": "twice"}
        assert to_span(mark, claim) == (start, start + 5)
    with pytest.raises(Unreadable):
        to_span({"start": start + 1, "end": start + 6, "text": "twice"}, claim)


def test_unusable_annotations_are_counted(tmp_path):
    tasks = exported(RECORDS)
    tasks[0]["annotations"][0]["was_cancelled"] = True
    tasks[2]["annotations"][0]["result"] = []
    tasks[3]["annotations"] = []
    dropped = Counter()
    result = read_answers(write(tmp_path / "e.json", tasks), dropped)
    assert [e.id for e in result] == ["a", "b"]
    assert result[0].annotations == RECORDS[0].annotations[1:]
    assert dropped == {
        "annotation that was skipped": 1,
        "annotation without any answer": 1,
        "task without a usable annotation": 2,
    }


def test_published_table_is_read(tmp_path):
    path = tmp_path / "LSS.csv"
    path.write_text(
        'worker_id,task_id,task_response_id,Statement,Reference,"Is it, well, unrelated?",'
        '"Remove words","Now mend it",Hard?,"Rate it, 1-5"\n'
        'w1,t1,r1,"A, b c.",Ref one,,A c.,An a c.,,3 - Partially Supported\n'
        'w2,t1,r2,"A, b c.",Ref one,,A,,Yes,2\n'
        "w1,t2,r3,D e f.,Ref two,TRUE,,,No,\n"
        "w1,t3,r4,G h.,Ref two,,G h.,G h.,,5 - Completely Supported\n"
        "w1,t4,r5,I j.,Ref two,Yes,,,,1- Not supported\n"
    )
    dropped = Counter()
    first, second, *remaining = merge(read_answers(str(path), dropped), dropped)
    assert [(e.annotations[0].lss, e.annotations[0].rating) for e in remaining] == [
        ("G h.", 5),
        ("", 1),
    ]
    assert (first.claim, first.reference, first.id) == ("A, b c.", "Ref one", "t1")
    assert first.annotations == [
        Annotation(lss="A c.", lss_star="An a c.", rating=3, annotator="w1"),
        Annotation(lss="A", lss_star="", rating=2, annotator="w2", difficult=True),
    ]
    assert second.annotations == [Annotation(lss="", lss_star="", annotator="w1", unrelated=True)]
    whole = path.read_text()
    for wrong in ("three", "33 - Partially Supported", "Partially Supported", "6 - More"):
        path.write_text(whole.replace(",3 - Partially Supported\n", f",{wrong}\n"))
        with pytest.raises(BadInput, match=r"LSS\.csv:2: rating: expected a number from 1 to 5"):
            read_answers(str(path), dropped)


def test_later_annotation_replaces_the_annotators_earlier_one():
    dropped = Counter()
    rows = [example(Annotation(lss=t, annotator="w")) for t in ("Ann", "Ann Lee")]
    (result,) = merge([*rows, example("Brush")], dropped)
    assert [a.lss for a in result.annotations] == ["Ann Lee", "Brush"]
    assert +dropped == {"annotation replaced by a later one": 1}


@pytest.mark.parametrize(
    ("texts", "decided", "words"),
    [
        (["Ann Lee won", "Ann  Lee won ", "Oslo"], "majority", "Ann Lee won"),
        (["Ann Lee won", "Lee won", "Ann won"], "tie", None),
        (["Ann Lee won", "Ann Lee won."], "tie", None),  # letter by letter
        (["", "", "Lee"], "majority", ""),
        (["Bob", "Bob", "Lee"], "majority", "Bob"),  # as written, since no subsequence
    ],
)
def test_vote_by_whole_lss_decides_by_equal_texts(texts, decided, words):
    decision = vote(example(*texts), by="whole")
    assert (decision.decided, kept(decision)) == (decided, words)
    settled = example(*texts, Annotation(lss="won", adjudicated=True))
    assert kept(vote(settled, by="whole")) == "won"


def test_gold_of_a_majority_that_is_no_subsequence_is_its_text_and_first_lss_star():
    answers = [("Lee", "She won."), ("Bob", None), (" Bob", "Bob won.")]
    pair = example(*(Annotation(lss=lss, lss_star=star) for lss, star in answers))
    gold = merge_gold(pair, vote(pair, by="whole"))
    assert (gold.lss, gold.lss_star) == ("Bob", "Bob won.")


def kept(decision):
    if decision.keep is None:
        return decision.text
    return join_words(CLAIM, decision.words, decision.keep)


def test_adjudication_overrides_the_vote():
    final = Annotation(lss="Oslo", lss_star="It is Oslo.", rating=2, adjudicated=True)
    rows = example("Ann Lee won", "Ann Lee won", final)
    decision = vote(rows)
    assert (kept(decision), decision.decided) == ("Oslo", "adjudicated")
    assert merge_gold(rows, decision) == Annotation(lss="Oslo", lss_star="It is Oslo.", rating=2)


def test_agreement_excludes_adjudications_and_single_annotations():
    rows = [
        example(
            Annotation(lss="Ann Lee won", rating=4, annotator="w1"),
            Annotation(lss="Ann Lee won.", rating=4, annotator="w2"),
            Annotation(lss="Oslo", rating=1, annotator="w3"),
            Annotation(lss="Oslo", rating=1, annotator="w4", adjudicated=True),
        ),
        example("alone", reference="Other."),
    ]
    table = agreement(rows)
    assert (table["pairs"], table["comparisons"], table["annotators"]) == (1, 3, "by name")
    assert table["lss"]["identical"] == round(1 / 3, 4)
    assert table["lss"]["identical_text"] == 0
    assert table["rating"]["identical"] == round(1 / 3, 4)
    assert [p["annotators"] for p in table["rating"]["by_annotators"]] == [
        ["w1", "w2"], ["w1", "w3"], ["w2", "w3"],
    ]  # fmt: skip
    assert table["rating"]["kappa_mean"] is None  # too few comparisons


def test_agreement_of_triples_by_letters_and_words():
    def triple(*texts):
        return example(*[Annotation(lss=t, lss_star=t) for t in texts], reference=str(texts))

    rows = [
        triple("Ann", "Ann", "Ann"),
        triple("Ann", "Ann", "Lee"),
        triple("Ann", "ann.", "Lee"),
        triple("Ann", "Lee", "Oslo"),
        example("Ann", "Ann", reference="Two."),
        example("Ann", reference="One."),
    ]
    table = agreement(rows)
    assert table["pairs_by_annotations"] == {"1": 1, "2": 1, "3": 4}
    assert table["triples"]["lss"] == table["triples"]["lss_star"]
    assert table["triples"]["lss"] == {
        "pairs": 4,
        "letters": {"all_same": 0.25, "two_same": 0.25, "all_different": 0.5},
        "words": {"all_same": 0.25, "two_same": 0.5, "all_different": 0.25},
    }
    assert agreement(rows[4:])["triples"]["lss"] == {"pairs": 0, "letters": {}, "words": {}}
    assert "| LSS, letters | 4 | 0.250 | 0.250 | 0.500 |" in as_markdown(table)


def thirty_seven_pairs():
    """Pairs of twelve references with ratings 2 to 4; every fifth ties, one does not align."""
    rows = []
    for i in range(36):
        lss = ["Ann Lee won", "Lee won"] if i % 5 == 0 else ["Ann Lee won"] * 3
        made = [Annotation(lss=t, lss_star=t, rating=2 + i % 3) for t in lss]
        claim = CLAIM.replace("1931", str(1900 + i))
        rows.append(example(*made, claim=claim, reference=f"Page {i % 12}.", id=str(i), source="w"))
    return [*rows, example("nobody", id="x")]


def test_built_dataset_is_repeatable_and_split_by_reference(tmp_path):
    write_jsonl(tmp_path / "in.jsonl", thirty_seven_pairs())
    for name in ("one", "two"):
        Lss(tmp_path / name, annotations=[str(tmp_path / "in.jsonl")], shares=(2, 1, 1)).build()
    paths = (tmp_path / "one").rglob("*.*")
    files = sorted(path.relative_to(tmp_path / "one").as_posix() for path in paths)
    assert files == [
        "README.md",
        "adjudicate.jsonl",
        "adjudicate/instructions.html",
        "adjudicate/label_config.xml",
        "adjudicate/tasks.json",
        "agreement.json",
        *(f"{kind}_{s}.jsonl" for kind in ("gold", "lss") for s in ("dev", "test", "train")),
        "manifest.json",
    ]
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    manifest = json.loads((tmp_path / "one/manifest.json").read_text())
    assert manifest["dropped"] == {
        "gold: a tie, to be adjudicated": 8,
        "gold: no annotation is a subsequence of the claim": 1,
    }
    by_split = [
        read_records(tmp_path / f"one/lss_{s}.jsonl", LssExample) for s in ("train", "dev", "test")
    ]
    assert sum(map(len, by_split)) == 37
    pages = [{e.reference for e in rows} for rows in by_split]
    assert sum(map(len, pages)) == len(set.union(*pages)) == 13
    golds = read_records(tmp_path / "one/gold_train.jsonl", LssExample)
    assert all(len(e.annotations) == 1 and e.decided == "unanimous" for e in golds)
    for config in ("lss", "gold"):
        datasets.load_dataset(str(tmp_path / "one"), config, cache_dir=str(tmp_path / "cache"))


def test_project_has_tasks_without_duplicates(tmp_path):
    rows = [
        {"id": i, "claim": CLAIM, "reference": f"Page {i % 3}.", "title": "Ann", "url": None}
        for i in range(4)
    ]
    write_jsonl(tmp_path / "pairs.jsonl", rows)
    LssProject(tmp_path / "out", pairs=[str(tmp_path / "pairs.jsonl")]).build()
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "README.md", "instructions.html", "label_config.xml", "manifest.json", "pairs.jsonl",
        "tasks.json",
    ]  # fmt: skip
    tasks = json.loads((tmp_path / "out/tasks.json").read_text())
    assert [task["data"]["record"]["id"] for task in tasks] == ["0", "1", "2"]
    assert tasks[0] == {
        "data": {
            "claim": CLAIM,
            "reference": "Page 0.",
            "title": "Ann",
            "section": "",
            "words": [word.text for word in split_words(CLAIM)],
            "record": {"id": "0", "title": "Ann"},
        }
    }
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["dropped"] == {"duplicate pair": 1}
    datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    LssProject(tmp_path / "few", pairs=[str(tmp_path / "pairs.jsonl")], limit=2).build()
    assert len(json.loads((tmp_path / "few/tasks.json").read_text())) == 2


def test_label_studio_accepts_the_project():
    sdk = pytest.importorskip("label_studio_sdk.label_interface")
    interface = sdk.LabelInterface((FORM / "label_config.xml").read_text(encoding="utf-8"))
    interface.validate()
    for record in RECORDS:
        for entry in to_task(record, "annotations")["annotations"]:
            assert interface.validate_annotation({"result": entry["result"]})
