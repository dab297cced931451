"""Inter-annotator agreement on the people of a text, their pages, and the claims.

All pairs of annotators of a text are compared; confidence intervals are bootstrapped over texts.

- grouping: Rand index and adjusted Rand index (Hubert and Arabie 1985) of the claims that both
  assign to a person, means over comparisons; share of comparisons with the same number of people;
- link: share of claims that both link to the same page, or both to none;
- label: share of claims with equal labels out of supported, not supported (including claims that
  only another person's page supports) and irrelevant: 2402.05629, appendix B;
- verdict: share of equal verdicts of the claims that both find relevant, with "of another person"
  as a verdict; supported: the same, counting it as not supported (the D-FActScore question).

Claims that an annotator skipped are excluded from the last three. These and links also get Scott's
pi (Cohen's kappa with pooled labels) and Krippendorff's alpha for nominal data (2011), which allows
any number of annotators per text.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from components.statistics import bootstrap, rand_indices
from eval.metrics.judged_texts import JudgedClaim

Answers = Sequence[Sequence[JudgedClaim]]  # (annotators, claims) of one text


def agreement(texts: Sequence[Answers], seed: int = 0) -> dict:
    """Compute agreement over the texts with two or more annotators.

    Returns:
        ``texts``, ``comparisons``, ``claims``; measure to ``value`` and ``ci95``, or ``None``.
    """
    several = [answers for answers in texts if len(answers) > 1]
    table = {
        "texts": len(several),
        "comparisons": sum(math.comb(len(answers), 2) for answers in several),
        "claims": sum(len(answers[0]) for answers in several),
    }
    if not several:
        return table
    grouping = np.asarray([_grouping(answers) for answers in several])  # (texts, 4): sums, count
    labels = {
        "link": [_units(answers, _link) for answers in several],
        "label": [_units(answers, _label) for answers in several],
        "verdict": [_units(answers, _verdict) for answers in several],
        "supported": [_units(answers, _supported) for answers in several],
    }
    counts = {name: _Coincidences(units) for name, units in labels.items()}

    def statistics(rows: np.ndarray) -> dict[str, float]:
        rand, adjusted, alike, compared = grouping[rows].sum(axis=0)
        values = {
            "grouping/rand": rand / compared,
            "grouping/adjusted_rand": adjusted / compared,
            "grouping/as_many_people": alike / compared,
        }
        for name, coincidences in counts.items():
            for measure, number in coincidences.measures(rows).items():
                values[f"{name}/{measure}"] = number
        return values

    return table | bootstrap(statistics, range(len(several)), seed=seed)


def _grouping(answers: Answers) -> tuple[float, float, float, int]:
    rand = adjusted = 0.0
    alike = 0
    pairs = list(combinations(answers, 2))
    for first, second in pairs:
        both = [(a.group, b.group) for a, b in zip(first, second, strict=True)]
        assigned = [labels for labels in both if None not in labels]
        plain, corrected = rand_indices(assigned)
        rand, adjusted = rand + plain, adjusted + corrected
        alike += len({c.group for c in first} - {None}) == len({c.group for c in second} - {None})
    return rand, adjusted, float(alike), len(pairs)


def _link(claim: JudgedClaim) -> str | None:
    return None if claim.group is None else claim.entity or "(no page)"


def _label(claim: JudgedClaim) -> str | None:
    if claim.failed:
        return None
    return _supported(claim) or "irrelevant"


def _verdict(claim: JudgedClaim) -> str | None:
    if claim.grouped is None:
        return None
    return "supported" if claim.grouped else "another" if claim.independent else "none"


def _supported(claim: JudgedClaim) -> str | None:
    return None if claim.grouped is None else str(claim.grouped)


def _units(answers: Answers, label: Callable[[JudgedClaim], str | None]) -> list[list[str]]:
    labels = [[label(claim) for claim in units] for units in zip(*answers, strict=True)]
    given_labels = [[name for name in units if name is not None] for units in labels]
    return [units for units in given_labels if len(units) > 1]


class _Coincidences:
    """Label coincidences per text (texts, claims, labels of annotators), for bootstrapping."""

    def __init__(self, texts: Sequence[Sequence[Sequence[str]]]):
        names = sorted({label for units in texts for unit in units for label in unit})
        column = {name: k for k, name in enumerate(names)}
        self.pairs = np.zeros((len(texts), 2))  # equal ordered pairs, all ordered pairs
        self.alike = np.zeros(len(texts))  # weighted coincidences on the diagonal
        self.weight = np.zeros((len(texts), len(names)))  # weighted by unit, Krippendorff's n_c
        self.ordered = np.zeros((len(texts), len(names)))  # labels of ordered pairs, for pi
        for row, units in enumerate(texts):
            for unit in units:
                size, counts = len(unit), Counter(unit)
                same = sum(n * (n - 1) for n in counts.values())
                self.pairs[row] += same, size * (size - 1)
                self.alike[row] += same / (size - 1)
                for label, n in counts.items():
                    self.weight[row, column[label]] += n
                    self.ordered[row, column[label]] += n * (size - 1)

    def measures(self, rows: np.ndarray) -> dict[str, float]:
        """Share of equal labels, Scott's pi, Krippendorff's alpha; NaN if undefined."""
        same, compared = self.pairs[rows].sum(axis=0)
        if not compared:
            return {"identical": math.nan, "pi": math.nan, "alpha": math.nan}
        shares = self.ordered[rows].sum(axis=0) / compared
        chance = float(shares @ shares)
        counts = self.weight[rows].sum(axis=0)
        total = counts.sum()
        expected = (total**2 - float(counts @ counts)) / (total - 1)
        return {
            "identical": same / compared,
            "pi": (same / compared - chance) / (1 - chance) if chance < 1 else math.nan,
            "alpha": 1 - (total - self.alike[rows].sum()) / expected if expected else math.nan,
        }


def as_markdown(table: dict) -> str:
    """Format the agreement table for the card."""
    rows = ["| measure | value | 95 % interval |", "|---|---|---|"]
    for name, measure in table.items():
        if isinstance(measure, dict):
            ends = "–" if measure["ci95"] is None else "{:.3f} to {:.3f}".format(*measure["ci95"])
            value = "–" if measure["value"] is None else f"{measure['value']:.3f}"
            rows.append(f"| {name.replace('/', ': ').replace('_', ' ')} | {value} | {ends} |")
    return "\n".join(rows)
