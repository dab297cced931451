"""Support of each title for each claim, by a relation model or a claim-by-claim verifier."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from components.english import stems
from eval.stages import EntailmentModel, entails, model_probabilities, no_answer
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge, premise
from records import Claim, Document, Passage

Judge = EntailmentModel | ClaimByClaim


class SupportTable(NamedTuple):
    """Support of a document's titles for its claims; arrays have shape (claims, titles).

    Attributes:
        support: highest entailment probability among a title's passages, or 1 or 0 from a verifier;
            NaN if an answer is missing and no other passage supports the claim.
        supported: whether the title supports the claim.
        evidence: tuples of indices of the deciding passages in the document.
        graded: whether ``support`` is a probability.
        no_answer: why an answer is missing.
    """

    titles: list[str]
    support: np.ndarray
    supported: np.ndarray
    evidence: np.ndarray
    graded: bool
    no_answer: str


class Pairing(NamedTuple):
    """A claim and a title, with the indices of the title's passages that judge the claim."""

    row: int
    claim: int
    column: int
    passages: list[int]


class TitleSupport(NamedTuple):
    """The cell of a pairing in :class:`SupportTable`."""

    support: float
    supported: bool
    evidence: tuple[int, ...]


def build_tables(
    judge: Judge,
    documents: Sequence[Document],
    claims: Sequence[Sequence[Claim]],
    passages: Sequence[Sequence[Passage]],
    per_title: int,
    retrieved: bool,
    threshold: float | None,
    title_in_premise: bool,
) -> list[SupportTable]:
    """Judge every claim against every title of its document, in one call of the judge.

    Args:
        judge: a relation model, which judges passage by passage, or a verifier, which judges all
            passages of a title at once.
        per_title: maximum number of passages of a title per claim.
        retrieved: use the first ones in the claim's ``contexts`` instead of those that share most
            words with it.
    """
    titles = [list(dict.fromkeys(map(page_title, listed))) for listed in passages]
    pairings = [
        pairing
        for row, listed in enumerate(claims)
        for pairing in _pairings(row, listed, passages[row], titles[row], per_title, retrieved)
    ]
    by_claim = isinstance(judge, ClaimByClaim)
    reason = no_answer(judge, "the model gave no answer for one of its passages")
    if by_claim:
        outcomes = _by_verifier(judge, documents, claims, passages, pairings)
    else:
        outcomes = _by_relation(judge, claims, passages, pairings, threshold, title_in_premise)
    tables = []
    for listed, names in zip(claims, titles, strict=True):
        shape = (len(listed), len(names))
        blank = (np.zeros(shape), np.zeros(shape, bool), np.empty(shape, object))
        blank[2].fill(())
        tables.append(SupportTable(names, *blank, graded=not by_claim, no_answer=reason))
    for (row, index, column, _), outcome in zip(pairings, outcomes, strict=True):
        table, cell = tables[row], (index, column)
        table.support[cell], table.supported[cell], table.evidence[cell] = outcome
    return tables


def _pairings(
    row: int,
    claims: Sequence[Claim],
    passages: Sequence[Passage],
    titles: Sequence[str],
    per_title: int,
    retrieved: bool,
) -> Iterator[Pairing]:
    pages = [[k for k, p in enumerate(passages) if page_title(p) == title] for title in titles]
    bags = [frozenset(stems(p.text)) for p in passages] if claims and not retrieved else []
    order = {passage.id: k for k, passage in enumerate(passages)}
    ranked = [[order[n] for n in dict.fromkeys(c.contexts or []) if n in order] for c in claims]
    for column, page in enumerate(pages):
        for index, claim in enumerate(claims):
            if retrieved:
                chosen = [k for k in ranked[index] if k in set(page)][:per_title]
            else:
                chosen = nearest_passages(claim.text, page, bags, per_title)
            if chosen:
                yield Pairing(row, index, column, chosen)


def _by_relation(
    model: EntailmentModel,
    claims: Sequence[Sequence[Claim]],
    passages: Sequence[Sequence[Passage]],
    pairings: Sequence[Pairing],
    threshold: float | None,
    title_in_premise: bool,
) -> list[TitleSupport]:
    pairs = [
        (premise(passages[row][k], title_in_premise), claims[row][index].text)
        for row, index, _, chosen in pairings
        for k in chosen
    ]
    answers = iter(model_probabilities(model.relations, pairs, 3) if pairs else [])
    outcomes = []
    for pairing in pairings:
        best = TitleSupport(-1.0, False, (pairing.passages[0],))
        missing = False
        for k in pairing.passages:
            answer = next(answers)
            if np.isnan(answer).any():
                missing = True
            elif float(answer[0]) > best.support:
                best = TitleSupport(float(answer[0]), bool(entails(answer, threshold)), (k,))
        outcomes.append(best._replace(support=math.nan) if missing and not best.supported else best)
    return outcomes


def _by_verifier(
    verifier: ClaimByClaim,
    documents: Sequence[Document],
    claims: Sequence[Sequence[Claim]],
    passages: Sequence[Sequence[Passage]],
    pairings: Sequence[Pairing],
) -> list[TitleSupport]:
    items = [
        ClaimToJudge(documents[row], claims[row][index], [passages[row][k] for k in indices])
        for row, index, _, indices in pairings
    ]
    outcomes = []
    for pairing, verdict in zip(pairings, verifier.judge(items) if items else (), strict=True):
        supported = verdict.label == "supported"
        support = math.nan if verdict.label == "failed" else float(supported)
        outcomes.append(TitleSupport(support, supported, tuple(pairing.passages)))
    return outcomes


def nearest_passages(
    claim: str, page: Sequence[int], bags: Sequence[frozenset[str]], count: int
) -> list[int]:
    """Return indices of the page's passages that share most words with a claim, best first."""
    if len(page) <= count:
        return list(page)
    words = sorted(set(stems(claim)))
    spread = {word: sum(word in bags[k] for k in page) for word in words}
    # Weight stems by their rarity among the page's passages.
    shared = {k: sum(1 / spread[word] for word in words if word in bags[k]) for k in page}
    return sorted(page, key=lambda k: -shared[k])[:count]


def page_title(passage: Passage) -> str:
    """Return the page of a passage: its title, or its id if it has no title."""
    return passage.title or passage.id
