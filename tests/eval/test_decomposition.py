"""DecompScore by hand, and the experiment over it: same numbers, same bytes, no text that runs."""

import re
from functools import partialmethod
from pathlib import Path

import evaluate
import numpy as np
import pytest
import yaml

from eval.commands.report import build_report
from eval.decompose.given import Given
from eval.decompose.sentences import Sentences
from eval.experiments.decomposition import decomposition_values
from eval.experiments.decomposition.decomposition import Decomposition
from eval.experiments.decomposition.decomposition_values import JudgedPassage
from eval.metrics.claim_matches import ByCosine, ByEntailment, Matches
from eval.metrics.decomposition import decision, judge_by_source, one_of_each, same_claims
from eval.metrics.document import DocumentScore, Scored, tally
from eval.models.chat import Answer
from eval.run.run import Run
from eval.verify.factscore import FActScore
from eval.verify.nli import NLI
from records import (
    Claim,
    Document,
    UserError,
    Verdict,
    read_records,
    write_jsonl,
)

COUNTS = ("claims", "kept", "supported", "contradicted", "undecided", "irrelevant", "failed")
COUNTS += ("judged", "empty_selection")
ATTACK = "</script><img src=x onerror=alert(1)> $x_{$ | a\\b"


def words(text):
    return set(re.findall(r"\w+", text.lower()))


class Words:
    """An entailment model: what has no new word is entailed. Knows what it was asked."""

    def __init__(self):
        self.asked = []

    def relations(self, pairs):
        self.asked += pairs
        inside = np.asarray([words(h) <= words(p) for p, h in pairs], dtype=bool).reshape(-1, 1)
        return np.where(inside, [0.9, 0.1, 0.0], [0.1, 0.8, 0.1])


class Neighbours:
    """An entailment model that is not transitive: numbers that lie next to each other."""

    def relations(self, pairs):
        close = np.asarray([abs(int(p) - int(h)) == 1 for p, h in pairs], dtype=bool)
        return np.where(close[:, None], [0.9, 0.1, 0.0], [0.1, 0.8, 0.1])


class Cut:
    """A decomposer by ``and``; a sentence with a question mark fails, ``times`` says all again."""

    def __init__(self, times=1, dies_at=None):
        self.times = times
        self.dies_at = dies_at
        self.seen = []

    def __call__(self, documents):
        if self.dies_at is not None and len(self.seen) >= self.dies_at:
            self.dies_at = None
            raise KeyboardInterrupt
        self.seen += [document.id for document in documents]
        return [self.of(document.text) for document in documents]

    def of(self, text):
        claims = []
        for place, source in enumerate(re.findall(r"[^.?]+[.?]", text)):
            failed = "a question" if source.endswith("?") or "What" in source else None
            parts = [source] if failed else source.strip(" .").split(" and ") * self.times
            for part in parts:
                name = f"c{len(claims)}"
                more = {"sentence": place, "source": source.strip(), "failed": failed}
                claims.append(Claim(id=name, text=part.strip(), **more))
        return claims


class Known:
    """A verifier: supported is what has the word ``true``."""

    judges_sets = False
    name = "known"

    def __call__(self, documents, claims, passages):
        return [[self.verdict(claim, group) for claim in group] for group in claims]

    def verdict(self, claim, group):
        label = "supported" if self.supports(claim, group) else "not_supported"
        return Verdict(claim=claim.id, assessor=self.name, label=label)

    def supports(self, claim, group):
        return "true" in claim.text


class Crowd(Known):
    """A verifier that judges the set: supported is every claim where there are three or more."""

    judges_sets = True
    name = "crowd"

    def supports(self, claim, group):
        return len(group) > 2


class Reader:
    """Plays the language model: says True to what has no new word, and Hm to green."""

    identity = {"model": "reader"}  # noqa: RUF012

    def answer(self, prompts, **settings):
        actual = []
        for prompt in prompts:
            text, claim = re.search(
                r"Text: (.*?)\n\nInput: (.*) True or False", prompt[-1]["content"], re.DOTALL
            ).groups()
            answer = "Hm." if "green" in claim else str(words(claim) <= words(text) | {"two"})
            actual.append([Answer(answer)])
        return actual


