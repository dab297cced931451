"""The bank attacker finds the texts that a metric takes for good ones."""

import pytest

from components.statistics import average
from eval.experiments.robustness.robustness_bank import (
    MOST_GOLD,
    BankAttack,
    BankStatement,
    BankTopic,
    bank_curve_values,
    search,
)
from records import UserError, write_jsonl
from tests.eval.test_robustness import robustness

TRUE = [f"fact {n}" for n in range(6)]
OPTIONS = BankAttack([], texts=800, rounds=10, sentences=5)


def topic(name="Ann"):
    rows = [{"text": f"{fact}.", "credits": [fact], "kind": "true"} for fact in TRUE]
    rows += [{"text": f"false {n}.", "credits": [], "kind": "false"} for n in range(6)]
    bank = [BankStatement(topic=name, k=5, **row) for row in rows]
    return BankTopic(id=name, bank=bank)


def share_of_true(documents):
    texts = [[s for s in document.text.split(". ") if s] for document in documents]
    return [average([float(s.startswith("fact")) for s in text]) for text in texts]


def test_a_metric_that_counts_repeats_is_beaten_by_repeated_facts():
    (best,) = search([topic()], share_of_true, OPTIONS, "bank", 0)
    assert share_of_true([best.document]) == [1.0]
    assert best.document.gold.f1 <= MOST_GOLD
    assert best.document.kind == "bank"
    queries, values, _ = zip(*best.curve, strict=True)
    assert queries == tuple(range(80, 801, 80))
    assert list(values) == sorted(values)
    rows = list(bank_curve_values(("m", "none"), "bank", [best.curve]))
    assert {row["metric"] for row in rows} == {"bank_score", "bank_gold"}


def test_gold_itself_is_not_beaten_and_equal_seeds_give_equal_texts():
    def gold_of(documents):
        return [document.gold.f1 for document in documents]

    topics = [topic(), topic("Bob")]
    first = search(topics, gold_of, OPTIONS, "bank", 0)
    assert all(0.4 <= row.document.gold.f1 <= MOST_GOLD for row in first)
    assert search(topics, gold_of, OPTIONS, "bank", 0) == first


def test_texts_without_a_score_are_no_result():
    (best,) = search([topic()], lambda texts: [float("nan")] * len(texts), OPTIONS, "bank", 0)
    assert best.document is None
    assert best.curve == []


def test_statements_of_drawn_topics_are_read(tmp_path):
    path = str(tmp_path / "bank.jsonl")
    write_jsonl(path, [row.model_dump() for name in ("Ann", "Bob") for row in topic(name).bank])
    (drawn,) = BankAttack([path]).topics(["Bob", "Cy"])
    assert (drawn.id, len(drawn.bank)) == ("Bob", 12)
    with pytest.raises(UserError, match=r"bank\.under: 'robust' is not a defence"):
        robustness([path], bank=BankAttack([path], under=["robust"]))
