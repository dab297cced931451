"""People's D-FActScore: to Label Studio and back, agreement by hand, what many answers make."""

import json
from collections import Counter
from itertools import permutations
from xml.etree import ElementTree

import pytest

from data_builders.annotated.dfactscore.annotator_agreement import agreement
from data_builders.annotated.dfactscore.dfactscore_labels import DFActScoreLabels, merge_annotations
from data_builders.annotated.dfactscore.dfactscore_project import DFActScoreProject
from data_builders.annotated.dfactscore.dfactscore_tasks import (
    FORM,
    Answer,
    keep_latest,
    read_answers,
)
from eval.metrics.judged_texts import JudgedClaim, JudgedText, factual_precision
from records import BadInput, UserError, read_records

PAINTER, MP = "Ann Lee (painter)", "Ann Lee (politician)"
TEXT = {
    "id": "7",
    "topic": "Ann Lee",
    "generator": "gen",
    "text": "Ann Lee was a painter [1]. She sat in parliament [2]. Sources are few.",
    "claims": [
        {"id": f"c{k}", "text": text}
        for k, text in enumerate(
            ["Ann Lee painted.", "Ann Lee sat.", "Sources are few.", "Ann won."]
        )
    ],
    "passages": [
        {"id": "p0", "title": PAINTER, "text": "She painted."},
        {"id": "p1", "title": MP, "text": "She sat."},
        {"id": "p2", "title": PAINTER, "text": "She died."},
    ],
}


def claims(groups, verdicts, titles):
    """Judgements by a letter a claim: supported, of Another person, not supported, irrelevant."""
    judgements = []
    for text, group, verdict in zip(TEXT["claims"], groups, verdicts, strict=True):
        entity = titles.get(group)
        alone = {"s": entity, "a": MP}.get(verdict)
        judgements.append(
            JudgedClaim(
                text=text["text"],
                group=f"g{group}" if group != "-" else None,
                entity=entity,
                grouped=None if verdict == "i" else verdict == "s",
                independent=None if verdict == "i" else verdict in "sa",
                alone=alone,
            )
        )
    return judgements


MERGED = claims("00-0", "sain", {"0": PAINTER})
APART = claims("01-0", "ssin", {"0": PAINTER, "1": MP})
NOBODY = claims("01-1", "sann", {"0": PAINTER, "1": None})


def to_result(claims):
    """Judgements as the items of Label Studio's ``result``."""
    groups = list(dict.fromkeys(claim.group for claim in claims if claim.group is not None))
    items = []
    for k, claim in enumerate(claims):
        named = "nobody" if claim.group is None else f"person {groups.index(claim.group) + 1}"
        items.append((f"group_{k}", f"claim_{k}", named))
    for number, group in enumerate(groups, 1):
        title = next(claim.entity for claim in claims if claim.group == group)
        items.append((f"title_{number}", "text", title or "no page"))
    for k, claim in enumerate(claims):
        verdict = "supported" if claim.grouped else "not supported"
        if claim.independent and not claim.grouped:
            verdict = "of another person"
            items += [(f"owner_{k}", f"fact_{k}", claim.alone)] if claim.alone else []
        verdict = "irrelevant" if claim.grouped is None else verdict
        items.append((f"verdict_{k}", f"fact_{k}", verdict))
    return [
        {"id": name, "from_name": name, "to_name": to, "type": "choices", "value": {"choices": [v]}}
        for name, to, v in items
    ]


def project(tmp_path, **options):
    path = tmp_path / "texts.jsonl"
    silent = {"id": "8", "topic": "Bob", "text": "I could not find any information.", "claims": []}
    path.write_text("".join(json.dumps(row) + "\n" for row in (TEXT, silent)))
    DFActScoreProject(tmp_path / "project", [str(path)], **options).build()
    return json.loads((tmp_path / "project/tasks.json").read_text())


def full(tasks, answers):
    """Label Studio's full export: annotator and judgements a task."""
    entries = [
        {"id": n, "completed_by": {"id": 3, "email": annotator_name}, "was_cancelled": False}
        | {"result": to_result(annotator_claims)}
        for n, (annotator_name, annotator_claims) in enumerate(answers, 1)
    ]
    skipped = {"id": 90, "completed_by": 4, "was_cancelled": True, "result": []}
    return [{**task, "id": 1, "annotations": [*entries, skipped]} for task in tasks]


