"""Files of other projects are read, field by field."""

import json

from records import Document, read_records


def test_veriscores_verification_files_are_read(tmp_path):
    hit = {"title": "Ann Lee", "snippet": "A painter.", "link": "http://x.example"}
    texts = {"Ann painted.": "supported", "Ann boxed.": "contradicted", "It is.": "inconclusive"}
    _, *rest = texts
    row = {
        **{"question": "Who is Ann Lee?", "response": "Ann.", "model": "m", "abstained": False},
        # A sentence without claims, as its earlier and its current code write it
        "claim_list": [["Ann painted."], ["No verifiable claim."], [None], [*rest, "Hm."]],
        "claim_search_results": {text: [hit] for text in texts},
        "claim_verification_result": [
            {"claim": text, "search_results": "", "verification_result": label}
            for text, label in texts.items()
        ],
    }
    silent = row | {"abstained": True, "claim_list": [], "claim_verification_result": []}
    path = tmp_path / "verification.jsonl"
    path.write_text("\n".join(map(json.dumps, [row, silent])))
    first, second = read_records(path, Document)
    # What its evidence does not decide counts as not supported, as in VeriScore's own score.
    labels = {c.text: (c.label, c.sentence) for c in first.claims}
    assert labels == {
        "Ann painted.": ("S", 0),
        "Ann boxed.": ("NS", 3),
        "It is.": ("NS", 3),
        "Hm.": (None, 3),
    }
    assert first.passages[0].url == "http://x.example"
    assert first.claims[0].contexts == [first.passages[0].id]
    assert (first.topic, first.generator) == ("Who is Ann Lee?", "m")
    assert (second.claims, second.responds) == ([], False)


def test_safes_result_files_are_read(tmp_path):
    def statement(sentence, atom, text, label):
        return {
            **{"sentence": sentence, "atomic_fact": atom, "annotation": label},
            **{"self_contained_atomic_fact": text, "rate_data": {"answer": label}},
        }

    data = {
        "all_atomic_facts": [
            {"sentence": "She painted birds.", "atomic_facts": ["She painted."]},
            {"sentence": "It rained.", "atomic_facts": ["It rained.", "Rain is wet."]},
        ],
        "checked_statements": [
            statement("She painted birds.", "She painted.", "Ann painted.", "Supported"),
            statement("It rained.", "It rained.", "It rained.", "Not Supported"),
            statement("It rained.", "Rain is wet.", "Rain is wet.", "Irrelevant"),
        ],
    }
    row = {"prompt": "Who?", "side1_response": "She.", "side1_posthoc_eval_data": data}
    sides = {"side_1": "m", "side_2": "none", "per_prompt_data": [row | {"side2_response": ""}]}
    (tmp_path / "safe.json").write_text(json.dumps(sides))
    (document,) = read_records(tmp_path / "safe.json", Document)
    assert document.generator == "m"
    assert [(c.label, c.sentence) for c in document.claims] == [("S", 0), ("NS", 1), ("IR", 1)]
    assert (document.claims[0].text, document.claims[0].original) == (
        "Ann painted.",
        "She painted.",
    )
    assert document.claims[0].source == "She painted birds."


def test_factreasoners_outputs_of_many_lines_are_read(tmp_path):
    atom = {"id": "a", "text": "Ann Lee painted.", "original": "She painted.", "label": None}
    context = {"id": "p1", "title": "Ann Lee", "text": "A painter.", "link": "http://x.example"}
    row = {"input": "Who is Ann Lee?", "output": "She painted birds.", "topic": "Ann Lee"}
    row |= {
        "atoms": [atom | {"contexts": ["p1"]}],
        "contexts": [context | {"snippet": "", "probability": 0.9}],
        "results": {"predictions": {"a": "S"}, "factuality_score": 1.0},
    }
    silent = row | {"output": "I'm sorry, I do not know.", "atoms": [], "contexts": []}
    pretty = tmp_path / "pretty.json"
    pretty.write_text("\n".join(json.dumps(each, indent=2) for each in (row, silent)))
    first, second = read_records(pretty, Document)
    assert (first.claims[0].text, first.claims[0].original) == ("Ann Lee painted.", "She painted.")
    assert (first.passages[0].prior, first.claims[0].contexts) == (0.9, ["p1"])
    assert second.claims == []


def test_factscores_released_predictions(tmp_path):
    row = {
        "prompt": "Tell me a bio of Ann Lee.",
        "facts": ["Ann Lee painted.", "Ann Lee boxed."],
        "LLAMA+NP_Labels": ["S", "S"],
        "ChatGPT_Labels": ["S", "NS"],
    }
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (document,) = read_records(tmp_path / "a.jsonl", Document)
    assert [c.label for c in document.claims] == ["S", "NS"]
    assert document.text == "Ann Lee painted. Ann Lee boxed."
