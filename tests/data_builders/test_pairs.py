"""``pairs``: every format, and nothing twice, contradictory, or on both sides."""

import csv
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from data_builders.published.pairs.pairs import Pairs, Source
from records import BadInput, RelationPair, UnliPair, UserError, read_records, write_jsonl

E, N, C = "entailment", "neutral", "contradiction"


def written(path, rows):
    """A file of rows: JSONL, or a table where the suffix says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".txt":  # as SICK.txt: tabs, and quotation marks are text
        lines = ["\t".join(cells) for cells in (rows[0].keys(), *(r.values() for r in rows))]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif path.suffix == ".csv":
        with open(path, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, rows[0].keys())
            table.writeheader()
            table.writerows(rows)
    else:
        write_jsonl(path, rows)
    return str(path)


def built(folder, *sources, **options):
    """The records of a build by split, and its manifest."""
    sources = [Source(s) if isinstance(s, str) else s for s in sources]
    build = Pairs(folder, sources, overwrite=True, **options)
    manifest = json.loads(build.build().read_text())
    record = UnliPair if options.get("target") == "unli" else RelationPair
    records = {Path(name).stem.split("_")[1]: read_records(folder / name, record)
             for name in manifest["files"]}  # fmt: skip
    return records, manifest


def labels_of(records):
    return {(r.premise, r.hypothesis): r.label for r in records}


# Of a sentence of Factcheck-Bench.
SENTENCE = {
    "text": "x",
    "decontext": "x",
    "sentence_checkworthiness": "yes",
    "claim_checkworthiness": ["factual"],
    "claims_factuality_label": [False],
    "human_evidence": ["NA"],
}
# Format, rows of it as its project writes them, the pairs they make, their groups.
CASES = {
    "attribution_bench": (
        [
            {"question": "Who won?", "claim": "Ann won.", "response": "Ann won. So.",
             "references": ["Ann came first.", "Bo came second."], "id": "a",
             "attribution_label": "attributable", "src_dataset": "LFQA"},
            {"question": "Who won?", "claim": "Bo won.", "references": ["Ann came first."],
             "attribution_label": "not attributable"},
        ],
        {
            ("Ann came first.\nBo came second.", "Ann won."): E,
            ("Ann came first.", "Bo won."): "not_entailment",
        },
        {"Who won?"},
    ),
    "factcheck_bench": (
        [
            {"prompt": "Who won?", "response": "Ann won. Bo lost.", "sentences": {
                "sentence1": SENTENCE | {"claims": ["Ann won.", "Ann sat."],
                              "claim_checkworthiness": ["factual"] * 2,
                              "claims_factuality_label": [True] * 2, "human_evidence": ["NA"] * 2,
                              "auto_evidence": [["Ann was first.", "Rain."], ["Snow."]],
                              "stance_claim_autoEvid": [["completely-support", "irrelevant"], []]},
                "sentence2": SENTENCE | {"claims": ["Bo lost."],
                              "auto_evidence": [["Bo came first."]],
                              "stance_claim_autoEvid": [["refute"]]}}},
        ],
        {
            ("Ann was first.", "Ann won."): E,
            ("Rain.", "Ann won."): N,
            ("Bo came first.", "Bo lost."): C,
        },
        {"Who won?"},
    ),
    "factcheck_stances": (
        [{"claim": "Cy won by far.", "evidence": "Cy won.", "stance": "partially-support"}],
        {("Cy won.", "Cy won by far."): "not_entailment"},
        {"Cy won by far."},
    ),
    "snli": (
        [
            {"sentence1": "A dog runs.", "sentence2": "An animal moves.", "gold_label": E,
             "captionID": "1.jpg#0"},
            {"sentence1": "A dog runs.", "sentence2": "A cat sleeps.", "gold_label": C},
            {"sentence1": "A dog runs.", "sentence2": "It is late.", "gold_label": "-"},
        ],
        {("A dog runs.", "An animal moves."): E, ("A dog runs.", "A cat sleeps."): C},
        {"A dog runs."},
    ),
    "nli": (
        [
            {"premise": "P one.", "hypothesis": "H one.", "label": "entails"},
            {"premise": "P two.", "hypothesis": "H two.", "label": "N"},
            {"premise": "P three.", "hypothesis": "H three.", "label": "refuted", "reason": "so"},
            {"premise": "P four.", "hypothesis": "H four.", "label": "-1"},
        ],
        {("P one.", "H one."): E, ("P two.", "H two."): N, ("P three.", "H three."): C},
        {"P one.", "P two.", "P three."},
    ),
    "anli": (
        [
            {"uid": "1", "context": "P one.", "hypothesis": "H one.", "label": "e"},
            {"uid": "2", "context": "P one.", "hypothesis": "H two.", "label": "n"},
            {"uid": "3", "context": "P one.", "hypothesis": "H three.", "label": "c"},
        ],
        {("P one.", "H one."): E, ("P one.", "H two."): N, ("P one.", "H three."): C},
        {"P one."},
    ),
    "fever": (
        [
            {"cid": "7", "fid": "7_0", "query": "Ann won.", "context": "Ann came first.",
             "verifiable": "VERIFIABLE", "label": "SUPPORTS"},
            {"cid": "8", "fid": "8_0", "query": "Ann lost.", "context": "Ann came first.",
             "label": "REFUTES"},
            {"cid": "9", "query": "Ann is tall.", "context": "Ann came first.",
             "label": "NOT ENOUGH INFO"},
            {"cid": "10", "query": "Ann is small.", "context": "Ann came first."},
        ],
        {
            ("Ann came first.", "Ann won."): E,
            ("Ann came first.", "Ann lost."): C,
            ("Ann came first.", "Ann is tall."): N,
        },
        {"Ann came first."},
    ),
    "fever_hub": (
        [{"premise": "Ann won.", "hypothesis": "Ann came first.", "label": 0,
          "fever_gold_label": "SUPPORTS"}],
        {("Ann came first.", "Ann won."): E},
        {"Ann came first."},
    ),
    "vitaminc": (
        [
            {"claim": "Ann won twice.", "evidence": "Ann won 2 cups.", "label": "SUPPORTS",
             "page": "Ann"},
            {"claim": "Ann won thrice.", "evidence": "Ann won 2 cups.", "label": "REFUTES",
             "page": "Ann"},
            {"claim": "Ann ran.", "evidence": "Ann won cups.", "label": "NOT ENOUGH INFO",
             "page": "Ann"},
        ],
        {
            ("Ann won 2 cups.", "Ann won twice."): E,
            ("Ann won 2 cups.", "Ann won thrice."): C,
            ("Ann won cups.", "Ann ran."): N,
        },
        {"Ann"},
    ),
    "wice": (
        [
            {"claim": "Ann won.", "evidence": ["Ann came.", "She won."], "label": "supported",
             "meta": {"id": "dev1"}},
            {"claim": "Ann left.", "evidence": ["Ann came."], "label": "partially_supported",
             "meta": {"id": "dev1"}},
        ],
        {("Ann came.\nShe won.", "Ann won."): E, ("Ann came.", "Ann left."): "not_entailment"},
        {"dev1"},
    ),
    "sick": (
        [
            {"pair_ID": "1", "sentence_A": 'A "wild" dog runs', "sentence_B": "A dog runs",
             "entailment_label": "ENTAILMENT", "relatedness_score": "4.5",
             "entailment_AB": "A_entails_B", "entailment_BA": "B_neutral_A"},
            {"pair_ID": "2", "sentence_A": "A cat sleeps", "sentence_B": "No cat sleeps",
             "entailment_label": "CONTRADICTION", "relatedness_score": "3.5",
             "entailment_AB": "A_contradicts_B", "entailment_BA": "B_contradicts_A"},
        ],
        {
            ('A "wild" dog runs', "A dog runs"): E,
            ("A dog runs", 'A "wild" dog runs'): N,
            ("A cat sleeps", "No cat sleeps"): C,
            ("No cat sleeps", "A cat sleeps"): C,
        },
        {'A "wild" dog runs', "A cat sleeps"},
    ),
    "unli": (
        [
            {"id": "1", "premise": "P one.", "hypothesis": "H one.", "nli": "0", "unli": "0.01"},
            {"id": "2", "premise": "P one.", "hypothesis": "H two.", "nli": "1", "unli": "0.4"},
            {"id": "3", "premise": "P two.", "hypothesis": "H three.", "nli": "2", "unli": "0.97"},
        ],
        {("P one.", "H one."): C, ("P one.", "H two."): N, ("P two.", "H three."): E},
        {"P one.", "P two."},
    ),
    "citations": (
        [
            {"name": "Ann Lee", "output": "x", "citations": [
                {"claim": "Ann won.", "passage": ["Title: Ann", "Ann won."], "entailed": 1},
                {"claim": "Ann lost.", "passage": ["Title: Ann"], "entailed": 0},
            ]}
        ],
        {("Title: Ann\nAnn won.", "Ann won."): E, ("Title: Ann", "Ann lost."): "not_entailment"},
        {"Ann Lee"},
    ),
    "climate_fever": (
        [
            {"claim_id": "7", "claim": "Seas rise.", "claim_label": "DISPUTED", "evidences": [
                {"evidence_id": "Sea:1", "article": "Sea", "evidence": "It rises.",
                 "evidence_label": "SUPPORTS", "votes": ["SUPPORTS", None], "entropy": 0.0},
                {"evidence_id": "Ice:2", "article": "Ice", "evidence": "It falls.",
                 "evidence_label": "REFUTES", "votes": ["REFUTES", None], "entropy": 0.0},
                {"evidence_id": "Ice:3", "article": "Ice", "evidence": "It is cold.",
                 "evidence_label": "DISPUTED", "votes": ["REFUTES", "SUPPORTS"], "entropy": 0.7},
            ]}
        ],
        {("Sea. It rises.", "Seas rise."): E, ("Ice. It falls.", "Seas rise."): C},
        {"Seas rise."},
    ),
    "averitec": (
        [
            {"claim": "Ann came.", "label": "Refuted", "questions": [
                {"question": "Did Ann come?", "answers": [
                    {"answer": "No", "answer_type": "Boolean",
                     "boolean_explanation": "She was ill."},
                    {"answer": "She stayed in.", "answer_type": "Abstractive"},
                ]}]},
            {"claim": "Ann left.", "label": "Conflicting Evidence/Cherrypicking", "questions": [
                {"question": "Did Ann leave?", "answers": [{"answer": "Perhaps."}]}]},
        ],
        {("Did Ann come? No She was ill.\nDid Ann come? She stayed in.", "Ann came."): C},
        {"Ann came."},
    ),
    "lss": (
        [
            {"claim": "Ann won by far.", "reference": "Ann won.", "annotations": [
                {"lss": "Ann won", "rating": 3}, {"lss": "Ann won by far.", "rating": 2},
                {"lss": "Ann won"}]},
            {"claim": "Bo lost.", "reference": "Bo came last.", "annotations": [
                {"lss": "Bo lost."}]},
            {"claim": "Cy sat.", "reference": "Cy.", "annotations": [{"lss": ""}]},
            {"claim": "Di ran.", "reference": "Di.", "annotations": [
                {"lss": ""}, {"lss": "Di ran."}]},
            {"claim": "Ed fell down.", "claim_tokens": ["Ed", "fell", "down", "."],
             "non_supported_spans": [False, False, True, False], "evidence": ["Rain.", "Ed fell."],
             "supporting_sentences": [[1]], "label": "partially_supported",
             "meta": {"claim_title": "Ed"}},
        ],
        {
            ("Ann won.", "Ann won by far."): "not_entailment",
            ("Ann won.", "Ann won"): E,
            ("Bo came last.", "Bo lost."): E,
            ("Cy.", "Cy sat."): "not_entailment",
            ("Ed fell.\nRain.", "Ed fell down ."): "not_entailment",
            ("Ed fell.\nRain.", "Ed fell ."): E,
        },
        {"Ann won.", "Bo came last.", "Cy.", "Ed"},
    ),
}  # fmt: skip


def test_pairs_of_ours_keep_their_group(tmp_path):
    rows = [
        row("P one.", "H one.", "not_entailment", group="g"),
        row("P two.", "H two.", group="g"),
    ]
    records, _ = built(tmp_path / "out", written(tmp_path / "in.jsonl", rows))
    assert labels_of(records["train"]) == {
        ("P one.", "H one."): "not_entailment",
        ("P two.", "H two."): N,
    }
    assert {r.group for r in records["train"]} == {"g"}


@pytest.mark.parametrize("name", CASES)
def test_format_is_detected_by_its_fields(tmp_path, name):
    rows, pairs, groups = CASES[name]
    suffix = {"sick": "txt", "unli": "csv"}.get(name, "jsonl")
    records, manifest = built(tmp_path / "out", written(tmp_path / f"in.{suffix}", rows))

    assert labels_of(records["train"]) == pairs
    assert {r.group for r in records["train"]} == groups
    assert {r.source for r in records["train"]} == {name}
    assert manifest["config"]["sources"][0]["format"] == name
    lists = ("citations", "evidences")  # a pair each
    of_row = [next((len(r[field]) for field in lists if field in r), 1) for r in rows]
    left_out = sum(of_row) - len(pairs)
    # Both directions of a row; four pairs of a response; a claim and its part
    if name in ("sick", "factcheck_bench", "lss"):
        left_out = int(name == "lss")
    assert sum(manifest["dropped"].values()) == left_out
    assert set(manifest["dropped"]) <= {f"in.{suffix}: no gold label"}


def test_ambigbio_atoms_are_paired_with_pages_of_a_title(tmp_path):
    def atom(text: str, title: str | None) -> dict:
        return {"atom": text, "is_supported": title is not None, "supporting_topic": title}

    sections = ["Title: Ann (poet)\nShe wrote.", "Title: Ann (boxer)\nShe won."]
    more = "Title: Ann (poet)\nShe rhymed."
    row = {
        "qid": 1,
        "name": "Ann",
        "generator": "g",
        "output": "x",
        "atoms_independent": [atom("Ann won.", "Ann (boxer)")],
        # The text merges two people: the boxer's win is no poet's. Nobody supports the last atom.
        "atoms_grouped": [atom("Ann wrote.", "Ann (poet)"), atom("Ann won.", None)],
        "citations": [{"claim": "x", "passage": [*sections, more], "entailed": 1}],
    }
    row["atoms_grouped"].append(atom("Ann sang.", None))
    source = Source(written(tmp_path / "a.jsonl", [row, row | {"atoms_grouped": None}]), "atoms")
    records, _ = built(tmp_path / "out", source)
    poet, boxer, no = (
        "Ann (poet). She wrote.\nShe rhymed.",
        "Ann (boxer). She won.",
        "not_entailment",
    )
    assert labels_of(records["train"]) == {
        (poet, "Ann wrote."): E,
        (poet, "Ann won."): no,
        (poet, "Ann sang."): no,
        (boxer, "Ann sang."): no,
    }
    assert {(r.group, r.source) for r in records["train"]} == {("Ann", "atoms")}
    wrong = written(tmp_path / "b.jsonl", [row | {"atoms_grouped": [{"atom": "Ann sang."}]}])
    with pytest.raises(BadInput, match=r"b\.jsonl:1: supporting_topic: field required"):
        built(tmp_path / "out", Source(wrong, "atoms"))


def test_probabilities_are_kept_for_unli(tmp_path):
    rows, _, _ = CASES["unli"]
    hub = [{"premise": "P.", "hypothesis": "H.", "label": 0.25, "snli_label": 1},
           {"premise": "P.", "hypothesis": "I.", "label": None}]  # fmt: skip
    records, manifest = built(
        tmp_path / "out",
        written(tmp_path / "a.csv", rows),
        Source(written(tmp_path / "b.jsonl", hub), name="hub_unli", weight=2.0),
        target="unli",
    )
    assert labels_of(records["train"]) == {
        ("P one.", "H one."): 0.01,
        ("P one.", "H two."): 0.4,
        ("P two.", "H three."): 0.97,
        ("P.", "H."): 0.25,
    }
    assert {r.source: r.weight for r in records["train"]} == {"unli": 1.0, "hub_unli": 2.0}
    assert manifest["dropped"] == {"b.jsonl: no gold label": 1}


def row(premise, hypothesis, label=N, **more):
    return {"premise": premise, "hypothesis": hypothesis, "label": label, **more}


def test_duplicates_are_merged_and_contradictory_pairs_dropped(tmp_path):
    first = written(
        tmp_path / "a.jsonl",
        [row("P", "H"), row("P ", "H", E), row("Q", "H", E), row("Q", "H", E), row("R", " ")],
    )
    second = written(tmp_path / "b.jsonl", [row("Q", "H", E), row("S", "H", C)])
    records, manifest = built(tmp_path / "out", first, Source(second, name="late"))

    assert labels_of(records["train"]) == {("Q", "H"): E, ("S", "H"): C}
    assert {r.hypothesis + r.premise: r.source for r in records["train"]}["HQ"] == "nli"
    assert manifest["dropped"] == {
        "a.jsonl: empty hypothesis": 1,
        "a.jsonl: duplicate pair": 2,
        "b.jsonl: duplicate pair": 1,
        "pair with different labels": 1,
    }
    assert manifest["kept"] + sum(manifest["dropped"].values()) == 7


def test_pairs_that_share_eight_words_or_a_short_text_with_an_excluded_file_are_dropped(tmp_path):
    eight = "Ann Lee won the old race in Rome"
    rows = [row(f"In 1921, {eight} , they say.", "Ann ran."), row("Ann ran.", f"{eight.lower()}!")]
    rows += [row("Ann Lee won the old race in Oslo.", "Seven words."), row("Fresh.", "Short one.")]
    parts = {"parts": [f"{eight} -LRB- twice -RRB- ."]}
    texts = [{"id": 3, "summary": parts, "short": "Short one"}]
    source = written(tmp_path / "a.jsonl", rows)
    files = [written(tmp_path / "excluded.jsonl", texts)]
    records, manifest = built(tmp_path / "out", source, exclude=files)
    assert [r.hypothesis for r in records["train"]] == ["Seven words."]
    assert manifest["dropped"] == {"a.jsonl: shares eight words in a row with an excluded file": 3}


def test_pairs_that_name_an_excluded_title_are_dropped(tmp_path):
    claims = [
        "In Rome, it rained.",
        "A poet.",
        "Rome Burning is a play.",
        "Ann met Lee.",
        "The Rome.",
    ]
    rows = [row("Ann Lee sang.", "She sang."), *(row("P.", claim) for claim in claims)]
    topics = [{"topic": "Ann Lee (singer)"}, {"topic": "Rome"}, {"topic": "1921"}]
    source, titles = (written(tmp_path / f"{n}.jsonl", r) for n, r in (("a", rows), ("t", topics)))
    records, manifest = built(tmp_path / "out", source, exclude_titles=titles)
    kept = {r.hypothesis for r in records["train"]}
    assert kept == {"A poet.", "Rome Burning is a play.", "Ann met Lee."}
    assert manifest["dropped"] == {"a.jsonl: names an excluded title": 3}
    with pytest.raises(UserError, match=r"a\.jsonl:1: field 'topic' required"):
        built(tmp_path / "out", source, exclude_titles=source)


def test_titles_of_other_groups_do_not_exclude_pairs(tmp_path):
    rows = [row("P.", claim) for claim in ("Ann Lee sang.", "The Film ended.")]
    topics = [{"topic": "Ann Lee", "group": "People"}, {"topic": "Film", "group": "Arts"}]
    source, titles = (written(tmp_path / f"{n}.jsonl", r) for n, r in (("a", rows), ("t", topics)))
    options = {"exclude_titles": titles, "exclude_groups": ("People",)}
    records, manifest = built(tmp_path / "out", source, **options)
    assert [r.hypothesis for r in records["train"]] == ["The Film ended."]
    assert manifest["dropped"] == {"a.jsonl: names an excluded title": 1}


def test_claim_without_evidence_gets_that_of_a_claim_with_the_same_first_two_words(tmp_path):
    def claim(text, label, *evidence):
        return {"claim": text, "label": label, "evidence": list(evidence)}

    born = "Ann Lee -LRB- born 1921 -RRB- is a singer ."
    rows = [
        claim("Ann Lee was born in 1921.", "SUPPORTS", born),
        claim("Ann Lee is a dancer.", "REFUTES", "She sang `` Rain '' ."),
        claim("Ann Lee was born in Rome.", "NOT ENOUGH INFO"),
        claim("Bo Hill ran.", "NOT ENOUGH INFO"),
        claim("Ann Lee swam.", "REFUTES"),
    ]
    source = written(tmp_path / "fever.jsonl", rows)
    records, manifest = built(tmp_path / "out", Source(source, name="fever", mine_evidence=True))
    assert labels_of(records["train"]) == {
        ("Ann Lee (born 1921) is a singer.", "Ann Lee was born in 1921."): E,
        ('She sang "Rain".', "Ann Lee is a dancer."): C,
        ("Ann Lee (born 1921) is a singer.", "Ann Lee was born in Rome."): N,
    }
    assert manifest["dropped"] == {"fever.jsonl: no evidence": 2}


def test_files_of_a_folder_are_one_set_and_lists_in_a_csv_are_evidence(tmp_path):
    (tmp_path / "set").mkdir()
    rows = [
        {"claim": "Ann sang.", "label": "SUPPORTS", "evidence": "['Ann sang .', \"It 's her .\"]"}
    ]
    written(tmp_path / "set" / "0.csv", rows)
    written(tmp_path / "set" / "1.csv", [rows[0] | {"claim": "Ann ran.", "evidence": "[]"}])
    records, manifest = built(tmp_path / "out", str(tmp_path / "set"))
    assert labels_of(records["train"]) == {("Ann sang.\nIt's her.", "Ann sang."): E}
    assert manifest["dropped"] == {"set: no evidence": 1}


LONG = "This line of a page has more than twelve words, so that nobody else writes it: {}."


@pytest.mark.parametrize("target", ["relation", "unli"])
@pytest.mark.parametrize("shared", ["group", "documents", "line"])
def test_pairs_that_share_a_group_document_or_line_are_in_one_split(tmp_path, target, shared):
    rows = [
        {"premise": f"Page {i}.", "hypothesis": f"Said {i}.", "label": E}
        | ({"label": 0.5} if target == "unli" else {})
        | ({"group": f"g{i // 2}"} if shared == "group" else {})
        | ({"documents": [f"d{i // 2}"]} if shared == "documents" else {})
        | ({"premise": f"Page {i}.\n{LONG.format(i // 2)}"} if shared == "line" else {})
        for i in range(40)
    ]
    source = written(tmp_path / "ours.jsonl", rows)
    records, _ = built(tmp_path / "out", source, target=target, shares=(2, 1, 1))
    sides = {
        int(r.hypothesis[5:-1]): split
        for split, split_records in records.items()
        for r in split_records
    }
    assert len(sides) == 40
    assert all(sides[i] == sides[i + 1] for i in range(0, 40, 2))
    if shared == "documents":
        assert {
            tuple(r.documents) for split_records in records.values() for r in split_records
        } == {(f"d{i}",) for i in range(20)}


def many_rows(number, labels=(E, N, C)):
    return [
        row(f"Premise {i % (number // 4)}", f"Hypothesis {i}", labels[i % 3]) for i in range(number)
    ]


def test_shuffled_rows_give_the_same_order_cap_and_split(tmp_path):
    rows = [*many_rows(400), row("Z", "H", group="b"), row("Z", "H", group="a")]
    shuffled = random.Random(1).sample(rows, len(rows))
    options = {"shares": (6, 2, 2), "seed": 3}
    first, manifest = built(
        tmp_path / "one", Source(written(tmp_path / "x" / "a.jsonl", rows), take=150), **options
    )
    two, _ = built(
        tmp_path / "two", Source(written(tmp_path / "y" / "a.jsonl", shuffled), take=150), **options
    )

    assert first == two
    assert sum(map(len, first.values())) == 150
    assert manifest["dropped"]["a.jsonl: beyond take"] == 251
    groups = [{r.group for r in split} for split in first.values()]
    assert len(set.union(*groups)) == sum(map(len, groups))
    assert len(first["train"]) > len(first["dev"]) > 10
    other, _ = built(tmp_path / "three", str(tmp_path / "x" / "a.jsonl"), shares=(6, 2, 2), seed=4)
    assert [r.hypothesis for r in other["dev"]] != [r.hypothesis for r in first["dev"]]


def test_per_label_caps_train_only(tmp_path):
    file = written(tmp_path / "a.jsonl", many_rows(400))
    options = {"shares": (6, 2, 2), "seed": 3}
    whole, _ = built(tmp_path / "whole", file, **options)
    first, manifest = built(tmp_path / "one", Source(file, per_label=20), **options)
    counts = Counter(r.label for r in whole["train"])
    assert Counter(r.label for r in first["train"]) == {k: min(n, 20) for k, n in counts.items()}
    assert {name: first[name] for name in ("dev", "test")} == {n: whole[n] for n in ("dev", "test")}
    assert manifest["dropped"]["a.jsonl: beyond per_label"] == len(whole["train"]) - len(
        first["train"]
    )


def test_crossing_pairs_of_a_long_chain_are_dropped(tmp_path):
    rows = [row(f"Premise {i + j}", f"Hypothesis {i}", group=f"g{i}") for i in range(300) for j in (0, 1)]  # fmt: skip  # noqa: E501
    records, manifest = built(
        tmp_path / "out", written(tmp_path / "a.jsonl", rows), shares=(2, 1, 1)
    )

    for value in (lambda r: r.premise, lambda r: r.model_extra["group"]):
        sides = [{value(r) for r in split} for split in records.values()]
        assert len(set.union(*sides)) == sum(map(len, sides))
    dropped = manifest["dropped"]["shares a text or a document with a held-out pair"]
    assert 0 < dropped < 100
    assert dropped + manifest["kept"] == 600