def write(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def test_project_has_claims_pages_and_valid_controls(tmp_path):
    (task,) = project(tmp_path)
    data = task["data"]
    assert data["text"] == "Ann Lee was a painter. She sat in parliament. Sources are few."
    assert data["record"] == {"id": "gen/7", "topic": "Ann Lee", "generator": "gen"}
    assert data["pages"][0] == {"title": PAINTER, "text": "She painted.\n\nShe died."}
    assert [t["value"] for t in data["titles"]] == [PAINTER, MP, "another page", "no page"]
    manifest = json.loads((tmp_path / "project/manifest.json").read_text())
    assert manifest["dropped"] == {"text that does not respond": 1}
    tags = [tag for tag in ElementTree.parse(FORM / "label_config.xml").iter() if tag.get("toName")]
    controls = {tag.get("name"): tag for tag in tags}
    for item in to_result(APART):
        name = item["from_name"].rpartition("_")
        repeated = controls.get(f"{name[0]}_{{{{idx}}}}")
        control = controls.get(item["from_name"], repeated)
        assert item["to_name"] == control.get("toName").replace("{{idx}}", name[2])
        values = {choice.get("value") for choice in control} or {t["value"] for t in data["titles"]}
        assert item["value"]["choices"][0] in values
    with pytest.raises(UserError, match="documents"):
        DFActScoreProject(tmp_path, [])
    with pytest.raises(UserError, match="limit"):
        DFActScoreProject(tmp_path, ["x"], limit=-1)


def test_exported_answers_are_read_unchanged(tmp_path):
    tasks = project(tmp_path)
    annotations = [("a@x", MERGED), ("b@x", APART), ("a@x", NOBODY)]
    dropped = Counter()
    answers = read_answers(write(tmp_path / "export.json", full(tasks, annotations)), dropped)
    judgements = keep_latest(answers, dropped)
    # The annotator who answered again has changed their mind.
    assert {answer.annotator: answer.claims for answer in judgements} == {
        "a@x": NOBODY,
        "b@x": APART,
    }
    assert dropped["annotation replaced by a later one"] == 1
    assert dropped["annotation that was skipped"] == 1


def test_other_page_and_missing_answers_are_read_and_counted(tmp_path):
    tasks = project(tmp_path)
    chosen = {"group_0": "person 3", "title_3": "another page", "verdict_0": "supported"}
    items = [{"from_name": n, "value": {"choices": [v]}} for n, v in chosen.items()]
    items.append({"from_name": "other_title_3", "value": {"text": [" Ann Lee (third) "]}})
    entries = [{"id": 1, "completed_by": 1, "result": items}, {"id": 2, "result": []}]
    export = [{**tasks[0], "annotations": entries}]
    dropped = Counter()
    (answer,) = read_answers(write(tmp_path / "export.json", export), dropped)
    first, second = answer.claims[:2]
    assert (first.group, first.entity, first.alone) == ("g0", "Ann Lee (third)", "Ann Lee (third)")
    assert (second.group, second.grouped) == (None, None)
    assert dropped["claim without a verdict"] == 3
    assert dropped["annotation without any answer"] == 1
    assert not dropped["person without a chosen page, counted as no page"]
    entries[0]["result"] = items[:-1]  # another page, without its title
    (untitled,) = read_answers(write(tmp_path / "export.json", export), dropped)
    assert untitled.claims[0].entity is None
    assert dropped["person without a chosen page, counted as no page"] == 1
    entries[0]["result"] = items
    # A claim that an annotator left out is judged by the others.
    other_answers = [
        answer._replace(claims=APART, annotator=annotator_name) for annotator_name in "b"
    ]
    joint = merge_annotations([answer, answer._replace(annotator="a"), *other_answers])
    assert [c.grouped for c in joint.claims] == [c.grouped for c in APART[:4]]
    assert not any(claim.failed for claim in joint.claims)


def test_agreement_equals_values_by_hand():
    table = agreement([[MERGED, APART], [MERGED, MERGED]])
    assert (table["texts"], table["comparisons"], table["claims"]) == (2, 2, 8)
    value = {
        name: annotator_claims["value"]
        for name, annotator_claims in table.items()
        if isinstance(annotator_claims, dict)
    }
    # Of three claims with a person, two pairs of three lie apart in one grouping only.
    assert value["grouping/rand"] == pytest.approx((1 / 3 + 1) / 2)
    assert value["grouping/as_many_people"] == 0.5
    assert value["link/identical"] == pytest.approx(5 / 6)
    assert value["supported/identical"] == pytest.approx(5 / 6)
    # Five labels of twelve are "supported"; one pair of six differs.
    yes, no = 5, 7
    chance = (yes * yes + no * no) / 144
    assert value["supported/pi"] == pytest.approx((5 / 6 - chance) / (1 - chance))
    expected = (144 - yes * yes - no * no) / 11
    assert value["supported/alpha"] == pytest.approx(1 - 2 / expected)
    assert value["verdict/identical"] == pytest.approx(5 / 6)
    assert table["supported/alpha"]["ci95"] is not None
    assert agreement([[MERGED]]) == {"texts": 0, "comparisons": 0, "claims": 0}


def test_irrelevant_is_a_label_and_a_skipped_claim_has_none():
    verdict_of = {"S": True, "NS": False, "IR": None}

    def of(*labels):
        return [
            JudgedClaim(text=str(k), grouped=verdict_of[label], independent=verdict_of[label])
            for k, label in enumerate(labels)
        ]

    def identical(*answers):
        table = agreement([answers])
        return [table[f"{measure}/identical"]["value"] for measure in ("label", "supported")]

    assert identical(of("S", "S", "IR", "IR"), of("S", "IR", "S", "IR")) == [0.5, 1]
    assert identical(of("S", "NS", "IR"), of("S", "S", "IR")) == [pytest.approx(2 / 3), 0.5]
    left_out = JudgedClaim(text="1", failed=["independent", "grouped"])
    assert identical(of("S", "IR"), [*of("S"), left_out]) == [1, 1]


def test_majority_of_annotators_decides():
    record = {"id": "gen/7", "topic": "Ann Lee", "generator": "gen"}
    for order in permutations([MERGED, MERGED, APART]):
        answers = [
            Answer(record, str(k), annotator_claims) for k, annotator_claims in enumerate(order)
        ]
        text = merge_annotations(answers)
        assert text.claims == MERGED
        assert text.annotators == 3
    # FActScore and D-FActScore come of the same answers; the irrelevant claim is in neither.
    assert factual_precision(text, "independent") == pytest.approx(2 / 3)
    assert factual_precision(text, "grouped") == pytest.approx(1 / 3)


def test_exports_are_built_into_a_dataset(tmp_path):
    tasks = project(tmp_path)
    export = write(tmp_path / "export.json", full(tasks, [("a@x", MERGED), ("b@x", APART)]))
    DFActScoreLabels(tmp_path / "labels", [export]).build()
    (text,) = read_records(tmp_path / "labels/judgements.jsonl", JudgedText)
    assert (text.id, text.source, text.claims) == ("gen/7", "people", MERGED)
    table = json.loads((tmp_path / "labels/agreement.json").read_text())
    assert table["link/identical"]["value"] == pytest.approx(2 / 3)
    assert "supported: alpha" in (tmp_path / "labels/README.md").read_text()
    # An export that holds the answers of an earlier one again.
    later = write(tmp_path / "later.json", full(tasks, [("a@x", MERGED), ("b@x", APART)]))
    manifest = DFActScoreLabels(tmp_path / "labels", [export, later], overwrite=True).build()
    assert json.loads(manifest.read_text())["dropped"]["annotation replaced by a later one"] == 2
    assert json.loads((tmp_path / "labels/agreement.json").read_text()) == table
    other = json.loads(json.dumps(full(tasks, [("c@x", APART[:3])])))
    other[0]["data"]["claims"] = other[0]["data"]["claims"][:3]
    files = [export, write(tmp_path / "other.json", other)]
    both = DFActScoreLabels(tmp_path / "labels", files, overwrite=True)
    with pytest.raises(UserError, match="different claims"):
        both.build()
    other[0]["data"]["claims"][0]["text"] = None
    files = [write(tmp_path / "other.json", other)]
    with pytest.raises(BadInput, match=r"other\.json:1: record, claims: fields required"):
        DFActScoreLabels(tmp_path / "labels", files, overwrite=True).build()
    arrow = {"type": "relation", "from_id": "a", "to_id": "b", "value": {"text": "x"}}
    marked = full(tasks, [("a@x", MERGED)])
    marked[0]["annotations"][0]["result"].append(arrow)
    (answer,) = read_answers(write(tmp_path / "arrow.json", marked), Counter())
    assert answer.claims == MERGED
