"""D-FActScore: group claims by person and judge each group by one person's page.

Chiang and Lee 2024, Merging Facts, Crafting Fallacies (2402.05629), sections 4 and 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from eval.stages import EntailmentModel
from eval.verify.claim_by_claim import NOTHING_FOUND, RETRIEVAL_FAILED, ClaimByClaim
from eval.verify.dfactscore.grouping import Grouper
from eval.verify.dfactscore.linking import Assignment, link_claims, link_groups
from eval.verify.dfactscore.support import SupportTable, build_tables
from records import Claim, Document, Passage, UserError, Verdict
from records.types import VerdictLabel

_NO_LINK = "its group's page depends on passages for which the model gave no answer"


@dataclass(eq=False)
class DFActScore:
    """Judge claims one by one (``independent``) and person by person (``grouped``) in one run.

    A person is a title, with all passages of that page. A passage without a title is a separate
    page, named by its id. Each (claim, title) pair is scored once.

    - ``independent`` is FActScore's verdict: some title supports the claim. ``entity`` is the title
      when each claim is linked without groups (appendix B.1).
    - ``grouped`` is D-FActScore's verdict: the claims of a ``group`` are linked to one title,
      ``entity``, and judged by its passages only. The number of groups is B.1's number of
      biographies.

    The paper asks a language model True or False for each claim and title, with five passages of
    the title's page. For this, set ``entailment`` to ``eval.verify.factscore.FActScore``, the
    retriever to ``eval.retrieve.titles.PagesOfTitles``, and ``retrieved`` to true. The released
    code loses the first claim of each text when it parses the groups. A call with a subset of the
    claims, e.g. those that Core selects, keeps the groups and links them by the subset.

    Args:
        entailment: a relation model, which judges passage by passage, or a claim-by-claim verifier,
            which judges all passages of a title at once.
        group: assigns claims to groups.
        threshold: minimum entailment probability for support; by default entailment must be more
            probable than both other relations. Not for verifiers.
        assignment: ``argmax`` links groups separately, ``hungarian`` a title to at most one group.
        per_title: maximum number of passages of a title per claim (5 in the paper).
        title_in_premise: prepend the passage's title to its text, for a relation model.
        retrieved: use the passages of a title that were retrieved for the claim, in the order of
            its ``contexts``, instead of those that share most words with it.
    """

    judges_sets = True

    entailment: EntailmentModel | ClaimByClaim
    group: Grouper
    threshold: ClosedUnitInterval | None = None
    assignment: Assignment = "argmax"
    per_title: PositiveInt = 5
    title_in_premise: bool = True
    retrieved: bool = False

    def __post_init__(self) -> None:
        if self.threshold is not None and isinstance(self.entailment, ClaimByClaim):
            raise UserError("threshold: a verifier returns no probability; remove the option")
        if getattr(self.entailment, "nonparametric", None) is not None:
            raise UserError(
                "entailment: with nonparametric it returns two verdicts per claim; set it to null"
            )
        # Of the last batch: document (id, topic, text) → claim (id, text) → group
        self._groups: dict[tuple[str, str, str], dict[tuple[str, str], str | None]] = {}

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        groups = self._grouped(documents, claims)
        judged = [[c for c in listed if c.contexts is not None] for listed in claims]
        tables = build_tables(
            self.entailment,
            documents,
            judged,
            passages,
            per_title=self.per_title,
            retrieved=self.retrieved,
            threshold=self.threshold,
            title_in_premise=self.title_in_premise,
        )
        return [
            _verdicts(listed, labels, table, texts, self.assignment)
            for listed, labels, table, texts in zip(claims, groups, tables, passages, strict=True)
        ]

    def _grouped(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        keys = [(document.id, document.topic, document.text) for document in documents]
        new = [row for row, key in enumerate(keys) if self._is_new(key, claims[row])]
        if new:
            new_labels = self.group([documents[row] for row in new], [claims[row] for row in new])
            kept = {key: self._groups[key] for key in keys if key in self._groups}
            for row, labels in zip(new, new_labels, strict=True):
                names = map(_claim_key, claims[row])
                kept[keys[row]] = kept.get(keys[row], {}) | dict(zip(names, labels, strict=True))
            self._groups = kept
        group_tables = [self._groups.get(key, {}) for key in keys]
        return [
            [table[_claim_key(claim)] for claim in listed]
            for table, listed in zip(group_tables, claims, strict=True)
        ]

    def _is_new(self, key: tuple[str, str, str], claims: Sequence[Claim]) -> bool:
        groups = self._groups.get(key, {})
        names = set(map(_claim_key, claims))
        return not names <= groups.keys() or (names == groups.keys() and None in groups.values())


def _claim_key(claim: Claim) -> tuple[str, str]:
    return claim.id, claim.text


def _verdicts(
    claims: Sequence[Claim],
    groups: Sequence[str | None],
    table: SupportTable,
    passages: Sequence[Passage],
    assignment: Assignment,
) -> list[Verdict]:
    judged = [k for k, claim in enumerate(claims) if claim.contexts is not None]
    labels = [groups[k] for k in judged]
    linked = link_groups(table.support, table.supported, labels, assignment)
    alone = link_claims(table.supported)
    rows = {k: row for row, k in enumerate(judged)}
    verdicts = []
    for k, claim in enumerate(claims):
        if k not in rows or not any(table.evidence[rows[k]]):
            reason = NOTHING_FOUND if k in rows else RETRIEVAL_FAILED
            verdicts.append(_failed(claim, "independent", reason))
            verdicts.append(_failed(claim, "grouped", reason, groups[k]))
            continue
        verdicts.append(_independent(claim, table, rows[k], alone[rows[k]], passages))
        if groups[k] is None:
            verdicts.append(_failed(claim, "grouped", "its group is not known"))
        elif (column := linked[groups[k]]) is None:
            verdicts.append(_failed(claim, "grouped", _NO_LINK, groups[k]))
        else:
            of_group = (groups[k], column)
            verdicts.append(_grouped(claim, table, rows[k], of_group, passages))
    return verdicts


def _independent(
    claim: Claim, table: SupportTable, row: int, alone: int | None, passages: Sequence[Passage]
) -> Verdict:
    # `support` has each title's probability (null if missing), so that other thresholds and
    # assignments can be evaluated without another run.
    support = table.support[row]
    if alone is None and np.isnan(support).any():
        return _failed(claim, "independent", table.no_answer)
    # Ignore titles without passages for the claim
    best = int(np.nanargmax(np.where([bool(cell) for cell in table.evidence[row]], support, -1)))
    probabilities = [None if np.isnan(p) else float(p) for p in support]
    return _verdict(
        claim,
        "independent",
        "not_supported" if alone is None else "supported",
        p=support[best] if table.graded else None,
        evidence=[passages[k].id for k in table.evidence[row, best]],
        entity=None if alone is None else table.titles[alone],
        support=dict(zip(table.titles, probabilities, strict=True)),
    )


def _grouped(
    claim: Claim,
    table: SupportTable,
    row: int,
    of_group: tuple[str, int],
    passages: Sequence[Passage],
) -> Verdict:
    group, column = of_group
    if np.isnan(table.support[row, column]):
        return _failed(claim, "grouped", table.no_answer, group)
    return _verdict(
        claim,
        "grouped",
        "supported" if table.supported[row, column] else "not_supported",
        p=table.support[row, column] if table.graded else None,
        evidence=[passages[k].id for k in table.evidence[row, column]],
        group=group,
        entity=table.titles[column],
    )


def _failed(claim: Claim, name: str, reason: str, group: str | None = None) -> Verdict:
    return _verdict(claim, name, "failed", reason=reason, group=group)


def _verdict(claim: Claim, name: str, label: VerdictLabel, **fields: Any) -> Verdict:
    return Verdict(claim=claim.id, assessor="dfactscore", name=name, label=label, **fields)
