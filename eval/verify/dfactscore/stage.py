"""D-FActScore: claims are grouped by person, and each group is judged by one person's pages.

Chiang and Lee 2024, Merging Facts, Crafting Fallacies (2402.05629), sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from components.overlap import stems
from eval.stages import EntailmentModel, entails
from eval.verify.claim_by_claim import NOTHING_FOUND, RETRIEVAL_FAILED, premise
from eval.verify.dfactscore.grouping import Grouper
from eval.verify.dfactscore.linking import Assignment, linked_alone, linked_groups
from records import Claim, Document, Passage, UserError, Verdict

_UNTOLD = "the relation model gave no answer for one of its passages"
_UNLINKED = "its group's page depends on passages for which the relation model gave no answer"


class Table(NamedTuple):
    """What the titles of a document say of its claims, shapes (claims, titles).

    Attributes:
        support: highest entailment probability of a title's passages; NaN where the model did not
            answer for one of them and none of the others supports the claim.
        supported: whether that passage supports the claim.
        passage: index of that passage in the document's passages.
    """

    titles: list[str]
    support: np.ndarray
    supported: np.ndarray
    passage: np.ndarray


class DFActScore:
    """Judge claims one by one (``independent``) and person by person (``grouped``) in one run.

    A person is a title: all passages of a page; a passage without a title is a page of its own,
    under its id. Each pair of a claim and a title is scored once.
    ``independent`` is FActScore's verdict on a name that several people bear: some title supports
    the claim; ``entity`` is the title when each claim is linked alone (appendix B.1).
    ``grouped`` is D-FActScore's: the claims of a ``group`` are linked to one title, ``entity``, and
    judged by its passages only. Distinct groups are the number of biographies (B.1).

    It departs from the released code, which asks a language model with five passages of each title
    in one prompt and loses the first claim of each text when it reads the groups back: a relation
    model judges passage by passage, and every claim counts.

    The groups are made of all claims of a document. Called again with some of them, as the
    pipeline does with those that Core selected, it keeps the groups and links them by these claims.

    Args:
        entailment: the relation model that says what a passage supports.
        group: the claims' groups.
        threshold: entailment probability that counts as support; without it entailment must
            be likelier than both other relations.
        assignment: ``argmax`` links each group by itself, ``hungarian`` no two groups to one title.
        per_title: passages of a title that a claim is judged by, those that share most words with
            it (5 in the paper).
        title_in_premise: put the passage's title before its text.

    Raises:
        UserError: a number is out of range.
    """

    judges_sets = True

    def __init__(
        self,
        entailment: EntailmentModel,
        group: Grouper,
        threshold: float | None = None,
        assignment: Assignment = "argmax",
        per_title: int = 5,
        title_in_premise: bool = True,
    ):
        if threshold is not None and not 0 <= threshold <= 1:
            raise UserError(f"threshold: must be between 0 and 1, not {threshold}")
        if per_title < 1:
            raise UserError(f"per_title: must be 1 or more, not {per_title}")
        self.entailment = entailment
        self.group = group
        self.threshold = threshold
        self.assignment = assignment
        self.per_title = per_title
        self.title_in_premise = title_in_premise
        # Of the last documents: (id, topic, text) → claim's (id, text) → its group
        self._groups: dict[tuple[str, str, str], dict[tuple[str, str], str | None]] = {}

    def holds(self) -> list[object]:
        """The relation model, and what groups the sentences."""
        return [self.entailment, self.group]

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """Two verdicts a claim: both ``failed`` without passages, the second without a group."""
        groups = self._grouped(documents, claims)
        judged = [[claim for claim in own if claim.contexts is not None] for own in claims]
        tables = self._tables(judged, passages)
        return [
            _verdicts(own, labels, table, found, self.assignment)
            for own, labels, table, found in zip(claims, groups, tables, passages, strict=True)
        ]

    def _grouped(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        """The claims' groups, from all claims that this or the call before was given."""
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
        """Whether a document's claims have to be grouped: unknown ones, or all after a failure."""
        known = self._groups.get(key, {})
        names = set(map(_named, claims))
        return not names <= known.keys() or (names == known.keys() and None in known.values())

    def _tables(
        self, claims: Sequence[Sequence[Claim]], passages: Sequence[Sequence[Passage]]
    ) -> list[Table]:
        """Every claim against every title of its document, all in one call of the model."""
        jobs = []  # (document, claim, title, passage)
        titles = [list(dict.fromkeys(map(_page, own))) for own in passages]
        for row, own in enumerate(claims):
            pages = [
                [k for k, p in enumerate(passages[row]) if _page(p) == title]
                for title in titles[row]
            ]
            bags = [frozenset(stems(p.text)) for p in passages[row]] if own else []
            for place, claim in enumerate(own):
                for column, page in enumerate(pages):
                    for k in nearest(claim.text, page, bags, self.per_title):
                        jobs.append((row, place, column, k))
        pairs = [
            (premise(passages[row][k], self.title_in_premise), claims[row][place].text)
            for row, place, _, k in jobs
        ]
        answers = self.entailment.relations(pairs) if pairs else []
        tables = []
        for own, names in zip(claims, titles, strict=True):
            shape = (len(own), len(names))
            blank = (np.full(shape, -1.0), np.zeros(shape, bool), np.zeros(shape, int))
            tables.append(Table(names, *blank))
        untold = []
        for (row, place, column, k), answer in zip(jobs, answers, strict=True):
            table, at = tables[row], (place, column)
            if np.isnan(answer).any():
                untold.append((table, at))
            elif float(answer[0]) > table.support[at]:
                table.support[at] = float(answer[0])
                table.supported[at] = bool(entails(answer, self.threshold))
                table.passage[at] = k
        for table, at in untold:
            if not table.supported[at]:
                table.support[at] = np.nan
        return tables


