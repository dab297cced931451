"""Time and memory of Core's selection from many subclaims of one document.

    python benchmarks/core_selection.py
    python benchmarks/core_selection.py --sizes "250 1000" --pairs_per_claim 2

Each size is run on three exclusion graphs: ``paraphrases`` (groups of ten that entail each other,
sometimes in one direction only), ``random`` (a number of random entailing pairs per claim) and
``one`` (all claims entail each other). Relations are looked up in a set, so that only Core is
measured.

The baseline is the program of Eq. 1 as in the paper's code: one constraint per excluding pair in a
dense matrix of shape (pairs, N), solved with HiGHS (``scipy.optimize.milp``) without components,
dominance reduction or tie breaking. Peak memory is that of Python, numpy and scipy
(``tracemalloc``); time is processor time of a separate run.
"""

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
# With more claims, the column "with queries" (all N² pairs) is skipped.
MAX_CLAIMS_WITH_QUERIES = 1000
# Larger dense matrices are skipped.
MAX_DENSE_BYTES = 2 * 2**30


class LookupModel:
    """An entailment model that looks up pairs, and a UNLI model with a random likelihood per claim.

    Args:
        entailing: entailing pairs of claim numbers.
        rng: random generator of the likelihoods.
        number: number of claims.
    """

    def __init__(self, entailing: set[tuple[int, int]], rng: random.Random, number: int):
        self.entailing = entailing
        self.p = [rng.uniform(0.001, 0.4) for _ in range(number)]

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Entailment for the source sentence and for ``entailing`` pairs, else neutral."""
        answers = np.tile((0.1, 0.7, 0.2), (len(pairs), 1))
        for row, (premise, hypothesis) in enumerate(pairs):
            numbers = _number(premise), _number(hypothesis)
            if premise == "Source." or numbers in self.entailing:
                answers[row] = (0.9, 0.08, 0.02)
        return answers

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """The likelihood of each claim."""
        return np.array([self.p[_number(hypothesis)] for _, hypothesis in pairs])


def _number(text: str) -> int | None:
    head, _, number = text.rstrip(".").rpartition(" ")
    return int(number) if head.lower() == "claim" else None


def graph(shape: str, number: int, per_claim: int, rng: random.Random) -> set[tuple[int, int]]:
    """Entailing pairs of claim numbers."""
    if shape == "random":
        drawn = range(per_claim * number)
        pairs = {(rng.randrange(number), rng.randrange(number)) for _ in drawn}
        return {(i, j) for i, j in pairs if i != j}
    # Each pair entails in at least one direction; a share of GAPS in one only.
    size = GROUP if shape == "paraphrases" else number
    pairs = {
        (i, j)
        for start in range(0, number, size)
        for i in range(start, min(start + size, number))
        for j in range(i + 1, min(start + size, number))
    }
    return pairs | {(j, i) for i, j in sorted(pairs) if rng.random() >= GAPS}


def baseline(weights: np.ndarray, pairs: set[tuple[int, int]]) -> float:
    """Solve Eq. 1 with a dense constraint matrix; return the total weight of the selection."""
    edges = sorted({(min(pair), max(pair)) for pair in pairs})
    matrix = np.zeros((len(edges), len(weights)))
    for row, (i, j) in enumerate(edges):
        matrix[row, i] = matrix[row, j] = 1
    solution = milp(
        -weights,
        integrality=np.ones(len(weights)),
        bounds=(0, 1),
        constraints=LinearConstraint(matrix, ub=np.ones(len(edges))),
    )
    return -solution.fun


def measure_run(run: Callable[[], object]) -> tuple[object, float, float]:
    """The result of a run, its seconds, and the peak memory of a second run in MiB."""
    start = time.process_time()
    result = run()
    seconds = time.process_time() - start
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return result, seconds, peak


def main() -> None:
    """Print one line per size and shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="250 500 1000 2000", help="numbers of claims")
    parser.add_argument("--shapes", default="paraphrases random one", help="shapes of the graph")
    parser.add_argument("--pairs_per_claim", type=int, default=1, help="for the random graph")
    parser.add_argument("--json", type=Path, default=None, help="JSON file for the results")
    options = parser.parse_args()
    rows = []
    print(f"{'claims':>7} {'shape':12} {'pairs':>8} {'selection':>16} {'with queries':>16} dense")
    for size in map(int, options.sizes.split()):
        for shape in options.shapes.split():
            line, row = _measure_size(size, shape, options.pairs_per_claim)
            print(line, flush=True)
            rows.append(row)
    if options.json:
        write_json(options.json, rows)


def _measure_size(number: int, shape: str, per_claim: int) -> tuple[str, dict[str, object]]:
    """The terminal line and the results of one size and shape."""
    rng = random.Random(0)
    pairs = graph(shape, number, per_claim, rng)
    model = LookupModel(pairs, rng, number)
    core = Core(model, model, ["{topic} exists."], p=0.5, epsilon=0.1)
    document = Document(id="d", topic="It", text="Source.")
    claims = [Claim(id=f"c{i}", text=f"Claim {i}.", source="Source.") for i in range(number)]

    # Core's steps, so that the selection is measured with given pairs.
    view = View.of(document, claims, ["It exists."])
    core._judge_coherence([view])
    core._weigh([view], core._judge_cap([view]))
    node_of = {_number(text): node for node, text in enumerate(view.texts)}
    i, j = np.array([(node_of[i], node_of[j]) for i, j in pairs]).T
    edges = (np.append(i, j), np.append(j, i))
    view.exclusion = csr_array((np.ones(2 * len(i), bool), edges), shape=view.exclusion.shape)
    selections, seconds, peak = measure_run(lambda: core._select(view))
    weight = sum(s.weight for s in selections if s.selected)
    line = f"{number:7} {shape:12} {len(pairs):8} {seconds:7.2f} s {peak:5.0f} MB"
    row = {"claims": number, "shape": shape, "pairs": len(pairs), "seconds": seconds, "mb": peak}
    if number <= MAX_CLAIMS_WITH_QUERIES:
        _, query_seconds, query_peak = measure_run(lambda: core([document], [claims]))
        line += f" {query_seconds:7.2f} s {query_peak:5.0f} MB"
    else:
        line += f"{'skipped':>19}"
    if len(pairs) * number * 4 > MAX_DENSE_BYTES:
        return f"{line}  skipped ({len(pairs) * number * 4 / 2**30:.0f} GB)", row
    by_number = np.zeros(number)
    for index, selection in enumerate(selections):
        by_number[index] = selection.weight
    total, dense_seconds, dense_peak = measure_run(lambda: baseline(by_number, pairs))
    # The solver's tolerance is 1e-4.
    if abs(total - weight) > 1e-3 + 1e-4 * abs(total):
        raise RuntimeError(f"{number} {shape}: expected weight {total:.4f}, got {weight:.4f}")
    comparison = "same weight" if abs(total - weight) < 1e-3 else f"weight {total:.4f}"
    row |= {"dense_seconds": dense_seconds, "dense_mb": dense_peak}
    return f"{line} {dense_seconds:7.2f} s {dense_peak:5.0f} MB  {comparison}", row


if __name__ == "__main__":
    run_command(main)
