"""How far annotators agree on the people of a text, on their pages and on the claims.

Every two annotators of the same text are compared, and intervals are bootstrapped over texts:

- grouping: Rand index and adjusted Rand index (Hubert and Arabie 1985) of the claims that both give
  to a person, means over the comparisons; share of comparisons with equally many people;
- link: share of the claims that both link to the same page, or both to none;
- label: share of the claims with equal labels of the paper's three, supported, not supported (also
  where another person's page supports it) and irrelevant: 2402.05629, appendix B;
- verdict: of the claims that both find relevant, the share with equal verdicts, "of another person"
  apart; supported: the same with it counted as not supported, which is what D-FActScore asks.

A claim that an annotator left out enters none of the three. Of them and of links also Scott's pi
(Cohen's kappa with the labels pooled, as nobody is first) and Krippendorff's alpha for nominal data
(2011), which takes texts with any number of annotators.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from components.statistics import bootstrap, rand_indices
from eval.metrics.judged_texts import JudgedClaim

Answers = Sequence[Sequence[JudgedClaim]]  # of one text: annotators, claims


def agreement(texts: Sequence[Answers], seed: int = 0) -> dict:
    """The table of agreement of the texts with two annotators or more.

    Returns:
        ``texts`` and ``comparisons``; measure to ``value`` and ``ci95``, ``None`` where there is
        none.
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
        found = {
            "grouping/rand": rand / compared,
            "grouping/adjusted_rand": adjusted / compared,
            "grouping/as_many_people": alike / compared,
        }
        for name, own in counts.items():
            for measure, value in own.measures(rows).items():
                found[f"{name}/{measure}"] = value
        return found

    return table | bootstrap(statistics, range(len(several)), seed=seed)


def _grouping(answers: Answers) -> tuple[float, float, float, int]:
    rand = adjusted = 0.0
    alike = 0
    pairs = list(combinations(answers, 2))
    for first, second in pairs:
        both = [(a.group, b.group) for a, b in zip(first, second, strict=True)]
        known = [two for two in both if None not in two]
        plain, corrected = rand_indices(known)
        rand, adjusted = rand + plain, adjusted + corrected
        alike += _people(first) == _people(second)
    return rand, adjusted, float(alike), len(pairs)


def _people(claims: Sequence[JudgedClaim]) -> int:
    return len({claim.group for claim in claims} - {None})


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
    labels = [[label(claim) for claim in own] for own in zip(*answers, strict=True)]
    known = [[one for one in own if one is not None] for own in labels]
    return [own for own in known if len(own) > 1]


class _Coincidences:
    """The coincidences of labels, text by text, so that texts can be drawn again and again.

    Args:
        texts: of each text, of each claim the labels that its annotators gave.
    """

    def __init__(self, texts: Sequence[Sequence[Sequence[str]]]):
        names = sorted({label for units in texts for unit in units for label in unit})
        place = {name: k for k, name in enumerate(names)}
        self.pairs = np.zeros((len(texts), 2))  # ordered pairs alike, all
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
                    self.weight[row, place[label]] += n
                    self.ordered[row, place[label]] += n * (size - 1)

    def measures(self, rows: np.ndarray) -> dict[str, float]:
        """Share of equal labels, Scott's pi, Krippendorff's alpha; NaN where none varies."""
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
    """The table for the card."""
    lines = ["| measure | value | 95 % interval |", "|---|---|---|"]
    for name, own in table.items():
        if isinstance(own, dict):
            ends = "–" if own["ci95"] is None else "{:.3f} to {:.3f}".format(*own["ci95"])
            value = "–" if own["value"] is None else f"{own['value']:.3f}"
            lines.append(f"| {name.replace('/', ': ').replace('_', ' ')} | {value} | {ends} |")
    return "\n".join(lines)
