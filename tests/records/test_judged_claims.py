"""Sets of claims that people judged, each by a row of our own in its published columns."""

import json

import pandas
import pytest

from records import BadInput, Document, read_records

DOC = "The harbour was closed. No ship was lost."
CLAIM = "The harbour was closed."


def read(tmp_path, *rows, name="set.jsonl"):
    text = json.dumps(list(rows)) if name.endswith(".json") else "\n".join(map(json.dumps, rows))
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_records(tmp_path / name, Document)


def labels(documents):
    return [(c.label, c.finer) for document in documents for c in document.claims]


ONE_CLAIM = {
    "LLM-AggreFact": (
        {"dataset": "News", "doc": DOC, "claim": CLAIM, "label": 1}, "S", "supported",
    ),
    "LLM-AggreFact, 0": ({"dataset": "News", "doc": DOC, "claim": CLAIM, "label": 0}, "NS",
        "not_supported"),
    "AttributionBench": (
        {"question": "Which?", "claim": CLAIM, "response": "r", "references": [DOC],
         "attribution_label": "not attributable", "src_dataset": "News", "id": "n1"},
        "NS", "not_supported",
    ),
    "WiCE": (
        {"claim": CLAIM, "evidence": ["The harbour was closed.", "No ship was lost."],
         "label": "partially_supported", "meta": {"id": "dev1", "claim_title": "Velm"}},
        "NS", "partially_supported",
    ),
    "VitaminC": ({"claim": CLAIM, "evidence": DOC, "label": "NOT ENOUGH INFO", "page": "Velm"},
        "NS", "not_enough"),
    "HealthVer": ({"id": 3, "evidence": DOC, "claim": CLAIM, "label": "Refutes", "topic_ip": 1,
        "question": "Which?"}, "NS", "refuted"),
    "Factcheck-Bench": ({"claim": CLAIM, "evidence": DOC, "stance": "partially-support"},
        "NS", "partially_supported"),
    "ANLI": ({"uid": "u", "context": DOC, "hypothesis": CLAIM, "label": "c"}, "NS", "refuted"),
    "the Hub's NLI": ({"premise": DOC, "hypothesis": CLAIM, "label": "entailment"}, "S",
        "supported"),
    "FEVER on the Hub": ({"cid": 1, "premise": CLAIM, "hypothesis": DOC, "label": 2,
        "fever_gold_label": "REFUTES"}, "NS", "refuted"),
    "FEVER on the Hub, test": ({"cid": 1, "premise": CLAIM, "hypothesis": DOC, "label": -1,
        "fever_gold_label": "not available"}, None, "unknown"),
    "u-SNLI": ({"id": "x#1", "pre": DOC, "hyp": CLAIM, "nli": "2", "unli": "0.9"}, "S",
        "supported"),
    "SNLI": ({"sentence1": DOC, "sentence2": CLAIM, "gold_label": "-"}, None, "unknown"),
    "SICK": ({"sentence_A": DOC, "sentence_B": CLAIM, "entailment_label": "NEUTRAL"}, "NS",
        "not_enough"),
    "FaithBench": (
        {"sample_id": 0, "source": DOC, "summary": CLAIM, "metadata": {"summarizer": "m"},
         "annotations": [{"label": ["Benign"]}, {"label": ["Unwanted", "Unwanted.Intrinsic"]}]},
        "NS", "unwanted",
    ),
    "FaithBench, benign": (
        {"source": DOC, "summary": CLAIM, "annotations": [{"label": ["Benign"]}]}, "S", "benign",
    ),
    "FaithBench's table": (
        {"source": DOC, "summary": CLAIM, "LLM": "m", "worst-label": "Questionable",
         "best-label": "Consistent"}, "NS", "questionable",
    ),
    "FaithBench's table, consistent": (
        {"source": DOC, "summary": CLAIM, "LLM": "m", "worst-label": "Consistent",
         "best-label": "Consistent"}, "S", "supported",
    ),
    "RAGTruth on the Hub": (
        {"id": "7", "context": DOC, "output": CLAIM, "task_type": "QA", "model": "m",
         "hallucination_labels": '[{"label_type": "Subtle Conflict"}]'},
        "NS", "refuted",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_CLAIM)
def test_a_pair_is_a_document_of_one_claim_with_its_evidence(tmp_path, name):
    row, label, finer = ONE_CLAIM[name]
    (document,) = read(tmp_path, row)
    (claim,) = document.claims
    assert (claim.text, claim.label, claim.finer) == (CLAIM, label, finer)
    texts = {passage.id: passage.text for passage in document.passages}
    assert [" ".join(texts[context].split()) for context in claim.contexts] == [DOC]


def test_published_rows_have_units_and_sources(tmp_path):
    documents = {name: read(tmp_path, row)[0] for name, (row, *_) in ONE_CLAIM.items()}
    assert documents["LLM-AggreFact"].unit == documents["LLM-AggreFact, 0"].unit != DOC
    assert (documents["WiCE"].unit, documents["VitaminC"].unit) == ("Velm", "Velm")
    assert (documents["HealthVer"].unit, documents["AttributionBench"].unit) == ("Which?", "Which?")
    sources = {name: document.group for name, document in documents.items() if document.group}
    assert sources == {
        "LLM-AggreFact": "News",
        "LLM-AggreFact, 0": "News",
        "AttributionBench": "News",
        "RAGTruth on the Hub": "QA",
    }
    written = ("FaithBench", "FaithBench's table", "RAGTruth on the Hub")
    assert [documents[name].generator for name in written] == ["m"] * 3


def test_unli_rows_have_a_probability_and_a_class(tmp_path):
    (document,) = read(tmp_path, {"premise": DOC, "hypothesis": CLAIM, "nli": 2, "label": 0.9})
    assert labels([document]) == [("S", "supported")]
    assert document.claims[0].share == 0.9
    (tmp_path / "u.csv").write_text(f"id,pre,hyp,nli,unli\nx,{DOC},{CLAIM},0,0.25\n")
    (document,) = read_records(tmp_path / "u.csv", Document)
    assert (labels([document]), document.claims[0].share) == ([("NS", "refuted")], 0.25)


def test_hub_u_snli_rows_have_a_probability_and_no_class(tmp_path):
    rows = [
        {"premise": DOC, "hypothesis": CLAIM, "label": p, "snli-label": 2} for p in (0.0, 0.4, 1.0)
    ]
    documents = read(tmp_path, *rows)
    assert labels(documents) == [(None, None)] * 3
    assert [document.claims[0].share for document in documents] == [0, 0.4, 1]
    with pytest.raises(BadInput, match=r":1: label: expected a probability, got 'likely'"):
        read(tmp_path, rows[0] | {"label": "likely"})


def test_a_pair_without_a_premise_is_a_claim_without_evidence(tmp_path):
    rows = [{"query": text, "context": "", "label": "REFUTES"} for text in (CLAIM, "It sank.")]
    documents = read(tmp_path, *rows)
    assert labels(documents) == [("NS", "refuted")] * 2
    assert [(document.passages, document.unit) for document in documents] == [
        ([], CLAIM),
        ([], "It sank."),
    ]
    pandas.DataFrame(rows).to_parquet(tmp_path / "set.parquet")
    assert read_records(tmp_path / "set.parquet", Document) == documents


def test_a_label_may_be_missing_but_not_unknown(tmp_path):
    assert labels(read(tmp_path, {"claim": CLAIM, "evidence": DOC})) == [(None, None)]
    nan = {"claim": CLAIM, "evidence": DOC, "label": float("nan")}
    assert labels(read(tmp_path, nan)) == [(None, None)], "NaN, as pandas writes it"
    with pytest.raises(BadInput, match=r"set\.jsonl:2: label: expected one of supported, .*'yes'"):
        read(
            tmp_path, *({"claim": CLAIM, "evidence": DOC, "label": w} for w in ("SUPPORTS", "yes"))
        )
    with pytest.raises(BadInput, match=r":1: label: the number 2, whose meaning"):
        read(tmp_path, {"doc": DOC, "claim": CLAIM, "label": 2})
    with pytest.raises(BadInput, match=r":1: claim: expected a text, got 5"):
        read(tmp_path, {"doc": DOC, "claim": 5, "label": 1})


def sentence(claims, verdicts, **more):
    count = len(claims)
    return {
        "text": " ".join(claims),
        "decontext": " ".join(claims),
        "sentence_checkworthiness": "yes",
        "claims": claims,
        "claim_checkworthiness": ["factual"] * count,
        "claims_factuality_label": verdicts,
        "auto_evidence": [[DOC, DOC]] * count,
        "stance_claim_autoEvid": [["completely-support", "irrelevant"]] * count,
        "human_evidence": ["NA"] * count,
    } | more


def test_factcheck_bench_responses(tmp_path):
    more = {
        "claim_checkworthiness": ["factual", "opinion"],
        "human_evidence": ["Seen by many.\nURL: https://a.example", "NA"],
    }
    sentences = {
        "sentence1": sentence([CLAIM, "It sank.", "Who knows?"], [True, False, "unknown"]),
        "sentence2": sentence(["Ships sailed.", "Ships are nice."], [True, True], **more),
    }
    (document,) = read(tmp_path, {"prompt": "What?", "response": "…", "sentences": sentences})
    assert [claim.label for claim in document.claims] == ["S", "NS", None, "S", "IR"]
    assert [claim.sentence for claim in document.claims] == [0, 0, 0, 1, 1]
    passages = {passage.id: passage for passage in document.passages}
    cited = [passages[context] for context in document.claims[3].contexts]
    assert [getattr(p, "evidence_label", None) for p in cited] == [
        "completely-support",
        "irrelevant",
        None,
    ]
    assert cited[2].text == "Seen by many."
    assert len(document.passages) == 11
    assert document.sentences[1]["decontext"] == "Ships sailed. Ships are nice."


def test_climate_fever_of_the_hub_has_numbers_for_its_words(tmp_path):
    def row(claim_label, labels, name="7"):
        evidences = [
            {"evidence_id": f"Sea:{place}", "evidence_label": label, "article": "Sea",
             "evidence": DOC, "entropy": 0.0, "votes": ["SUPPORTS", None]}
            for place, label in enumerate(labels)
        ]  # fmt: skip
        return {
            "claim_id": name,
            "claim": CLAIM,
            "claim_label": claim_label,
            "evidences": evidences,
        }

    words = ["SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO"]
    for number, word in enumerate([*words, "DISPUTED"]):
        by_number, by_word = read(tmp_path, row(number, [0, 1, 2]), row(word, words))
        assert by_number == by_word
        assert by_number.claim_label == word
    with pytest.raises(BadInput, match=r":1: claim_label: the number 4, whose meaning"):
        read(tmp_path, row(4, [0]))


def test_qags_labels_are_the_majority(tmp_path):
    votes = [{"response": "yes"}, {"response": "no"}, {"response": "yes"}]
    sentences = [
        {"sentence": CLAIM, "responses": votes},
        {"sentence": "It sank.", "responses": votes[1:2]},
        {"sentence": "It is open.", "responses": votes[:2]},
    ]
    (document,) = read(tmp_path, {"article": DOC, "summary_sentences": sentences})
    assert labels([document]) == [("S", "supported"), ("NS", "not_supported"), (None, "disputed")]
    assert [claim.share for claim in document.claims] == [pytest.approx(2 / 3), 0, 0.5]
    sentences[0]["responses"] = [{"response": "unsure"}]
    with pytest.raises(BadInput, match=r":1: response: expected one of yes, no, got 'unsure'"):
        read(tmp_path, {"article": DOC, "summary_sentences": sentences})


def test_expertqa_has_a_document_per_system(tmp_path):
    def claim(text, support, *evidence):
        return {"claim_string": text, "support": support, "evidence": list(evidence)}

    answers = {
        "gpt4": {"answer_string": "Long.", "claims": [claim(CLAIM, "Complete", "[1] http://a.b")]},
        "rr": {"claims": [claim("A.", "Partial", f"[1] http://a.b\n\n{DOC}"), claim("B.", "N/A")]},
    }
    answers["rr"]["claims"].append(claim("C.", float("nan")))
    gpt4, rr = read(tmp_path, {"question": "Which?", "answers": answers})
    assert labels([gpt4, rr]) == [
        ("S", "supported"),
        ("NS", "partially_supported"),
        (None, "unknown"),
        (None, None),
    ]
    assert (gpt4.passages, rr.passages[0].text, rr.text) == ([], DOC, "A. B. C.")
    assert (gpt4.generator, rr.generator, gpt4.topic) == ("gpt4", "rr", "Which?")
    answers["bing_chat"] = None  # as Parquet has a system that did not answer
    assert len(read(tmp_path, {"question": "Which?", "answers": answers})) == 2


def test_ragtruth_in_two_files(tmp_path):
    spans = [{"start": 0, "end": 3, "text": "The", "label_type": "Evident Baseless Info"}]
    response = {"id": "5", "source_id": "9", "model": "m", "labels": spans, "response": CLAIM}
    source = {"source_id": "9", "task_type": "QA", "prompt": "p", "source_info": {"passages": DOC}}
    (answer,), (origin,) = read(tmp_path, response), read(tmp_path, source)
    assert labels([answer]) == [("NS", "not_enough")]
    assert (answer.source_id, answer.claims[0].contexts) == ("9", None)
    assert (origin.source_id, origin.passages[0].text, origin.claims, origin.group) == (
        "9",
        DOC,
        None,
        "QA",
    )


@pytest.mark.parametrize("quality", ["incorrect_refusal", "truncated"])
def test_a_bad_response_of_ragtruth_has_no_label(tmp_path, quality):
    row = {"id": "5", "source_id": "9", "model": "m", "labels": [], "response": "I cannot say."}
    hub = {"id": "5", "context": DOC, "output": "I cannot say.", "hallucination_labels": "[]"}
    good, bad = read(tmp_path, row | {"quality": "good"}, row | {"quality": quality})
    (of_hub,) = read(tmp_path, hub | {"quality": quality})
    assert labels([good, bad, of_hub]) == [
        ("S", "supported"),
        (None, "unknown"),
        (None, "unknown"),
    ]


def test_a_batch_of_faithbench_is_one_object(tmp_path):
    row = {"source": DOC, "summary": CLAIM, "annotations": []}
    (tmp_path / "batch_1.json").write_text(json.dumps({"samples": [row, row]}, indent=1))
    documents = read_records(tmp_path / "batch_1.json", Document)
    assert labels(documents) == [("S", "supported")] * 2
    bad = row | {"annotations": [{"label": ["Wanted"]}]}
    (tmp_path / "batch_2.json").write_text(json.dumps({"samples": [bad]}))
    with pytest.raises(
        BadInput, match=r"annotations: label: expected one of Consistent, .* 'wanted'"
    ):
        read_records(tmp_path / "batch_2.json", Document)
