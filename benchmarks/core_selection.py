"""Core's selection among many subclaims of one document: time and memory, pairs given.

    python benchmarks/core_selection.py
    python benchmarks/core_selection.py --sizes "250 1000" --pairs_per_claim 2

Each size is selected from in three shapes of exclusion graph: ``paraphrases`` (groups of ten that
entail each other, now and then in one direction only), ``random`` (so many entailing pairs a claim,
anywhere) and ``one`` (one statement in as many wordings). The relation of every pair is looked up
in a set, so that only Core's own work is measured.

The baseline is the program of Eq. 1 as the paper's code states it: one constraint for each
excluding pair in a dense matrix of shape (pairs, N), given whole to a solver (HiGHS by way of
``scipy.optimize.milp``), without components, without removing what is dominated and without a rule
for ties. Peak memory is what Python, numpy and scipy allocated in the run (``tracemalloc``); time
is the processor's, taken in another run without it.
"""

from __future__ import annotations

import argparse
import random
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_array

from cli.command import run_command
from components.encoding import Pair
from eval.select.core import Core
from eval.select.view import View
from records import Claim, Document, write_json

GROUP, GAPS = 10, 0.1
# Of more claims not all N² pairs are looked up for the column "with asking".
ASKED = 1000
# A dense matrix beyond this is not tried.
LARGEST = 2 * 2**30


class Known:
    """An entailment model that looks pairs up, and a UNLI model with a likelihood a claim.

    Args:
        entailing: pairs of claims' numbers.
        rng: of the likelihoods.
        number: how many claims there are.
    """

    def __init__(self, entailing: set[tuple[int, int]], rng: random.Random, number: int):
        self.entailing = entailing
        self.p = [rng.uniform(0.001, 0.4) for _ in range(number)]

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Entailment of a source sentence and of the pairs given; else neutral."""
        found = np.tile((0.1, 0.7, 0.2), (len(pairs), 1))
        for row, (premise, hypothesis) in enumerate(pairs):
            numbers = _number(premise), _number(hypothesis)
            if premise == "Source." or numbers in self.entailing:
                found[row] = (0.9, 0.08, 0.02)
        return found

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Each claim's own likelihood."""
        return np.array([self.p[_number(hypothesis)] for _, hypothesis in pairs])


def _number(text: str) -> int | None:
    head, _, number = text.rstrip(".").rpartition(" ")
    return int(number) if head.lower() == "claim" else None


def graph(shape: str, number: int, per_claim: int, rng: random.Random) -> set[tuple[int, int]]:
    """Entailing pairs of claims' numbers."""
    if shape == "random":
        drawn = range(per_claim * number)
        pairs = {(rng.randrange(number), rng.randrange(number)) for _ in drawn}
        return {(i, j) for i, j in pairs if i != j}
    # Of each pair one direction at least; in GAPS of them the model misses the other.
    size = GROUP if shape == "paraphrases" else number
    pairs = {
        (i, j)
        for start in range(0, number, size)
        for i in range(start, min(start + size, number))
        for j in range(i + 1, min(start + size, number))
    }
    return pairs | {(j, i) for i, j in sorted(pairs) if rng.random() >= GAPS}


def baseline(weights: np.ndarray, pairs: set[tuple[int, int]]) -> float:
    """Eq. 1 with a dense constraint matrix; the total weight of what is selected."""
    edges = sorted({(min(pair), max(pair)) for pair in pairs})
    matrix = np.zeros((len(edges), len(weights)))
    for row, (i, j) in enumerate(edges):
        matrix[row, i] = matrix[row, j] = 1
    found = milp(
        -weights,
        integrality=np.ones(len(weights)),
        bounds=(0, 1),
        constraints=LinearConstraint(matrix, ub=np.ones(len(edges))),
    )
    return -found.fun


def measured(run: Callable[[], object]) -> tuple[object, float, float]:
    """What a run gives, its seconds, and its peak memory in MiB in a second run."""
    start = time.process_time()
    found = run()
    seconds = time.process_time() - start
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return found, seconds, peak


def main() -> None:
    """Print a line for each size and shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="250 500 1000 2000", help="claims, separated by blanks")
    parser.add_argument("--shapes", default="paraphrases random one", help="of the graph")
    parser.add_argument("--pairs_per_claim", type=int, default=1, help="of the random graph")
    parser.add_argument("--json", type=Path, default=None, help="also write the figures there")
    options = parser.parse_args()
    rows = []
    print(
        f"{'claims':>7} {'shape':12} {'pairs':>8} {'selection':>16} {'with asking':>16} dense rows"
    )
    for size in map(int, options.sizes.split()):
        for shape in options.shapes.split():
            line, row = _line(size, shape, options.pairs_per_claim)
            print(line, flush=True)
            rows.append(row)
    if options.json:
        write_json(options.json, rows)


def _line(number: int, shape: str, per_claim: int) -> tuple[str, dict[str, object]]:
    """A size and shape for the terminal, and its figures."""
    rng = random.Random(0)
    pairs = graph(shape, number, per_claim, rng)
    model = Known(pairs, rng, number)
    core = Core(model, model, ["{topic} exists."], p=0.5, epsilon=0.1)
    document = Document(id="d", topic="It", text="Source.")
    claims = [Claim(id=f"c{i}", text=f"Claim {i}.", source="Source.") for i in range(number)]

    # Core's own steps, so that the selection can be measured with the pairs given.
    view = View.of(document, claims, ["It exists."])
    core._judge_coherence([view])
    core._weigh([view], core._judge_cap([view]))
    place = {_number(text): node for node, text in enumerate(view.texts)}
    i, j = np.array([(place[i], place[j]) for i, j in pairs]).T
    both = (np.append(i, j), np.append(j, i))
    view.exclusion = csr_array((np.ones(2 * len(i), bool), both), shape=view.exclusion.shape)
    selections, seconds, peak = measured(lambda: core._select(view))
    weight = sum(s.weight for s in selections if s.selected)
    line = f"{number:7} {shape:12} {len(pairs):8} {seconds:7.2f} s {peak:5.0f} MB"
    row = {"claims": number, "shape": shape, "pairs": len(pairs), "seconds": seconds, "mb": peak}
    if number <= ASKED:
        _, asking, asking_peak = measured(lambda: core([document], [claims]))
        line += f" {asking:7.2f} s {asking_peak:5.0f} MB"
    else:
        line += f"{'not asked':>19}"
    if len(pairs) * number * 4 > LARGEST:
        return f"{line}  not tried ({len(pairs) * number * 4 / 2**30:.0f} GB)", row
    by_number = np.zeros(number)
    for index, selection in enumerate(selections):
        by_number[index] = selection.weight
    total, dense_seconds, dense_peak = measured(lambda: baseline(by_number, pairs))
    # The solver stops within 1e-4 of its optimum.
    if abs(total - weight) > 1e-3 + 1e-4 * abs(total):
        raise RuntimeError(
            f"{number} claims, {shape}: the selection weighs {weight:.4f}, Eq. 1's {total:.4f}"
        )
    same = "same weight" if abs(total - weight) < 1e-3 else f"weight {total:.4f} for {weight:.4f}"
    row |= {"dense_seconds": dense_seconds, "dense_mb": dense_peak}
    return f"{line} {dense_seconds:7.2f} s {dense_peak:5.0f} MB  {same}", row


if __name__ == "__main__":
    run_command(main)