def nearest(
    claim: str, page: Sequence[int], bags: Sequence[frozenset[str]], count: int
) -> list[int]:
    """The passages of a page that share most words with a claim, best first.

    Args:
        page: indices of its passages.
        bags: stems of all passages of the document.
    """
    if len(page) <= count:
        return list(page)
    words = sorted(set(stems(claim)))
    spread = {word: sum(word in bags[k] for k in page) for word in words}
    # A stem counts the more, the fewer of the page's passages have it.
    shared = {k: sum(1 / spread[word] for word in words if word in bags[k]) for k in page}
    return sorted(page, key=lambda k: -shared[k])[:count]


def _page(passage: Passage) -> str:
    return passage.title or passage.id


def _named(claim: Claim) -> tuple[str, str]:
    return claim.id, claim.text


def _verdicts(
    claims: Sequence[Claim],
    groups: Sequence[str | None],
    table: Table,
    passages: Sequence[Passage],
    assignment: Assignment,
) -> list[Verdict]:
    """Both verdicts on each claim of a document; the table has no rows for failed retrieval."""
    judged = [k for k, claim in enumerate(claims) if claim.contexts is not None]
    labels = [groups[k] for k in judged]
    linked = linked_groups(table.support, table.supported, labels, assignment)
    alone = linked_alone(table.supported)
    rows = {k: row for row, k in enumerate(judged)}
    verdicts = []
    for k, claim in enumerate(claims):
        if k not in rows or not passages:
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
    best = int(np.nanargmax(support))
    told = [None if np.isnan(p) else float(p) for p in support]
    return Verdict(
        claim=claim.id,
        assessor="dfactscore",
        name="independent",
        label="not_supported" if alone is None else "supported",
        p=support[best],
        evidence=[passages[table.passage[row, best]].id],
        entity=None if alone is None else table.titles[alone],
        support=dict(zip(table.titles, told, strict=True)),
    )


def _grouped(
    claim: Claim, table: Table, row: int, of_group: tuple[str, int], passages: Sequence[Passage]
) -> Verdict:
    """Whether the title that the claim's group is linked to supports it."""
    group, column = of_group
    if np.isnan(table.support[row, column]):
        return _failed(claim, "grouped", _UNTOLD, group)
    return Verdict(
        claim=claim.id,
        assessor="dfactscore",
        name="grouped",
        label="supported" if table.supported[row, column] else "not_supported",
        p=table.support[row, column],
        evidence=[passages[table.passage[row, column]].id],
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
