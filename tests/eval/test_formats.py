"""What other projects write is read, and what they read is written, field by field."""

import json

import pytest

from eval.decompose.given import Given
from eval.exports import write_formats
from eval.pipeline import Pipeline
from eval.retrieve.given import Given as GivenPassages
from eval.stages import Selection
from records import Claim, Document, Passage, Verdict, read_records

LABELS = {"a": "supported", "b": "contradicted", "c": "undecided", "d": "failed", "e": "irrelevant"}


class Known:
    """An assessor that knows the five labels, and what it did."""

    judges_sets = False

    def __call__(self, documents, claims, passages):
        return [
            [
                Verdict(
                    claim=c.id,
                    assessor="known",
                    label=LABELS.get(c.id, "supported"),
                    response="I think so.",
                )
                for c in own
            ]
            for own in claims
        ]


class NotTheLast:
    """A selector that drops the last claim."""

    def __call__(self, documents, claims):
        reason = {True: "selected", False: "duplicate"}
        return [
            [
                Selection(claim=c.id, selected=s, weight=1, document_entailment=1, reason=reason[s])
                for c in own
                if [s := c is not own[-1]]
            ]
            for own in claims
        ]


@pytest.fixture(scope="module")
def scored():
    claims = [
        Claim(
            id="a", text="Ann Lee painted.", original="She painted.", source="She painted birds."
        ),
        Claim(id="b", text="Ann Lee boxed.", sentence=1, source="She boxed in Oslo."),
        Claim(id="c", text="Oslo is large.", sentence=1, source="She boxed in Oslo."),
        Claim(id="d", text="It rained.", sentence=2, source="It rained."),
        Claim(id="e", text="Rain is wet.", sentence=2, source="It rained."),
        Claim(id="x", text="Hm.", sentence=3, source="Hm.", failed="no list"),
    ]
    passages = [
        Passage(id="p1", title="Ann Lee", text="A painter.", url="http://x.example", prior=0.9)
    ]
    text = "She painted birds. She boxed in Oslo. It rained."
    first = Document(id="1", topic="Who is Ann Lee?", text=text, claims=claims, passages=passages)
    silent = Document(id="2", topic="Who is Bob?", text="I'm sorry, I do not know.", claims=[])
    documents = [first.model_copy(update={"generator": "m", "group": "rare"}), silent]
    return Pipeline(Given(), [Known()], GivenPassages(), NotTheLast()).score(documents)


def written(scored, name, tmp_path):
    plain, core = write_formats(scored, [name], tmp_path, k=2)
    assert plain.name.startswith(f"{name}.known.default.json")
    assert core.name.startswith(f"{name}.known.default.core.json")
    return plain, [json.loads(line) for line in plain.read_text().splitlines()]


def test_factscore(scored, tmp_path):
    _, (found,) = written(scored, "factscore", tmp_path)
    assert set(found) == {
        *("score", "respond_ratio", "decisions", "num_facts_per_response", "init_score"),
        "num_failed",
    }
    assert found["decisions"] == [
        [
            {"atom": "Ann Lee painted.", "is_supported": True},
            {"atom": "Ann Lee boxed.", "is_supported": False},
            {"atom": "Oslo is large.", "is_supported": False},
        ],
        None,
    ]
    assert found["init_score"] == pytest.approx(1 / 3)
    assert (found["respond_ratio"], found["num_facts_per_response"]) == (0.5, 3)
    assert found["num_failed"] == 2


def test_factscore_has_no_decisions_where_there_are_none(tmp_path):
    claims = [Claim(id="d", text="It rained.", source="It rained.")]
    document = Document(id="1", topic="Rain", text="It rained.", claims=claims)
    (path,) = write_formats(
        Pipeline(Given(), [Known()]).score([document]), ["factscore"], tmp_path, 2
    )
    found = json.loads(path.read_text())
    assert (found["decisions"], found["num_failed"], found["respond_ratio"]) == ([None], 1, 1)


