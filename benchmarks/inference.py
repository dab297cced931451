"""Time and error of FactReasoner's inference on networks of the size of documents.

    OMP_NUM_THREADS=1 python benchmarks/inference.py
    OMP_NUM_THREADS=1 python benchmarks/inference.py --sizes "31x60x0.3" --seeds 10 --sharp 0.9

A size is atoms x contexts x density; the density applies to atom–context and context–context pairs.
The prior is 0.5 for atoms and 0.99 for contexts. The probability p of a pair's relation is uniform
between ``--sharp`` and 1. There are two styles of table, ``plain`` (1 - p if the relation is
violated, else p) and ``prior`` (the second's prior if the first is false), and four mixtures of
relations: equal shares, mostly entailment, mostly contradiction, and relations that follow a
planted truth, with one sixth against it.

The reference is exact if the induced width is at most ``--reference_width``. Otherwise it is the
mean of two parallel-tempering runs with long Gibbs chains; the column ``ref`` has their difference,
and networks with a mean difference above 0.01 are skipped and counted. Methods: ``solve``, as in
the pipeline; ``wmb``, the paper's weighted mini-buckets with i-bound 6. Time is the minimum
processor time of three runs with one thread.

Columns: methods chosen by ``solve``; largest induced width (if annealed, the width at which exact
inference stopped); median and maximum milliseconds; mean |ΔP| over atoms with 95 % bootstrap
interval over networks, and its maximum; share of equal labels (supported, contradicted, undecided)
with interval.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from cli.command import run_command
from components.statistics import bootstrap
from eval.verify.factreasoner.inference import Posterior, solve
from eval.verify.factreasoner.network import Factor, Network, interaction, to_logs
from records import write_json

SIZES = "31x60x0.03 31x60x0.1 31x60x0.3 60x150x0.1"
Size = tuple[int, int, float]  # atoms, contexts, density
MIXTURES = {"even": (1, 1, 1), "entailment": (3, 1, 1), "contradiction": (1, 3, 1), "planted": None}


def network_of(size: Size, style: str, mixture: str, sharp: float, seed: int) -> Network:
    """A random network: atoms first, then contexts."""
    atoms, contexts, density = size
    rng = np.random.default_rng([seed, atoms, contexts, round(1000 * density)])
    truth = rng.random(atoms + contexts) < 0.6
    factors = [Factor((v,), np.array([0.5, 0.5])) for v in range(atoms)]
    factors += [Factor((v,), np.array([0.01, 0.99])) for v in range(atoms, atoms + contexts)]
    for v in range(atoms, atoms + contexts):
        for u in range(v):
            if rng.random() >= density:
                continue
            # From context to atom; between contexts in a random direction.
            first, second = (u, v) if u >= atoms and rng.random() < 0.5 else (v, u)
            shares = MIXTURES[mixture]
            if shares is None:
                agree = (truth[u] == truth[v]) == (rng.random() < 5 / 6)
                shares = (3, 0, 2) if agree else (0, 1, 0)
            kind = int(rng.choice(3, p=np.array(shares) / sum(shares)))
            prior = 0.5 if u < atoms else 0.99
            table = relation(kind, rng.uniform(sharp, 1), prior, style)
            factors.append(Factor((first, second), table))
    return Network(atoms + contexts, factors)


def relation(kind: int, p: float, prior: float, style: str) -> np.ndarray:
    """The table of entailment (0), contradiction (1) or equivalence (2), shape (2, 2)."""
    if kind == 2:
        return np.array([[p, 1 - p], [1 - p, p]])
    above = (p, p) if style == "plain" else (1 - prior, prior)
    return np.array([above, (1 - p, p) if kind == 0 else (p, 1 - p)])


def temper(network: Network, seed: int, sweeps: int, copies: int = 16) -> np.ndarray:
    """P(true), shape (variables,), by parallel tempering with ``copies`` independent ladders.

    An independent implementation in double precision, to check ``solve``.
    """
    log_factors = to_logs(network)
    n = network.variables
    weights, field = np.zeros((n, n)), log_factors.single[:, 1] - log_factors.single[:, 0]
    for (u, v), table in zip(log_factors.pairs, log_factors.joint, strict=True):
        weights[u, v] = weights[v, u] = interaction(table[None])[0]
        field[u] += table[1, 0] - table[0, 0]
        field[v] += table[0, 1] - table[0, 0]
    sets: list[list[int]] = []
    for v in range(n):
        free = [members for members in sets if not weights[v, members].any()]
        if free:
            free[0].append(v)
        else:
            sets.append([v])
    betas = np.linspace(0.08, 1, 20 if n < 150 else 32)
    levels = len(betas)
    beta = np.repeat(betas, copies)
    rng = np.random.default_rng(seed)
    state = (rng.random((n, levels * copies)) < 0.5).astype(float)
    total = np.zeros(n)
    for step in range(sweeps + sweeps // 5):
        noise = rng.logistic(size=state.shape) / beta - field[:, None]
        for members in sets:
            odds = weights[members] @ state
            state[members] = odds > noise[members]
            if step >= sweeps // 5:
                target = odds[:, -copies:] + field[members, None]
                total[members] += (1 / (1 + np.exp(-np.clip(target, -500, 500)))).mean(axis=1)
        energy = (state * (weights @ state / 2 + field[:, None])).sum(axis=0)
        energy = energy.reshape(levels, copies)
        lower = np.arange(step % 2, levels - 1, 2)
        gain = (betas[lower + 1] - betas[lower])[:, None] * (energy[lower] - energy[lower + 1])
        rows, columns = np.nonzero(np.log(rng.random(gain.shape)) < gain)
        first, second = lower[rows] * copies + columns, (lower[rows] + 1) * copies + columns
        state[:, first], state[:, second] = state[:, second], state[:, first]
    return total / sweeps


def labels(p: np.ndarray) -> np.ndarray:
    """1 supported, -1 contradicted, 0 undecided."""
    return np.where(np.abs(p - 0.5) <= 1e-9, 0, np.sign(p - 0.5))


def timed(run: Callable[[], Posterior], times: int = 3) -> tuple[Posterior, float]:
    """The result of a call and its minimum processor time over several calls, in milliseconds."""
    milliseconds = []
    for _ in range(times):
        start = time.process_time()
        result = run()
        milliseconds.append(1000 * (time.process_time() - start))
    return result, min(milliseconds)


def rows_of(size: Size, options: argparse.Namespace) -> Iterator[dict]:
    """One row per network and method: errors over the atoms."""
    for style in ("plain", "prior"):
        for mixture in MIXTURES:
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                network = network_of(size, style, mixture, options.sharp, seed)
                reference, difference = reference_of(network, options)
                runs = {
                    "solve": lambda n=network: solve([n])[0],
                    "wmb": lambda n=network: solve([n], max_width=1, approximate="wmb")[0],
                }
                for name, run in runs.items():
                    posterior, milliseconds = timed(run)
                    p, q = posterior.p[: size[0]], reference[: size[0]]
                    yield {
                        "name": name,
                        "method": posterior.method,
                        "width": posterior.width,
                        "ms": milliseconds,
                        "error": float(np.abs(p - q).mean()),
                        "worst": float(np.abs(p - q).max()),
                        "labels": float((labels(p) == labels(q)).mean()),
                        "ref": difference,
                    }


def reference_of(network: Network, options: argparse.Namespace) -> tuple[np.ndarray, float]:
    """P(true) of the reference, and the difference of its two runs (0 if exact)."""
    exact = solve([network], max_width=options.reference_width)[0]
    if exact.method == "exact":
        return exact.p, 0.0
    first, second = (temper(network, seed, options.sweeps) for seed in (101, 102))
    return (first + second) / 2, float(np.abs(first - second).mean())


def main() -> None:
    """Print one line per size and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=SIZES, help="sizes (atoms x contexts x density)")
    parser.add_argument("--seeds", type=int, default=2, help="networks per style and mixture")
    parser.add_argument("--first_seed", type=int, default=100, help="first seed")
    parser.add_argument("--sharp", type=float, default=0.5, help="minimum relation probability")
    parser.add_argument("--sweeps", type=int, default=3000, help="Gibbs sweeps of the reference")
    parser.add_argument("--reference_width", type=int, default=20, help="maximum width if exact")
    parser.add_argument("--json", type=Path, default=None, help="JSON file for the results")
    options = parser.parse_args()
    results = []
    for text in options.sizes.split():
        atoms, contexts, density = text.split("x")
        rows = list(rows_of((int(atoms), int(contexts), float(density)), options))
        for name in dict.fromkeys(row["name"] for row in rows):
            method_rows = [row for row in rows if row["name"] == name]
            kept = [row for row in method_rows if row["ref"] <= 0.01]
            if not kept:
                print(f"{text:12} {name:6} n 0: reference not converged; raise --sweeps")
                continue
            values = {k: np.array([row[k] for row in kept]) for k in ("error", "labels", "ms")}
            means = bootstrap(
                lambda i, v=values: {k: float(v[k][i].mean()) for k in ("error", "labels")},
                range(len(kept)),
            )
            results.append(
                {
                    "size": text,
                    "method": name,
                    "networks": len(kept),
                    "ms": float(np.median(values["ms"])),
                    "error": means["error"]["value"],
                    "equal_labels": means["labels"]["value"],
                }
            )
            spans = {
                name: "{:.4f} [{:.4f}, {:.4f}]".format(mean["value"], *mean["ci95"])
                for name, mean in means.items()
            }
            print(
                f"{text:12} {name:6} {'+'.join(sorted({r['method'] for r in method_rows})):15} "
                f"n {len(kept)} (skipped {len(method_rows) - len(kept)}) "
                f"width {max(r['width'] for r in method_rows):3} "
                f"ms {np.median(values['ms']):.0f} max {values['ms'].max():.0f} "
                f"|dP| {spans['error']} max {max(r['worst'] for r in kept):.3f} "
                f"labels {spans['labels']} ref {max(r['ref'] for r in kept):.4f}",
                flush=True,
            )
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    run_command(main)