def claim(text, source="Ann sings loud songs", **more):
    return Claim(id=text, text=text, source=source, **more)


def test_decomp_score_by_hand():
    model = Words()
    claims = [claim("ann sings"), claim("Sings, Ann"), claim("ann dances"), claim("Songs", None)]
    document = Document(id="d", topic="Ann", text="Ann has songs.")
    (verdicts,) = judge_by_source(NLI(model), [document], [claims])
    decisions = [decision(verdict) for verdict in verdicts]
    assert decisions == [1, 1, 0, 1]
    # Without a source the whole text is the premise.
    assert ("Ann has songs.", "Songs") in model.asked
    assert tally(decisions) == (4, 3, 0)
    (classes,) = same_claims(model, [claims])
    assert classes == [0, 0, 1, 2]
    assert tally(one_of_each(decisions, classes)) == (3, 2, 0)
    # A sentence supports itself, whoever judges.
    subclaims = [claim("ann sings loud songs. ")]
    assert judge_by_source(NLI(Neighbours()), [document], [subclaims])[0][0].label == "supported"

    def forgets(documents, claims, passages):
        return [verdicts[1:] for verdicts in Known()(documents, claims, passages)]

    (verdicts,) = judge_by_source(forgets, [document], [[claim("so"), claim("true")]])
    assert [decision(verdict) for verdict in verdicts] == [-1, 1]


def test_claims_that_entail_each_other_share_a_class():
    first, second = [claim(n) for n in ("1", "9", "2", "3", "9")], [claim("7"), claim("5")]
    assert same_claims(Neighbours(), [first, [], second]) == [[0, 1, 0, 0, 1], [], [0, 1]]
    model = Words()
    # One direction is not enough, and the other one is only asked where the first holds.
    assert same_claims(model, [[claim("a b"), claim("a"), claim("c")]]) == [[0, 1, 2]]
    assert model.asked == [("a b", "a"), ("a b", "c"), ("a", "c"), ("a", "a b")]
    assert same_claims(model, [[claim("a b"), claim("b a")]], threshold=0.95) == [[0, 1]]
    # A supported claim stands for its class; a failed one only where there is no other.
    assert one_of_each([0, 1, -1, -1, 0], [0, 0, 1, 2, 2]) == [1, -1, 0]


