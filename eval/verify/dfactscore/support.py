"""What each title says of each claim: by a relation model, or by a verifier of single claims."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from components.overlap import stems
from eval.stages import EntailmentModel, entails, model_probabilities
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge, premise
from records import Claim, Document, Passage

Judge = EntailmentModel | ClaimByClaim


class Table(NamedTuple):
    """What the titles of a document say of its claims, shapes (claims, titles).

    Attributes:
        support: highest entailment probability of a title's passages, of a verifier 1 or 0; NaN
            where nobody answered for one of them and none of the others supports the claim.
        supported: whether that passage, or all of them together, supports the claim.
        evidence: indices of what decided among the document's passages, tuples.
        graded: whether ``support`` is a probability.
    """

    titles: list[str]
    support: np.ndarray
    supported: np.ndarray
    evidence: np.ndarray
    graded: bool


class Pairing(NamedTuple):
    """A claim of a document and a title, with the title's passages that it is judged by."""

    row: int
    place: int
    column: int
    passages: list[int]


class Outcome(NamedTuple):
    """What was found for a pairing, by the names of :class:`Table`."""

    support: float
    supported: bool
    evidence: tuple[int, ...]


def tables_of(
    judge: Judge,
    documents: Sequence[Document],
    claims: Sequence[Sequence[Claim]],
    passages: Sequence[Sequence[Passage]],
    per_title: int,
    retrieved: bool,
    threshold: float | None,
    title_in_premise: bool,
) -> list[Table]:
    """Every claim against every title of its document, all in one call of the judge.

    Args:
        judge: judges passages one by one, or all of a title's in one question.
        per_title: passages of a title that a claim is judged by.
        retrieved: the first ones among the claim's ``contexts``, instead of those that share most
            words with it.
    """
    titles = [list(dict.fromkeys(map(page_title, own))) for own in passages]
    pairings = [
        pairing
        for row, own in enumerate(claims)
        for pairing in _pairings(row, own, passages[row], titles[row], per_title, retrieved)
    ]
    by_claim = isinstance(judge, ClaimByClaim)
    if by_claim:
        found = _by_verifier(judge, documents, claims, passages, pairings)
    else:
        found = _by_relation(judge, claims, passages, pairings, threshold, title_in_premise)
    tables = []
    for own, names in zip(claims, titles, strict=True):
        shape = (len(own), len(names))
        blank = (np.zeros(shape), np.zeros(shape, bool), np.empty(shape, object))
        blank[2].fill(())
        tables.append(Table(names, *blank, graded=not by_claim))
    for (row, place, column, _), outcome in zip(pairings, found, strict=True):
        table, at = tables[row], (place, column)
        table.support[at], table.supported[at], table.evidence[at] = outcome
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
    found = [[order[n] for n in dict.fromkeys(c.contexts or []) if n in order] for c in claims]
    for column, page in enumerate(pages):
        for place, claim in enumerate(claims):
            if retrieved:
                chosen = [k for k in found[place] if k in set(page)][:per_title]
            else:
                chosen = nearest_passages(claim.text, page, bags, per_title)
            if chosen:
                yield Pairing(row, place, column, chosen)


def _by_relation(
    model: EntailmentModel,
    claims: Sequence[Sequence[Claim]],
    passages: Sequence[Sequence[Passage]],
    pairings: Sequence[Pairing],
    threshold: float | None,
    title_in_premise: bool,
) -> list[Outcome]:
    pairs = [
        (premise(passages[row][k], title_in_premise), claims[row][place].text)
        for row, place, _, own in pairings
        for k in own
    ]
    answers = iter(model_probabilities(model.relations, pairs, 3) if pairs else [])
    found = []
    for pairing in pairings:
        best = Outcome(-1.0, False, (pairing.passages[0],))
        untold = False
        for k in pairing.passages:
            answer = next(answers)
            if np.isnan(answer).any():
                untold = True
            elif float(answer[0]) > best.support:
                best = Outcome(float(answer[0]), bool(entails(answer, threshold)), (k,))
        found.append(best._replace(support=math.nan) if untold and not best.supported else best)
    return found


def _by_verifier(
    verifier: ClaimByClaim,
    documents: Sequence[Document],
    claims: Sequence[Sequence[Claim]],
    passages: Sequence[Sequence[Passage]],
    pairings: Sequence[Pairing],
) -> list[Outcome]:
    """All passages of a pairing in one question.

    Each title counts as a document: a verifier that asks about several claims of a document at a
    time shows the passages of all of them, and no title is to be judged by another one's.
    """
    titles: dict[tuple[int, int], int] = {}
    asked = []
    for row, place, column, own in pairings:
        title = titles.setdefault((row, column), len(titles))
        chosen = [passages[row][k] for k in own]
        asked.append(ClaimToJudge(title, documents[row], claims[row][place], chosen))
    found = []
    for pairing, verdict in zip(pairings, verifier.judge(asked) if asked else (), strict=True):
        supported = verdict.label == "supported"
        support = math.nan if verdict.label == "failed" else float(supported)
        found.append(Outcome(support, supported, tuple(pairing.passages)))
    return found


def nearest_passages(
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


def page_title(passage: Passage) -> str:
    """The page that a passage is of; one without a title is a page of its own."""
    return passage.title or passage.id
