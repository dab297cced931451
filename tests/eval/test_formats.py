"""What other projects write is read, and what they read is written, field by field."""

import json

import pytest

from eval.decompose.given import Given
from eval.pipeline import Pipeline
from eval.report.exports import write_formats
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
    found = {c.text: (c.label, c.sentence) for c in first.claims}
    assert found == {
        "Ann painted.": ("S", 0),
        "Ann boxed.": ("NS", 3),
        "It is.": ("NS", 3),
        "Hm.": (None, 3),
    }
    assert first.passages[0].url == "http://x.example"
    assert first.claims[0].contexts == [first.passages[0].id]
    assert (first.topic, first.generator) == ("Who is Ann Lee?", "m")
    assert (second.claims, second.model_extra["responds"]) == ([], False)


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
    (found,) = read_records(tmp_path / "safe.json", Document)
    assert found.generator == "m"
    assert [(c.label, c.sentence) for c in found.claims] == [("S", 0), ("NS", 1), ("IR", 1)]
    assert (found.claims[0].text, found.claims[0].original) == ("Ann painted.", "She painted.")
    assert found.claims[0].source == "She painted birds."


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
    row = {"prompt": "Who?", "side1_response": "Ann.", "side2_response": "placeholder"}
    sides = {"side_1": "m", "side_2": "placeholder", "per_prompt_data": [row]}
    (tmp_path / "safe.json").write_text(json.dumps(sides))
    (found,) = read_records(tmp_path / "safe.json", Document)
    assert (found.topic, found.text, found.generator) == ("Who?", "Ann.", "m")