def test_veriscore_there_and_back(scored, tmp_path):
    path, (found, silent) = written(scored, "veriscore", tmp_path)
    assert set(found) == {
        *("question", "prompt_source", "response", "prompt_tok_cnt", "response_tok_cnt", "model"),
        *("abstained", "claim_list", "all_claims", "claim_search_results"),
        *("claim_verification_result", "num_failed"),
    }
    assert found["claim_list"][0] == ["Ann Lee painted."]
    assert found["claim_list"][3] == ["No verifiable claim."]
    hit = {"title": "Ann Lee", "snippet": "A painter.", "link": "http://x.example"}
    assert found["claim_search_results"]["Ann Lee boxed."] == [hit]
    results = found["claim_verification_result"]
    assert [set(r) for r in results] == [{"claim", "search_results", "verification_result"}] * 3
    assert [r["verification_result"] for r in results] == [
        *("supported", "contradicted", "inconclusive")
    ]
    assert results[0]["search_results"].startswith("Search result 1\nTitle: Ann Lee\n")
    assert silent["abstained"] is True
    first, second = read_records(path, Document)
    # What its evidence does not decide counts as not supported, as in VeriScore's own score.
    assert [c.label for c in first.claims] == ["S", "NS", "NS", None, None]
    assert [c.sentence for c in first.claims] == [0, 1, 1, 2, 2]
    assert first.passages[0].url == "http://x.example"
    assert first.claims[0].contexts == [first.passages[0].id]
    assert (first.topic, first.generator) == ("Who is Ann Lee?", "m")
    assert (second.claims, second.model_extra["responds"]) == ([], False)


def test_veriscore_knows_claims_by_their_text(tmp_path):
    claims = [
        Claim(id="a", text="Ann ran.", source="Ann ran."),
        Claim(id="b", text="Ann ran.", sentence=4, source="So she ran."),
    ]
    document = Document(id="1", topic="Ann", text="Ann ran. So she ran.", claims=claims)
    (path,) = write_formats(
        Pipeline(Given(), [Known()]).score([document]), ["veriscore"], tmp_path, 2
    )
    found = json.loads(path.read_text())
    assert found["claim_list"] == [["Ann ran."], ["Ann ran."]]
    assert found["all_claims"] == list(found["claim_search_results"]) == ["Ann ran."]
    assert [r["verification_result"] for r in found["claim_verification_result"]] == ["supported"]
    # As its current code writes a sentence without claims.
    path = tmp_path / "claims.jsonl"
    path.write_text(json.dumps(found | {"claim_list": [[None], ["Ann ran."]]}))
    (read,) = read_records(path, Document)
    assert [(c.text, c.sentence) for c in read.claims] == [("Ann ran.", 1)]


def test_safe_names_every_generator(scored, tmp_path):
    document = scored[1].document.model_copy(update={"generator": "k"})
    other = scored[1].model_copy(update={"document": document})
    _, (found,) = written([scored[0], other], "safe", tmp_path)
    assert found["side_1"] == "k, m"


def test_safe_there_and_back(scored, tmp_path):
    path, (found,) = written(scored, "safe", tmp_path)
    assert set(found) == {"side_1", "side_2", "per_prompt_data", "autoeval_configs"}
    row = found["per_prompt_data"][0]
    assert set(row) == {"prompt", "side1_response", "side2_response", "side1_posthoc_eval_data"}
    data = row["side1_posthoc_eval_data"]
    assert set(data) == {
        *("prompt", "response", "all_atomic_facts", "checked_statements", "num_failed"),
        *("num_claims", "sentences_and_atomic_facts"),
        *("revised_fact_jsonified_all", "past_steps_jsonified_all", "f1_2"),
        *("Supported", "Irrelevant", "Not Supported"),
    }
    assert data["all_atomic_facts"][0] == {
        "sentence": "She painted birds.",
        "atomic_facts": ["She painted."],
    }
    assert set(data["checked_statements"][0]) == {
        *("sentence", "atomic_fact", "self_contained_atomic_fact", "relevance_data"),
        *("rate_data", "annotation"),
    }
    assert data["checked_statements"][0]["rate_data"] == {
        "response": "I think so.",
        "answer": "Supported",
    }
    assert (data["Supported"], data["Not Supported"], data["Irrelevant"]) == (1, 2, 1)
    # Precision 1/3 and recall@2 1/2; its scripts average it over all texts.
    silent = found["per_prompt_data"][1]["side1_posthoc_eval_data"]
    assert (data["f1_2"], silent["f1_2"]) == (pytest.approx(2 / 5), 0)
    assert data["num_claims"] == 5
    assert data["sentences_and_atomic_facts"][0] == ["She painted birds.", ["She painted."]]
    assert data["checked_statements"][4]["rate_data"] is None
    assert data["revised_fact_jsonified_all"][0] == {
        "atomic_fact": "She painted.",
        "revised_fact": "Ann Lee painted.",
        "is_relevant": "",
    }
    assert data["past_steps_jsonified_all"] == [{}] * 5
    assert (found["side_1"], found["side_2"]) == ("m", "none"), "there is no second to rate"
    first, _ = read_records(path, Document)
    assert first.generator == "m"
    assert [c.label for c in first.claims] == ["S", "NS", "NS", None, "IR"]
    assert [c.sentence for c in first.claims] == [0, 1, 1, 2, 2]
    assert (first.claims[0].text, first.claims[0].original) == ("Ann Lee painted.", "She painted.")
    assert first.claims[0].source == "She painted birds."


