"""Measures of metric(claim, LSS): scores worked out by hand, windows, failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import evaluate
import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizer,
)

from components.measures import sentence_bleu_of
from eval.models.checker import Checker
from eval.models.lerc import Lerc
from eval.models.local_seq2seq import LocalSeq2Seq, Written
from eval.models.question_answering import FoundAnswer, SpanAnswers, WrittenAnswers, _best_span
from eval.similarity.answer_spans import ByRule, Span
from eval.similarity.bertscore import BertScore
from eval.similarity.bleu import Bleu
from eval.similarity.kept_words import KeptWords
from eval.similarity.nli import Nli
from eval.similarity.qafacteval import QAFactEval
from eval.similarity.questeval import QuestEval
from eval.similarity.rouge import Rouge
from records import UserError

ROOT = Path(__file__).parents[2]
CLAIM, LSS = "Ada was a poet, born in Paris.", "Ada was born in Paris"
LONG = "Ada was a poet. " * 9 + "Byron was born in Paris."


def test_overlap_measures_equal_hand_computed_values() -> None:
    pairs = [(CLAIM, LSS), (CLAIM, CLAIM), (CLAIM, " ."), ("日本", "日本"), (CLAIM, LSS)]
    for measure in (Bleu(), Rouge(), Rouge("rouge2"), KeptWords()):
        scores = measure(pairs)
        assert scores[1:4].tolist() == [1, 0, 1], measure
        assert 0 < scores[0] == scores[4] < 1
    assert Bleu()(pairs)[0] == sentence_bleu_of(CLAIM, LSS)
    # Split at blanks "Paris," is another word than "Paris".
    claim, lss = "She left Paris, then Rome and Oslo.", "She left Paris then Rome and Oslo."
    assert Bleu(blanks=True)([(claim, claim)]) == 1
    assert Bleu(blanks=True)([(claim, lss)]) < Bleu()([(claim, lss)]) < 1
    assert KeptWords()(pairs)[0] == pytest.approx(5 / 7)
    assert Rouge("rouge1")(pairs)[0] == pytest.approx(2 * 5 / (5 + 7))
    assert Rouge("rouge2")(pairs)[0] == pytest.approx(2 * 3 / (4 + 6))
    for measure in (Bleu(), Rouge(), KeptWords()):  # nothing to compare with
        assert np.isnan(measure([("...", "Ada"), ("...", "...")])).all(), measure
    # Of Greek rouge-score sees nothing: no score, not 0; a text in Greek and digits has one.
    greek = [("η γάτα είναι", "γάτα είναι"), ("ada η γάτα", "γάτα"), ("η γάτα 7", "γάτα 7")]
    assert Rouge()(greek) == pytest.approx([math.nan, math.nan, 1], nan_ok=True)
    assert KeptWords()(greek) == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    assert KeptWords()([("Ada, (1) was.", "ada was")])[0] == pytest.approx(2 / 3)


class Table:
    """An entailment model that has a row for each pair."""

    def relations(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.asarray([[len(p) / 100, 0, len(h) / 100] for p, h in pairs])


def test_nli_directions_average() -> None:
    pairs = [("a" * 10, "b" * 30)]
    results = [Nli(Table(), way)(pairs)[0] for way in ("forward", "backward", "mean")]
    assert results == pytest.approx([0.1, 0.3, 0.2])


@pytest.fixture(scope="module")
def encoder(save_bert: Callable, letter_tokenizer: Callable) -> Path:
    return save_bert(
        BertModel, letter_tokenizer(pairs=True), max_position_embeddings=64, initializer_range=0.3
    )


def _matched(folder: Path, reference: str, candidate: str, layer: int) -> tuple[float, float]:
    """Precision and recall of two texts that fit, one text at a time."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder)
    with torch.no_grad():
        element, two = (
            model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
            .hidden_states[layer][0, 1:-1]
            .numpy()
            for text in (reference, candidate)
        )
    table = (
        element
        @ two.T
        / np.linalg.norm(element, axis=1)[:, None]
        / np.linalg.norm(two, axis=1)[None]
    )
    return table.max(axis=0).mean(), table.max(axis=1).mean()


