"""Best of N: an attacker writes many texts and keeps the one that the column scores highest.

The texts of an attack and topic that a builder drew (field ``draw``) are scored first, which gives
a verdict on each of their statements. Of ``DRAWS`` texts of these statements, the one with most
supported statements under a column is scored as a whole, so that rules on whole texts apply to it.
Texts that are more than their statements, such as those with a frame or a table, are not drawn
anew: the attacker takes the best of the texts of the file.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean

from eval.experiments.robustness.robustness_bank import (
    BankAttack,
    BankStatement,
    BankTopic,
    search,
)
from eval.experiments.robustness.robustness_grid import NONE, TextScores
from records import Document

DRAWS = 64  # texts per attack and topic
_OPTIONS = {"statements": [], "texts": DRAWS, "rounds": 1}


def redraw(rows: Sequence[TextScores], seed: int) -> list[Document]:
    """The texts that rank first under a column, of each attack and topic with several draws."""
    groups: dict[tuple[str, str], list[TextScores]] = defaultdict(list)
    for row in rows:
        if "draw" in (row.document.model_extra or {}) and _is_its_statements(row.document):
            groups[row.document.kind, row.document.topic].append(row)
    best: dict[str, Document] = {}
    for (kind, topic), group in groups.items():
        if len(group) == 1:
            continue
        first = group[0].document
        claims = {claim.text: claim for row in group for claim in row.document.claims}
        more = {"topic": topic, "kind": kind, "k": first.gold.k}
        bank = [BankStatement(text=t, credits=claim.credits, **more) for t, claim in claims.items()]
        options = BankAttack(sentences=len(first.claims), **_OPTIONS)
        for shares, most in _supported_shares(group):

            def score(texts: Sequence[Document], shares=shares, most=most) -> list[float]:
                return [sum(min(most, t.text.count(s)) * shares[s] for s in shares) for t in texts]

            (result,) = search([BankTopic(id=topic, bank=bank)], score, options, kind, seed)
            if (text := result.document) is not None:
                stated = [c for s, c in claims.items() for _ in range(text.text.count(s))]
                update = {
                    "family": (first.model_extra or {}).get("family"),
                    "claims": [c.model_copy(update={"id": str(n)}) for n, c in enumerate(stated)],
                    "draw": DRAWS - 1,
                }
                best[text.id] = text.model_copy(update=update)
    return list(best.values())


def _is_its_statements(document: Document) -> bool:
    claims = document.claims or []
    has_credits = all(hasattr(claim, "credits") for claim in claims)
    return has_credits and document.text == " ".join(claim.text for claim in claims)


def _supported_shares(
    group: Sequence[TextScores],
) -> Iterator[tuple[Mapping[str, float], float]]:
    """For each metric and column: statement to the mean share of its claims that are supported.

    Also yields how often a statement counts: once in a column that selects claims.
    """
    for metric, judged in group[0].metrics.items():
        for column in dict.fromkeys(score.selection for score in judged.scores):
            shares: dict[str, list[bool]] = defaultdict(list)
            for row in group:
                judged = row.metrics[metric]
                verdicts = judged.verdicts.get(column, judged.verdicts[NONE])
                supported = {v.claim for v in verdicts if v.label == "supported"}
                supported -= {s.claim for s in judged.selections.get(column, ()) if not s.selected}
                for claim, statement in product(judged.claims, row.document.claims):
                    if (claim.source or claim.text) in statement.text:
                        shares[statement.text].append(claim.id in supported)
            most = 1 if column in judged.selections else math.inf
            yield {text: fmean(accepted) for text, accepted in shares.items()}, most