def test_factreasoner_there_and_back(scored, tmp_path):
    path, (found, _) = written(scored, "factreasoner", tmp_path)
    assert set(found) == {"input", "output", "topic", "cat", "atoms", "contexts", "results"}
    assert set(found["atoms"][0]) == {"id", "text", "original", "label", "contexts"}
    assert set(found["contexts"][0]) == {
        *("id", "title", "text", "link", "snippet", "synthetic_summary", "probability")
    }
    assert set(found["results"]) == {
        *("factuality_score_per_atom", "factuality_score", "recall_k", "f1_k", "num_atoms"),
        *("num_contexts", "num_true_atoms", "num_false_atoms", "num_uniform_atoms", "entropy"),
        *("norm_entropy", "avg_entropy", "avg_norm_entropy", "avg_prob", "avg_logprob"),
        *("avg_explogprob", "marginals", "predictions", "topic", "query", "response"),
        *("elapsed_time", "num_failed"),
    }
    assert found["results"]["predictions"] == {"a": "S", "b": "C", "c": "U"}
    assert found["results"]["recall_k"] == 0.5
    # As their data files are: whole objects of many lines.
    pretty = tmp_path / "pretty.json"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    pretty.write_text("\n".join(json.dumps(row, indent=2) for row in rows))
    first, second = read_records(pretty, Document)
    assert (first.claims[0].text, first.claims[0].original) == ("Ann Lee painted.", "She painted.")
    assert (first.passages[0].prior, first.claims[0].contexts) == (0.9, ["p1"])
    assert second.claims == []


def test_factreasoners_file_names_no_passage_that_it_does_not_hold(tmp_path):
    claims = [Claim(id="a", text="Ann ran.", contexts=["p", "gone"])]
    passages = [Passage(id="p", text="She ran.")]
    document = Document(id="1", topic="Ann", text="Ann ran.", claims=claims, passages=passages)
    own = Pipeline(Given(), [Known()], lambda documents, claims: (claims, [passages]))
    (path,) = write_formats(own.score([document]), ["factreasoner"], tmp_path, 2)
    (read,) = read_records(path, Document)
    assert read.claims[0].contexts == ["p"]


def test_core_keeps_the_selected(scored, tmp_path):
    _, path = write_formats(scored, ["veriscore"], tmp_path, k=2)
    found = json.loads(path.read_text().splitlines()[0])
    judged = [r["claim"] for r in found["claim_verification_result"]]
    assert judged == ["Ann Lee painted.", "Ann Lee boxed.", "Oslo is large."]
    assert "Rain is wet." not in found["claim_search_results"]
    assert "Rain is wet." in found["all_claims"]


def test_factscores_released_predictions(tmp_path):
    row = {
        "prompt": "Tell me a bio of Ann Lee.",
        "facts": ["Ann Lee painted.", "Ann Lee boxed."],
        "LLAMA+NP_Labels": ["S", "S"],
        "ChatGPT_Labels": ["S", "NS"],
    }
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (found,) = read_records(tmp_path / "a.jsonl", Document)
    assert [c.label for c in found.claims] == ["S", "NS"]
    assert found.text == "Ann Lee painted. Ann Lee boxed."


def test_texts_without_a_question_or_a_rating_are_read(tmp_path):
    hits = {"Ann ran.": [{"title": "", "snippet": "", "link": ""}]}
    row = {"response": "Ann ran.", "model": "m", "prompt_source": "wiki"}
    rows = [row, row | {"claim_list": [["Ann ran."]], "claim_search_results": hits}]
    # As written on Windows, with a byte order mark.
    path = tmp_path / "veriscore.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8-sig")
    first, second = read_records(path, Document)
    assert (first.topic, second.topic, second.passages) == ("d1", "d2", [])
    (out,) = write_formats(Pipeline(Given(), [Known()]).score([second]), ["veriscore"], tmp_path, 2)
    assert json.loads(out.read_text())["question"] == ""
    row = {"prompt": "Who?", "side1_response": "Ann.", "side2_response": "placeholder"}
    sides = {"side_1": "m", "side_2": "placeholder", "per_prompt_data": [row]}
    (tmp_path / "safe.json").write_text(json.dumps(sides))
    (found,) = read_records(tmp_path / "safe.json", Document)
    assert (found.topic, found.text, found.generator) == ("Who?", "Ann.", "m")
