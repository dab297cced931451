"""D-FActScore: claims are grouped by person, and each group is judged by one person's pages.

Chiang and Lee 2024, Merging Facts, Crafting Fallacies (2402.05629), sections 4 and 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from eval.stages import EntailmentModel
from eval.verify.claim_by_claim import NOTHING_FOUND, RETRIEVAL_FAILED, ClaimByClaim
from eval.verify.dfactscore.grouping import Grouper
from eval.verify.dfactscore.linking import Assignment, link_claims, link_groups
from eval.verify.dfactscore.support import Table, tables_of
from records import Claim, Document, Passage, UserError, Verdict

_UNTOLD = "the model gave no answer for one of its passages"
_UNLINKED = "its group's page depends on passages for which the model gave no answer"


@dataclass(eq=False)
class DFActScore:
    """Judge claims one by one (``independent``) and person by person (``grouped``) in one run.

    A person is a title: all passages of a page; a passage without a title is a page of its own,
    under its id. Each pair of a claim and a title is scored once.
    ``independent`` is FActScore's verdict on a name that several people bear: some title supports
    the claim; ``entity`` is the title when each claim is linked alone (appendix B.1).
    ``grouped`` is D-FActScore's: the claims of a ``group`` are linked to one title, ``entity``, and
    judged by its passages only. Distinct groups are the number of biographies (B.1).

    As published, a language model is asked once for each claim and title, True or False, with five
    passages of the title's whole page: ``entailment`` is then ``eval.verify.factscore.FActScore``,
    the retriever ``eval.retrieve.titles.PagesOfTitles``, and ``retrieved`` true. A relation model
    judges passage by passage. Unlike in the released code, which loses the first claim of each text
    when it reads the groups back, every claim counts.

    The groups are made of all claims of a document. Called again with some of them, as the
    pipeline does with those that Core selected, it keeps the groups and links them by these claims.

    Args:
        entailment: says what supports a claim: a relation model passage by passage, or a verifier
            of one verdict a claim all passages of a title at once.
        group: the claims' groups.
        threshold: entailment probability that counts as support; without it entailment must
            be likelier than both other relations. A verifier has none.
        assignment: ``argmax`` links each group by itself, ``hungarian`` no two groups to one title.
        per_title: passages of a title that a claim is judged by, those that share most words with
            it (5 in the paper).
        title_in_premise: put the passage's title before its text, for a relation model.
        retrieved: judge a claim by those passages of a title that were retrieved for it, its
            ``contexts`` with the best first, instead of those that share most words with it.
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
            raise UserError("threshold: a verifier gives no probability; take it out")
        if getattr(self.entailment, "nonparametric", None) is not None:
            raise UserError(
                "entailment: with nonparametric it gives two verdicts a claim; set that to null"
            )
        # Of the last documents: (id, topic, text) → claim's (id, text) → its group
        self._groups: dict[tuple[str, str, str], dict[tuple[str, str], str | None]] = {}

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        groups = self._grouped(documents, claims)
        judged = [[claim for claim in own if claim.contexts is not None] for own in claims]
        tables = tables_of(
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
            _verdicts(own, labels, table, found, self.assignment)
            for own, labels, table, found in zip(claims, groups, tables, passages, strict=True)
        ]

    def _grouped(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        keys = [(document.id, document.topic, document.text) for document in documents]
        new = [row for row, key in enumerate(keys) if self._is_new(key, claims[row])]
        if new:
            found = self.group([documents[row] for row in new], [claims[row] for row in new])
            kept = {key: self._groups[key] for key in keys if key in self._groups}
            for row, labels in zip(new, found, strict=True):
                names = map(_named, claims[row])
                kept[keys[row]] = kept.get(keys[row], {}) | dict(zip(names, labels, strict=True))
            self._groups = kept
        known = [self._groups.get(key, {}) for key in keys]
        return [
            [table[_named(claim)] for claim in own]
            for table, own in zip(known, claims, strict=True)
        ]

    def _is_new(self, key: tuple[str, str, str], claims: Sequence[Claim]) -> bool:
        known = self._groups.get(key, {})
        names = set(map(_named, claims))
        return not names <= known.keys() or (names == known.keys() and None in known.values())


def _named(claim: Claim) -> tuple[str, str]:
    return claim.id, claim.text


def _verdicts(
    claims: Sequence[Claim],
    groups: Sequence[str | None],
    table: Table,
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
            verdicts.append(_failed(claim, "grouped", _UNLINKED, groups[k]))
        else:
            of_group = (groups[k], column)
            verdicts.append(_grouped(claim, table, rows[k], of_group, passages))
    return verdicts


def _independent(
    claim: Claim, table: Table, row: int, alone: int | None, passages: Sequence[Passage]
) -> Verdict:
    """Whether some title supports the claim.

    ``support`` holds the probability of each title (null: not told): from it another threshold or
    assignment can be had without another run.
    """
    support = table.support[row]
    if alone is None and np.isnan(support).any():
        return _failed(claim, "independent", _UNTOLD)
    # A title that has no passages for the claim did not decide
    best = int(np.nanargmax(np.where([bool(own) for own in table.evidence[row]], support, -1)))
    told = [None if np.isnan(p) else float(p) for p in support]
    return Verdict(
        claim=claim.id,
        assessor="dfactscore",
        name="independent",
        label="not_supported" if alone is None else "supported",
        p=support[best] if table.graded else None,
        evidence=[passages[k].id for k in table.evidence[row, best]],
        entity=None if alone is None else table.titles[alone],
        support=dict(zip(table.titles, told, strict=True)),
    )


def _grouped(
    claim: Claim, table: Table, row: int, of_group: tuple[str, int], passages: Sequence[Passage]
) -> Verdict:
    group, column = of_group
    if np.isnan(table.support[row, column]):
        return _failed(claim, "grouped", _UNTOLD, group)
    return Verdict(
        claim=claim.id,
        assessor="dfactscore",
        name="grouped",
        label="supported" if table.supported[row, column] else "not_supported",
        p=table.support[row, column] if table.graded else None,
        evidence=[passages[k].id for k in table.evidence[row, column]],
        group=group,
        entity=table.titles[column],
    )


def _failed(claim: Claim, name: str, reason: str, group: str | None = None) -> Verdict:
    return Verdict(
        claim=claim.id,
        assessor="dfactscore",
        name=name,
        label="failed",
        reason=reason,
        group=group,
    )