def test_evaluate_module_computes_decomp_score(pytestconfig, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_EVALUATE_OFFLINE", "1")
    path = pytestconfig.rootpath / "eval/metrics/decomp_score.py"
    metric = evaluate.load(str(path), cache_dir=str(tmp_path))
    actual = metric.compute(predictions=[[1, 0, -1], [1, 1], [], [-1]])
    assert actual.pop("coherence_per_passage") == (1 / 2 + 1) / 2
    assert actual == {"decomp_score": 1.0, "coherence": 0.75, "subclaims": 4 / 3} | {
        "n": 3,  # the last passage could not be judged, the empty one says nothing
        "failed": 2,
    }
    nothing = metric.compute(predictions=[[-1]])
    assert (nothing["decomp_score"], nothing["coherence"], nothing["n"]) == (None, None, 0)
    assert nothing["coherence_per_passage"] is None


def write_texts(path, texts):
    """Write documents; a question is declared a response, so that its decomposition fails."""
    rows = [{"id": t, "topic": t, "text": text} for t, text in texts.items()]
    write_jsonl(path, [row | {"responds": True} if "?" in row["text"] else row for row in rows])


@pytest.fixture
def passages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = {
        "t1": "It is true and it is blue and is it blue. What is.",
        "t2": "Two is true and two.",
        "t3": "I'm sorry, I cannot help.",
    }
    write_texts("one.jsonl", first)
    two = {"t1": "This is true and this is. That is green and so on.", "t4": "Why?"}
    write_texts("two.jsonl", two)
    write_texts("sentences.jsonl", {ATTACK: f"{ATTACK} is and is."})
    return {"one": "one.jsonl", "two": "two.jsonl"}


class Loose(Words):
    """Finds more entailed than ``Words``: all but the word ``on``."""

    def relations(self, pairs):
        super().relations(pairs)
        bad = np.asarray(["on" in words(h) for _, h in pairs], dtype=bool).reshape(-1, 1)
        return np.where(bad, [0.1, 0.8, 0.1], [0.9, 0.1, 0.0])


def experiment(passages, **more):
    options = {
        "decomposers": {"cut": Cut(), "twice": Cut(2), "whole": Sentences()},
        "judges": {"nli": NLI(Loose()), "llm": FActScore(Reader())},
        "entailment": Words(),
        "verify": [Known()],
        "sentences": "sentences.jsonl",
    }
    return Decomposition(passages, **(options | more))


def cut_by_nli(passages, **more):
    """The experiment with one decomposer and one judge."""
    options = {"decomposers": {"cut": Cut()}, "judges": {"nli": NLI(Loose())}, "entailment": None}
    return experiment(passages, **(options | more))


def value_of(file, kind, metric, generator, assessor=None, against=None, variant=None):
    place = (kind, metric, generator, assessor, against, variant)
    (row,) = [
        r
        for r in file.results
        if (r.kind, r.metric, r.generator, r.assessor, r.against, r.variant) == place
    ]
    return (row.value, row.n, row.failed)


def test_the_experiment_by_hand(passages):
    file = experiment(passages).run(Path("run"), {})
    assert file.provenance["left_out"] == {"no response": 1, "no given claims": 0}
    assert list(file.provenance["prompts"]) == ["verify/prompts/factscore_retrieval.jinja"]

    def value(*key, **more):
        return value_of(file, *key, **more)

    # one: 3 + 2 subclaims of two passages, one failed sentence; two: 4, and a passage that failed.
    assert value("cut", "subclaims", "one") == (2.5, 2, 1)
    assert value("cut", "subclaims", "two") == (4, 1, 1)
    assert value("cut", "subclaims", "macro") == (3.25, 2, 2)
    assert value("twice", "subclaims", "macro") == (6.5, 2, 2)
    assert value("whole", "subclaims", "two") == (1.5, 2, 0)
    # "it is blue" and "is it blue" are one; the NLI judge rejects "so on".
    assert value("cut", "subclaims_distinct", "one") == (2, 2, 1)
    assert value("cut", "decomp_score", "two", "nli") == (3, 1, 1)
    assert value("cut", "coherence", "two", "nli") == (0.75, 1, 1)
    distinct = "decomp_score_distinct"
    for metric, judge in ((distinct, "nli"), ("coherence", "nli"), (distinct, "llm")):
        actual = [value(name, metric, "macro", judge)[0] for name in ("twice", "cut")]
        assert actual[0] == actual[1]
    assert value("twice", "decomp_score", "macro", "nli")[0] == 5.5
    assert value("cut", "decomp_score", "macro", "nli")[0] == 2.75
    assert value("cut", "decomp_score_distinct", "macro", "nli")[0] == 2.5
    # The other judge has no answer for "that is green".
    assert value("cut", "decomp_score", "two", "llm") == (3, 1, 2)
    assert value("cut", "coherence", "two", "llm") == (1, 1, 2)
    # Factual precision: of one (1/3 + 1/2) / 2, of two 1/4; over the supported only 1/3.
    precision, filtered = "factual_precision", "factual_precision_supported_only"
    assert value("cut", precision, "one") == (pytest.approx(5 / 12), 2, 1)
    assert value("cut", precision, "two") == (0.25, 1, 1)
    assert value("cut", filtered, "two", variant="nli") == (pytest.approx(1 / 3), 1, 0)
    assert value("cut", precision, "macro")[0] == pytest.approx(1 / 3)
    # Nine claims: on the green one a judge failed, on "so on" the judges differ.
    assert value("cut", "agreement", "all", "nli", "llm")[0] == pytest.approx(7 / 8)
    assert value("cut", "kappa", "all", "nli", "llm")[0] == 0
    assert value("all", "agreement", "all", "nli", "llm")[2] == 3
    assert -1 <= value("all", "pearson_of_means", "all", "nli", "llm")[0] <= 1


def test_set_verifiers_judge_supported_claims_separately(passages):
    class Strict(Words):
        def relations(self, pairs):
            actual = super().relations(pairs)
            actual[["blue" in h for _, h in pairs]] = [0.1, 0.8, 0.1]
            return actual

    options = {"verify": [Known(), Crowd()], "judges": {"nli": NLI(Strict())}}
    file = cut_by_nli(passages, **options).run(Path("run"), {})
    assert value_of(file, "cut", "factual_precision", "one", "crowd")[0] == 0.5
    filtered = "factual_precision_supported_only"
    judged_again = value_of(file, "cut", filtered, "one", "crowd", variant="nli")
    assert judged_again[0] == 0  # one claim of three is left
    # Two verifiers have metrics of their own.
    assert value_of(file, "cut", "factual_precision", "one", "known")[0] < 0.5
    assert not [row for row in file.results if row.against]


def test_coherence_is_pooled_or_the_mean_of_the_passages_shares(tmp_path):
    texts = {"t1": "It is so and so on and on.", "t2": "It is true.", "t3": "Why?", "t4": "Hm"}
    write_texts(tmp_path / "one.jsonl", texts)
    judges = {"nli": NLI(Loose())}  # "so on" and "on" are not supported
    run = Decomposition({"one": str(tmp_path / "one.jsonl")}, {"cut": Cut()}, judges)
    file = run.run(tmp_path / "run", {})
    assert value_of(file, "cut", "coherence", "one", "nli") == (2 / 4, 2, 1)
    assert value_of(file, "cut", "decomp_score", "one", "nli") == (2 / 3, 3, 1)
    # One of three and one of one; no share has a passage that failed, or one that says nothing.
    mean = value_of(file, "cut", "coherence_per_passage", "one", "nli")
    assert mean == (pytest.approx((1 / 3 + 1) / 2), 2, 1)


def test_factscore_has_its_length_penalty_and_precision_has_none(passages):
    file = cut_by_nli(passages, gamma=4).run(Path("run"), {})
    assert value_of(file, "cut", "factual_precision", "two")[0] == 0.25
    assert value_of(file, "cut", "factscore", "two")[0] == 0.25  # four subclaims
    t1, t2 = 1 / 3 * np.exp(1 - 4 / 3), 1 / 2 * np.exp(1 - 4 / 2)
    assert value_of(file, "cut", "factscore", "one")[0] == pytest.approx((t1 + t2) / 2)
    # Of the supported ones there are three; their number is the penalty's.
    over = value_of(file, "cut", "factscore_supported_only", "two", variant="nli")[0]
    assert over == pytest.approx(1 / 3 * np.exp(1 - 4 / 3))
    # DecompScore never has it.
    assert value_of(file, "cut", "decomp_score", "two", "nli")[0] == 3
    none = cut_by_nli(passages).run(Path("none"), {})
    assert not [row for row in none.results if row.metric.startswith("factscore")]


def test_abstentions_keep_keeps_passages_that_do_not_respond(passages):
    write_texts("two.jsonl", {"t5": ""})
    file = cut_by_nli(passages, abstentions="keep").run(Path("run"), {})
    assert file.provenance["left_out"] == {"no response": 1, "no given claims": 0}  # the empty one
    # t3 says "I'm sorry, I cannot help.": one subclaim, which Known calls not supported.
    assert value_of(file, "cut", "subclaims", "one") == (2, 3, 1)
    assert value_of(file, "cut", "factual_precision", "one")[0] == pytest.approx(
        (1 / 3 + 1 / 2) / 3
    )


# Table 7 of 2403.11903: FActScore (%) and subclaims with gpt-3.5-turbo-instruct as decomposer, and
# as FActScore's authors reported them with text-davinci-003; generators in the table's order.
TABLE_7 = {
    "factscore": (
        [36.9, 40.8, 46.9, 52.2, 16.7, 55.9, 43.6, 26.2, 21.2, 13.5, 35.2, 34.1],
        [36.5, 40.3, 46.3, 60.4, 17.1, 59.9, 41.7, 27.9, 20.8, 16.3, 36.9, 40.7],
    ),
    "subclaims": (
        [17.3, 16.6, 16.9, 33.0, 24.7, 57.9, 27.2, 36.3, 41.2, 30.4, 43.9, 45.8],
        [17.4, 16.6, 17.1, 37.0, 24.6, 60.8, 27.7, 37.3, 39.7, 38.0, 45.6, 50.9],
    ),
}


def passage_of(topic, generator, usable, failed, decisions=None, **more):
    claims = [
        Claim(id=str(n), text="x", failed=None if n < usable else "x")
        for n in range(usable + failed)
    ]
    labels = {1: "supported", 0: "not_supported", -1: "failed"}
    support = {
        judge: [
            Verdict(claim=str(n), assessor=judge, name="default", label=labels[label])
            for n, label in enumerate(made)
        ]
        for judge, made in (decisions or {}).items()
    }
    scored = Scored(
        document=Document(id=topic, topic=topic, text="x", generator=generator),
        claims=claims,
        **{"selections": [], "passages": [], "verdicts": [], "scores": more.pop("scores", [])},
    )
    fields = {"support": support, "classes": None, "filtered": {}}
    return JudgedPassage(scored=scored, **(fields | more))


def test_the_correlations_of_table_7_from_its_columns():
    names = [f"g{place}" for place in range(12)]
    reported = {
        metric: dict(zip(names, theirs, strict=True)) for metric, (_, theirs) in TABLE_7.items()
    }
    factscore, subclaims = (means for means, _ in TABLE_7.values())
    scores = [
        DocumentScore(
            assessor="known",
            name="default",
            selection="none",
            responded=True,
            factscore=value / 100,
            precision=0,
            **dict.fromkeys(COUNTS, 0),
        )
        for value in factscore
    ]
    # One passage per generator, with ten times the generator's mean number of subclaims.
    run = [
        passage_of(name, name, round(10 * number), 0, scores=[score])
        for name, number, score in zip(names, subclaims, scores, strict=True)
    ]
    rows = decomposition_values.values_of({"FActScore": run}, 0, reported, penalised=True)
    actual = {r["variant"]: r for r in rows if r["metric"] == "pearson_with_reported"}
    assert actual["factscore"]["value"] == pytest.approx(0.9786, abs=5e-5)
    # The table says 0.9821; its columns give this.
    assert actual["subclaims"]["value"] == pytest.approx(0.9846, abs=5e-5)
    assert {(r["generator"], r["n"]) for r in actual.values()} == {("all", 12)}


def test_claims_on_which_a_judge_failed_are_not_compared():
    rising = [[1] * count + [0] * (4 - count) for count in range(5)]
    left = [*rising, [1] * 4, [1] * 4]
    right = [*rising[::-1], [-1] * 4, [-1] * 4]
    run = [
        passage_of(f"t{place}", "g", 4, 0, {"a": a, "b": b})
        for place, (a, b) in enumerate(zip(left, right, strict=True))
    ]
    run.append(passage_of("t7", "g", 0, 2, {"a": [], "b": []}))
    rows = decomposition_values.values_of({"cut": run, "again": run}, 0)
    rows = [r for r in rows if r["metric"] in ("pearson", "spearman")]
    assert len(rows) == 6
    for row in rows:
        assert (row["value"], row["n"]) == (pytest.approx(-1), 5)
        assert row["failed"] == 8 * (1 + (row["kind"] == "all"))


def dying(stage):
    """A stage that is killed at its second call."""

    class Dies(stage):
        calls = 0

        def __call__(self, *arguments):
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return super().__call__(*arguments)

    return Dies


def test_interrupted_run_resumes_to_the_same_bytes(passages, monkeypatch):
    monkeypatch.setattr(Run, "process", partialmethod(Run.process, chunk=2))
    cut_by_nli(passages).run(Path("whole"), {})
    cut = Cut(dies_at=2)
    stages = {"verify": [dying(Known)()], "judges": {"nli": dying(NLI)(Loose())}}
    broken = cut_by_nli(passages, decomposers={"cut": cut}, **stages)
    for _ in ("decomposer", "verifier", "judge"):
        with pytest.raises(KeyboardInterrupt):
            broken.run(Path("killed"), {})
        assert not Path("killed/results.json").exists()
    broken.run(Path("killed"), {})
    files = {p.relative_to("whole") for p in Path("whole").rglob("*") if p.is_file()}
    assert files == {p.relative_to("killed") for p in Path("killed").rglob("*") if p.is_file()}
    for name in files:
        assert (Path("killed") / name).read_bytes() == (Path("whole") / name).read_bytes(), name
    # The chunk that was done is not done again.
    assert cut.seen.count("one/t1") == 1


def test_given_facts_of_labelled_biographies_are_decomposers(tmp_path):
    fact = {"text": "Ann sings.", "label": "IR"}
    sentence = {"text": "Ann sings loud.", "human-atomic-facts": [fact]}
    sentence["model-atomic-facts"] = [{"text": "Ann sings."}, {"text": "Ann is loud."}]
    row = {"topic": "Ann", "output": "Ann sings loud.", "annotations": [sentence]}
    none = {"topic": "Bob", "output": "Bob sings loud."}
    silent = {"topic": "Cy", "output": "Cy sings.", "annotations": None}
    write_jsonl(tmp_path / "bios.jsonl", [row, none, silent])
    ann, bob, cy = read_records(tmp_path / "bios.jsonl", Document)
    assert Given()([cy]) == [[]], "an abstention has no facts"
    model = Given(field="model_claims")
    assert [(c.text, c.source, c.id) for c in model([ann])[0]] == [
        ("Ann sings.", "Ann sings loud.", "c0"),
        ("Ann is loud.", "Ann sings loud.", "c1"),
    ]
    assert [len(Given(irrelevant=keep)([ann])[0]) for keep in (True, False)] == [1, 0]
    with pytest.raises(UserError, match="`model_claims` field"):
        model([bob])
    # The experiment leaves the passage out for all decomposers, and says so.
    judges = {"nli": NLI(Words())}
    decomposers = {"sentences": Sentences(), "model": model}
    run = Decomposition([str(tmp_path / "bios.jsonl")], decomposers, judges)
    file = run.run(tmp_path / "run", {})
    assert file.provenance["left_out"] == {"no response": 1, "no given claims": 1}
    assert value_of(file, "model", "decomp_score", "given", "nli") == (1, 1, 0)
    assert value_of(file, "sentences", "decomp_score", "given", "nli") == (1, 1, 0)


def test_the_papers_configuration_has_its_settings(pytestconfig):
    path = pytestconfig.rootpath / "configs/experiments/paper/decomposition.yaml"
    options = yaml.safe_load(path.read_text("utf-8"))["experiment"]
    assert (options["abstentions"], options["gamma"], len(options["documents"])) == ("keep", 10, 12)
    reported = options["reported"]
    for metric, (_, theirs) in TABLE_7.items():
        assert list(reported[metric]) == list(options["documents"])
        assert list(reported[metric].values()) == theirs
    decomposers = {name: part["init_args"] for name, part in options["decomposers"].items()}
    methods = {part.get("method", "predpatt") for part in decomposers.values()}
    assert methods == {"rnd", "chen", "wice", "factscore", "fs2", "conllu", "predpatt"}
    assert decomposers["PredPatt"]["verbalise"] == "one_by_one"
    judge = options["judges"]["llm"]["init_args"]["writer"]
    for writer in [judge, *(part["writer"] for part in decomposers.values())]:
        assert writer["init_args"]["endpoint"] == "completions"


def factcheck(*sentences):
    """A response of Factcheck-Bench: sentences as (text, decontext, claims)."""
    actual = {}
    for place, (text, form, claims) in enumerate(sentences):
        count = len(claims)
        actual[f"sentence{place}"] = {
            "text": text,
            "decontext": form,
            "sentence_checkworthiness": "yes",
            "claims": claims,
            "claim_checkworthiness": ["factual"] * count,
            "claims_factuality_label": [True] * count,
            "auto_evidence": [["Seen."]] * count,
            "stance_claim_autoEvid": [["irrelevant"]] * count,
            "human_evidence": ["NA"] * count,
        }
    return {"prompt": "Who?", "response": " ".join(s[0] for s in sentences), "sentences": actual}


def test_claims_are_matched_one_to_one_and_covered_by_what_entails_them():
    match = ByEntailment(Words())
    (actual,) = match(
        [["Ann sang", "sang Ann", "Bob ran and fell"]], [["Ann sang", "Bob ran", "x"]]
    )
    # "sang Ann" says again what is matched; "Bob ran and fell" entails "Bob ran" and says more.
    assert (actual.people, actual.matched, actual.covered) == (3, 1, 2)
    assert match([[], ["a"]], [["a"], ["b"]]) == [
        Matches(people=1, matched=0, covered=0),
        Matches(people=1, matched=0, covered=0),
    ]
    # As many as can be: the first claim must not take the only partner of the second.
    both = ByEntailment(Neighbours())
    assert both([["2", "4"]], [["3", "1"]])[0].matched == 2


def test_claims_are_matched_by_an_encoder():
    class Letters:
        def encode(self, texts):
            return np.asarray([[text.count(letter) for letter in "abc"] for text in texts])

    match = ByCosine(Letters(), threshold=0.9)
    actual = match([["aa", "b"], []], [["a", "c"], ["b"]])
    assert actual == [Matches(people=2, matched=1), Matches(people=1, matched=0)]
    assert match([[]], [[]]) == [Matches(people=0, matched=0)]


def test_subclaims_against_peoples_sentence_by_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        factcheck(
            ("She sang and ran.", "Ann sang and ran.", ["Ann sang", "Ann ran"]),
            ("Bob sat.", "Bob sat.", ["Bob sat."]),
            ("Nothing.", "Nothing.", []),
        )
    ]
    write_jsonl("responses.jsonl", rows)
    giver = Given(irrelevant=True)
    file = Decomposition(
        {"g": "responses.jsonl"},
        {"whole": Sentences(), "people": giver},
        {"nli": NLI(Words())},
        match=ByEntailment(Words()),
        texts="sentences",
    ).run(Path("run"), {})
    actual = {(r.kind, r.metric): r.value for r in file.results if r.generator == "g"}
    assert actual["whole", "subclaims"] == 1
    # Two sentences, of which one is people's claim; both together entail all three.
    assert actual["whole", "claim_precision"] == 1 / 2
    assert actual["whole", "claim_recall"] == 1 / 3
    assert actual["whole", "claim_f1"] == 2 * 1 / (2 + 3)
    assert actual["whole", "element_coverage"] == 1
    assert actual["people", "claim_f1"] == actual["people", "element_coverage"] == 1
    # "Ann …" does not follow from "She …"; only that sentence has another form.
    assert actual["whole", "context_changes"] == 1
    assert actual["people", "context_changes"] == 1
    page = build_report("run").read_text(encoding="utf-8")
    assert "Human claims" in page
    assert "context changes" in page


def test_failed_decomposition_is_excluded_from_claim_recall():
    whole = Matches(people=2, matched=1, covered=2)
    none = Matches(people=3, matched=0, covered=0)
    counts = zip("abc", [2, 0, 0], [0, 1, 0], [whole, none, none], strict=True)
    run = [passage_of(name, "g", usable, failed, matches=m) for name, usable, failed, m in counts]
    rows = decomposition_values.values_of({"cut": run}, 0)
    actual = {r["metric"]: (r["value"], r["n"], r["failed"]) for r in rows if r["generator"] == "g"}
    # The third text has no subclaim, and nothing of it failed: its claims are missed.
    assert actual["claim_recall"] == (1 / 5, 2, 1)
    assert actual["claim_f1"] == (2 / 7, 2, 1)
    assert actual["element_coverage"] == (2 / 5, 2, 1)
    assert actual["claim_precision"] == (1 / 2, 1, 1)
