"""How well word overlap alone predicts the labels of pairs."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from components.overlap import covered_share, stem_weights
from components.statistics import auroc
from data_builders.dataset import Card, read_card
from records import RelationPair


def overlap_auroc(pairs: Sequence[RelationPair]) -> float | None:
    """AUROC of entailment by the IDF-weighted share of hypothesis stems in the premise.

    The IDF is over the premises. 0.5 is chance; ``None`` if there is only one class.
    """
    weight = stem_weights(pair.premise for pair in pairs)
    shares = [covered_share(pair.hypothesis, [pair.premise], weight) for pair in pairs]
    value = auroc(np.asarray(shares), np.asarray([p.label == "entailment" for p in pairs]))
    return None if np.isnan(value) else round(value, 4)


def pair_card(name: str, pairs: Sequence[RelationPair]) -> tuple[Card, dict[str, object]]:
    """The card of pairs, with rows by source and label, and details of the manifest."""
    counts = sorted(Counter((pair.source, pair.label) for pair in pairs).items())
    table = "\n".join(f"| `{source}` | {label} | {n} |" for (source, label), n in counts)
    even = overlap_auroc(pairs)
    return read_card(name, rows=table, even=even), {"overlap_auroc": even}


def shared_runs(text: str, page: str, length: int = 5) -> float:
    """Share of the runs of ``length`` words of a text that its page contains."""
    runs, page_runs = _runs(text, length), set(_runs(page, length))
    return sum(run in page_runs for run in runs) / len(runs) if runs else 0.0


def _runs(text: str, length: int) -> list[tuple[str, ...]]:
    words = text.lower().split()
    return [tuple(words[n : n + length]) for n in range(len(words) - length + 1)]
