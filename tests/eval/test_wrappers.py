"""Every wrapper over every shipped verifier, with tiny random models."""

import pytest
from transformers import BertForSequenceClassification

from eval.decompose.given import Given
from eval.defences import Defence
from eval.experiments.named import Named
from eval.models.checker import Checker
from eval.models.encoder import Entailment, LssTagger
from eval.models.local import LocalModel
from eval.pipeline import Pipeline
from eval.retrieve.bm25 import BM25
from eval.retrieve.titles import TopicPage
from eval.select.controls import DistinctWords
from eval.select.core import Core
from eval.select.gate import Gate
from eval.stages import run_verifier
from eval.verify.about_topic import AboutTopic
from eval.verify.dfactscore.local_groups import LocalGroups
from eval.verify.dfactscore.stage import DFActScore
from eval.verify.factreasoner.stage import FactReasoner
from eval.verify.factscore import FActScore
from eval.verify.factverify import FactVerify
from eval.verify.in_parts import InParts
from eval.verify.labels import Labels
from eval.verify.majority import Majority
from eval.verify.minicheck import MiniCheck, PromptedMiniCheck
from eval.verify.nli import NLI
from eval.verify.recorded import Recorded
from eval.verify.safe import Safe
from eval.verify.selected import Selected
from eval.verify.similar import Similar
from eval.verify.slots import Slots
from eval.verify.supported_share import SupportedShare
from eval.verify.veriscore import VeriScore
from eval.verify.whole_text import WholeText
from eval.verify.with_knowledge import WithKnowledge
from eval.verify.word_test import WordTest
from records import Claim, Document, Passage, write_jsonl

PASSAGES = [
    Passage(id="p", title="Ada Lovelace", text="Ada Lovelace was a poet."),
    Passage(id="q", title="Ada Lovelace (ship)", text="Ada Lovelace was born in Paris."),
]
TEXTS = {
    "a": "Ada Lovelace was a poet.",
    "b": "A rival of Ada was a poet.",
    "c": "Ada Lovelace was a poet, and she was born in Paris.",
    "d": "She was not born in London.",
    "e": "It is here.",
}
CLAIMS = [
    Claim(id=name, text=text, sentence=n, source=text, label="S", contexts=["q", "p"])
    for n, (name, text) in enumerate(TEXTS.items())
]
CLAIMS[-1] = CLAIMS[-1].model_copy(update={"contexts": []})
DOCUMENT = Document(
    id="d", topic="Ada Lovelace", text=" ".join(TEXTS.values()), claims=CLAIMS, passages=PASSAGES
)
TOKENS = {"max_new_tokens": 4}
VERIFIERS = {
    "nli": lambda m: NLI(m.relation),
    "dfactscore": lambda m: DFActScore(m.relation, LocalGroups()),
    "dfactscore by nli": lambda m: DFActScore(NLI(m.relation), LocalGroups()),
    "factreasoner": lambda m: FactReasoner(m.relation, versions=[1, 2, 3]),
    "majority": lambda m: Majority(m.relation),
    "minicheck": lambda m: MiniCheck(m.checker),
    "prompted minicheck": lambda m: PromptedMiniCheck(m.writer),
    "supported_share": lambda m: SupportedShare(m.lss),
    "similar": lambda m: Similar(),
    "word_test": lambda m: WordTest(),
    "labels": lambda m: Labels(),
    "recorded": lambda m: Recorded(),
    "selected": lambda m: Selected(DistinctWords()),
    "factscore": lambda m: FActScore(m.writer, **TOKENS),
    "factverify": lambda m: FactVerify(m.writer, retries=0, **TOKENS),
    "veriscore": lambda m: VeriScore(m.writer, **TOKENS),
    "with_knowledge": lambda m: WithKnowledge(m.writer, retries=0, **TOKENS),
    "safe": lambda m: Safe(m.writer, m.search, max_searches=1, retries=0, **TOKENS),
}
WRAPPERS = {
    "subject": lambda v: AboutTopic(v, subject=True, plain=True),
    "parts": InParts,
    "years": Slots,
    "whole text": WholeText,
    "all": lambda v: AboutTopic(InParts(WholeText(Slots(v))), subject=True),
}


class Models:
    def __init__(self, folder, relation, lss, llama, checker):
        write_jsonl(folder / "passages.jsonl", PASSAGES)
        self.relation = Entailment(relation)
        self.lss = LssTagger(lss)
        self.writer = LocalModel(str(llama), dtype="float32", cache=folder / "answers.sqlite")
        self.checker = Checker(str(checker))
        self.search = BM25(str(folder / "passages.jsonl"), k=1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, relation, lss, tiny_llama, save_bert, letter_tokenizer):
    labels = {"id2label": {0: "0", 1: "1"}, "label2id": {"0": 0, "1": 1}}
    checker = save_bert(BertForSequenceClassification, letter_tokenizer(pairs=True), **labels)
    return Models(tmp_path_factory.mktemp("wrapped"), relation, lss, tiny_llama, checker)


def verdicts_of(verifier):
    (verdicts,) = run_verifier(verifier, [DOCUMENT], [CLAIMS], [PASSAGES])
    return {(v.claim, v.assessor, v.name): v for v in verdicts}


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_wrapper_keeps_each_verdict_with_its_claim_assessor_and_name(name, tiny):
    verifier = VERIFIERS[name](tiny)
    plain = verdicts_of(verifier)
    assert {claim for claim, _, _ in plain} == set(TEXTS)
    for wrap in WRAPPERS.values():
        wrapped = verdicts_of(wrap(verifier))
        assert wrapped.keys() == plain.keys()
        simple = {key for key in plain if key[0] in "ab"}
        for key in simple if name not in ("factreasoner", "selected") else ():
            withdrawn = plain[key].label == "supported" and key[0] == "b"
            assert wrapped[key].label == plain[key].label or withdrawn
    renamed = verdicts_of(Named("mine", verifier))
    assert [v.label for v in renamed.values()] == [v.label for v in plain.values()]
    assert {key[1] for key in renamed} == {"mine"}


@pytest.mark.parametrize("name", VERIFIERS)
def test_defences_and_gates_score_every_verifier(name, tiny):
    metric = Pipeline(Given(), [VERIFIERS[name](tiny)])
    core = Core(tiny.relation, weighting="uniform", gate=Gate(from_claims=2))
    for defence in (Defence(wrap_retrieve=TopicPage), Defence(select=core)):
        (scored,) = defence.patch(metric).score([DOCUMENT])
        selection = "none" if defence.select is None else "core"
        names = {(v.assessor, v.name) for v in scored.verdicts}
        scores = [s for s in scored.scores if s.selection == selection]
        assert {(s.assessor, s.name) for s in scores} == names
        assert all(s.kept + s.unselectable <= len(CLAIMS) for s in scores)