def test_bertscore_equals_hand_computed_values(encoder: Path, tmp_path: Path) -> None:
    for layer, number in ((None, -1), (1, 1)):
        precision, recall = _matched(encoder, CLAIM, LSS, number)
        results = [
            BertScore(str(encoder), layer, value)([(CLAIM, LSS)])[0]
            for value in ("precision", "recall", "fmeasure")
        ]
        f1 = 2 * precision * recall / (precision + recall)
        assert results == pytest.approx([precision, recall, f1], abs=1e-5)
    with pytest.raises(UserError, match="/nowhere: no such folder"):
        BertScore("/nowhere")([(CLAIM, LSS)])
    # Letters that all references have weigh nothing: of "ab" only b is left, which "cb" has.
    file = tmp_path / "references.jsonl"
    file.write_text('{"reference": "a b"}\n{"reference": "a c"}\n{"reference": "a c"}\n')
    weighed = BertScore(str(encoder), 0, "recall", idf=str(file))
    plain = BertScore(str(encoder), 0, "recall")
    assert weighed([("zb", "cb")])[0] != pytest.approx(plain([("zb", "cb")])[0])
    assert math.isnan(weighed([("a", "b")])[0])


def test_bertscore_prefixes_a_space_to_the_first_word(tmp_path: Path) -> None:
    """As the released code does: RoBERTa's token of a word depends on a blank before it."""
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"aĠ.", "Ġa"]
    vocabulary = {token: place for place, token in enumerate(vocabulary)}
    RobertaTokenizer(vocabulary, [("Ġ", "a")]).save_pretrained(tmp_path)
    sizes = {"hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 8}
    config = RobertaConfig(
        vocab_size=len(vocabulary), num_hidden_layers=1, max_position_embeddings=16, **sizes
    )
    RobertaModel(config).save_pretrained(tmp_path)
    score = BertScore(str(tmp_path), layer=0)
    a, dot = vocabulary["Ġa"], vocabulary["."]
    assert score._embedder.tokens(["a a.", " a\n"]) == [[a, a, dot], [a]]


def test_bertscore_covers_long_references(encoder: Path) -> None:
    """180 letters where the encoder takes 62: each stands in a window, none has lost its end."""
    score = BertScore(str(encoder), value="precision")
    ends = [LONG, LONG.replace("Paris", "Rome")]
    results = score([(end, "Paris") for end in ends] + [(LONG, LONG)])
    assert results[0] > results[1]
    assert results[2] == pytest.approx(1)
    # A token that no cut is near is what it is in the window around it.
    embedder = score._embedder
    (ids,) = embedder.tokens([LONG])
    whole, window = embedder.embed([ids, ids[31 : 31 + 62]])
    assert whole[[31 + 28, 31 + 31]] == pytest.approx(window[[28, 31]], abs=1e-5)
    assert whole[31 + 3] != pytest.approx(window[3], abs=1e-3)


class Asks:
    """A question model that asks for the answer itself, and has nothing to ask of some."""

    def write(self, pairs: Sequence[tuple[str, str]]) -> list[Written | None]:
        return [None if "?" in a else Written(f"{a} in {context}", 0) for a, context in pairs]


class Words:
    """Chooses every word."""

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        return [[Span(w, text) for w in text.split() if w != "-"] for text in texts]


class Finds:
    """Knows a word where the context has it, and is half sure of "maybe"."""

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[FoundAnswer | None]:
        return [self._one(question.split(" in ")[0], context) for question, context in pairs]

    def _one(self, word: str, context: str) -> FoundAnswer | None:
        if word == "lost":
            return None
        is_present = word in context.split()
        p = 0.6 if word == "maybe" else float(is_present)
        return FoundAnswer(word if is_present else "nothing", p)


def test_questeval_equals_hand_computed_values() -> None:
    metric = QuestEval(Asks(), Finds(), Words())
    pairs = [
        ("a b c", "a d"),
        ("a", "a"),
        ("a", "?"),
        ("a", "d lost"),
        ("maybe", "a"),
        ("a", "lost"),
    ]
    scores = metric(pairs)
    # Recall 1/3 (of a, b, c only a), precision 1/2 (of a, d only a), each by F1 and answerability.
    assert scores[0] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert scores[1] == 1
    assert scores[2] == 0  # no word, nothing to be asked
    assert scores[3] == 0  # one question of two had an answer
    assert scores[4] == pytest.approx((0.3 + 0) / 2)
    assert math.isnan(scores[5])


def test_qafacteval_equals_hand_computed_values() -> None:
    metric = QAFactEval(Asks(), Finds(), Words())
    pairs = [("a b", "a d"), ("a b", "a b maybe"), ("a", "lost"), ("a", "a lost"), ("a", "b ?x")]
    assert metric(pairs)[[0, 1, 3, 4]].tolist() == pytest.approx([1 / 2, 2 / 3, 1, 0])
    assert math.isnan(metric(pairs)[2])  # its one question falls to the filter


@pytest.fixture(scope="module")
def reader(save_bert: Callable, letter_tokenizer: Callable) -> Path:
    tokenizer = letter_tokenizer(pairs=True)
    sizes = {"max_position_embeddings": 128, "initializer_range": 0.5}
    return save_bert(BertForQuestionAnswering, tokenizer, **sizes)


def test_question_metrics_with_real_models(t5: Path, reader: Path, tmp_path: Path) -> None:
    t5 = str(t5)
    cache = tmp_path / "answers.sqlite"
    asks = LocalSeq2Seq(t5, template="q {asked} ? {context}", max_length=512, cache=cache)
    writer = LocalSeq2Seq(t5, template="{asked} ? {context}", max_length=512, watch="unanswerable")
    written, spans = WrittenAnswers(writer, chunk_words=8), SpanAnswers(str(reader), 8, 128)
    pairs = [(LONG, CLAIM), (CLAIM, LSS)]
    quest = QuestEval(asks, written, ByRule())(pairs)
    fact = QAFactEval(asks, spans, ByRule(), least_f1=-1)(pairs)
    assert ((quest >= 0) & (quest <= 1)).all()
    assert ((fact >= 0) & (fact <= 1)).all()
    alone = LocalSeq2Seq(t5, template="q {asked} ? {context}", max_length=512, batch_size=1)
    assert alone.write([("Ada", CLAIM)]) == asks.write([("Ada", CLAIM), ("was", LONG)])[:1]
    assert writer.write([("Ada" * 300, CLAIM)]) == [None]
    tokenizer, model = AutoTokenizer.from_pretrained(t5), AutoModelForSeq2SeqLM.from_pretrained(t5)
    start = torch.tensor([[model.config.decoder_start_token_id]])
    prompt = tokenizer(f"who ? {CLAIM}", return_tensors="pt")["input_ids"]
    logits = model(input_ids=prompt, decoder_input_ids=start).logits[0, 0]
    u = logits.softmax(-1)[tokenizer.convert_tokens_to_ids("u")].item()
    assert writer.write([("who", CLAIM)])[0].watched == pytest.approx(u, rel=1e-3, abs=0)
    # The window that answers best is the answer of the whole.
    each = writer.write([("Ada ?", " ".join(LONG.split()[s : s + 8])) for s in range(0, 33, 4)])
    (best,) = written.answers([("Ada ?", LONG)])
    assert best.answerable == max(1 - element.watched for element in each)
    with pytest.raises(UserError, match="watch: not set"):
        WrittenAnswers(asks).answers([("Ada ?", LONG)])


def test_answer_spans_equal_hand_computed_logits(reader: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(reader)
    model = BertForQuestionAnswering.from_pretrained(reader).eval()
    context = "Ada was born in Paris"
    encoded = tokenizer(["who ?"], [context], return_offsets_mapping=True)
    offsets = encoded["offset_mapping"][0]
    with torch.no_grad():
        out = model(**tokenizer("who ?", context, return_tensors="pt"))
    start, end = out.start_logits[0].tolist(), out.end_logits[0].tolist()
    inside = [i for i, part in enumerate(encoded.sequence_ids(0)) if part == 1]
    score, i, j = max((start[i] + end[j], i, j) for i in inside for j in inside if i <= j)
    questions = [("who ?", context), ("who " * 99, context)]
    results, nothing = SpanAnswers(str(reader), max_length=128).answers(questions)
    assert results.text == context[offsets[i][0] : offsets[j][1]]
    expected = 1 / (1 + math.exp(start[0] + end[0] - score))
    assert results.answerable == pytest.approx(expected, abs=1e-4)
    assert nothing is None
    # A span does not end before it begins, and lies in the context.
    start, end = np.zeros(len(offsets)), np.zeros(len(offsets))
    start[[0, inside[-1]]], end[[1, inside[0]]] = 9, 9
    first, last, _ = _best_span(
        start, end, [o if i in inside else None for i, o in enumerate(offsets)]
    )
    assert context[int(first) : int(last)] in {"s", "A"}  # 9 + 0 either way, not 9 + 9


def test_lerc_and_factcc_equal_their_models(
    save_bert: Callable, letter_tokenizer: Callable
) -> None:
    tokenizer = letter_tokenizer(pairs=True)
    sizes = {"max_position_embeddings": 96, "initializer_range": 0.5}
    element = save_bert(BertForSequenceClassification, tokenizer, num_labels=1, **sizes)
    rows = [("who?", "Ada", "he", CLAIM), ("who?", "Ada" * 50, "he", CLAIM)]
    scores = Lerc(str(element), max_length=64).compare(rows)
    text = "who? <q> Ada <r> he <c> " + CLAIM
    inputs = AutoTokenizer.from_pretrained(element)(text, return_tensors="pt")
    logit = BertForSequenceClassification.from_pretrained(element)(**inputs).logits.item()
    assert scores[0] == pytest.approx(logit, abs=1e-5)
    assert math.isnan(scores[1])
    # FactCC reads two segments where MiniCheck's models read one text.
    named = {"id2label": {0: "CORRECT", 1: "INCORRECT"}}
    two = save_bert(BertForSequenceClassification, tokenizer, **named, **sizes)
    labels = {"supported": "CORRECT", "not_supported": "INCORRECT"}
    results = Checker(str(two), **labels, segments=True).relations([(CLAIM, LSS)])[0, 0]
    inputs = AutoTokenizer.from_pretrained(two)(CLAIM, LSS, return_tensors="pt")
    logits = BertForSequenceClassification.from_pretrained(two)(**inputs).logits
    assert results == pytest.approx(logits.softmax(-1)[0, 0].item(), abs=1e-5)
    assert Checker(str(two), **labels).relations([(CLAIM, LSS)])[0, 0] != pytest.approx(results)


def test_evaluate_module_computes_lss_scores() -> None:
    metric = evaluate.load(str(ROOT / "eval/metrics/lss_score.py"))
    results = metric.compute(
        predictions=[LSS, "", CLAIM], references=[CLAIM] * 3, ratings=[3, 1, 5]
    )
    bleu = sentence_bleu_of(CLAIM, LSS)
    assert results["bleu"] == pytest.approx((bleu + 0 + 1) / 3)
    assert results["kept_words"] == pytest.approx((5 / 7 + 0 + 1) / 3)
    assert results["spearman"] == pytest.approx(1)
    assert results["n"] == 3
    plain = metric.compute(predictions=[LSS, LSS], references=[CLAIM, "..."])
    assert plain["pearson"] is None
    assert (plain["n"], plain["failed"]) == (2, 1)
    assert plain["bleu"] == pytest.approx(bleu)
    nothing = metric.compute(predictions=["a"], references=["..."], ratings=[None])
    assert (nothing["bleu"], nothing["spearman"], nothing["failed"]) == (None, None, 1)
    with pytest.raises(ValueError, match="ratings: expected one per claim"):
        metric.compute(predictions=[LSS, "a"], references=[CLAIM, ""], ratings=[3])
