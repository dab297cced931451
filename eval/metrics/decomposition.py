"""DecompScore: number of subclaims that their source supports (2403.11903, section 3.2).

A subclaim is supported if its source sentence entails it, whether or not the sentence is true.

    DecompScore = mean over passages of the number of supported subclaims
    coherence   = supported subclaims / judged subclaims, of all passages together
    coherence_per_passage = mean over passages of each one's supported / judged subclaims

Table 2 of the paper has the first, its ratio to Table 3 is the second, and Table 6 the third. There
is no length penalty.

Any verifier can be the judge: ``eval.verify.nli.NLI`` by entailment, or
``eval.verify.factscore.FActScore`` with the source sentence in place of retrieved passages.

DecompScore rewards repetition because every subclaim counts. :func:`same_claims` finds subclaims
that entail each other, so that the score can also be computed with one subclaim per class.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from eval.metrics.document import FAILED
from eval.select.judgements import relations
from eval.select.weights import normalise
from eval.stages import EntailmentModel, Verifier, entails, run_verifier
from records import Claim, Document, Passage, Verdict


def judge_by_source(
    judge: Verifier, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> list[list[Verdict]]:
    """Judge each claim against its source sentence.

    A claim without a ``source`` is judged against the whole text, as in Core. A claim equal to its
    sentence is supported without a query.

    Args:
        judge: any verifier; its first verdict on a claim counts. The sentence is the claim's only
            passage, with the document's topic as its title.
        documents: the batch.
        claims: of each document, without failed claims.

    Returns:
        One verdict per claim, in order; claims without a verdict are ``failed``.
    """
    todo, passages = [], []
    for document, row in zip(documents, claims, strict=True):
        unequal = [claim for claim in row if not _is_source(claim)]
        texts = dict.fromkeys(claim.source or document.text for claim in unequal)
        ids = {text: f"s{place}" for place, text in enumerate(texts)}
        passages.append([Passage(id=i, title=document.topic, text=t) for t, i in ids.items()])
        places = [[ids[claim.source or document.text]] for claim in unequal]
        todo.append(
            [c.model_copy(update={"contexts": p}) for c, p in zip(unequal, places, strict=True)]
        )
    judged = []
    for row, verdicts in zip(claims, run_verifier(judge, documents, todo, passages), strict=True):
        first = {
            claim.id: Verdict(claim=claim.id, assessor="identity", label="supported")
            for claim in row
            if _is_source(claim)
        }
        for verdict in verdicts:
            first.setdefault(verdict.claim, verdict)
        judged.append([first.get(claim.id) or _unjudged(claim) for claim in row])
    return judged


def _unjudged(claim: Claim) -> Verdict:
    return Verdict(
        claim=claim.id, assessor="none", label="failed", reason="the judge returned no verdict"
    )


def _is_source(claim: Claim) -> bool:
    return claim.source is not None and normalise(claim.text) == normalise(claim.source)


def decision(verdict: Verdict) -> int:
    """Convert a verdict to 1 (supported), -1 (failed) or 0 (other labels)."""
    return {"supported": 1, "failed": FAILED}.get(verdict.label, 0)


def same_claims(
    model: EntailmentModel, claims: Sequence[Sequence[Claim]], threshold: float | None = None
) -> list[list[int]]:
    """Return equivalence classes of a document's claims by mutual entailment.

    The classes are the connected components, because mutual entailment by a model need not be
    transitive. The reverse direction is judged only if the first holds.

    Args:
        model: judges entailment.
        claims: of each document.
        threshold: minimum entailment probability; ``None``: the argmax.

    Returns:
        One 0-based class per claim, numbered by first occurrence, for each document.
    """
    texts = [[claim.text for claim in row] for row in claims]
    forth = relations(model, (pair for row in texts for pair in combinations(row, 2)))
    one_way = [pair for pair, row in forth.items() if entails(row, threshold)]
    back = relations(model, [(b, a) for a, b in one_way])
    same = {(a, b) for a, b in one_way if entails(back[b, a], threshold)}
    return [_classes(row, same) for row in texts]


def _classes(texts: Sequence[str], same: set[tuple[str, str]]) -> list[int]:
    joined = [(i, j) for i, j in combinations(range(len(texts)), 2) if (texts[i], texts[j]) in same]
    rows, columns = np.array(joined, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(joined)), (rows, columns)), shape=(len(texts), len(texts)))
    if not texts:
        return []
    _, labels = connected_components(graph.tocsr(), directed=False)
    order = {label: place for place, label in enumerate(dict.fromkeys(labels.tolist()))}
    return [order[label] for label in labels.tolist()]


def one_of_each(decisions: Sequence[int], classes: Sequence[int]) -> list[int]:
    """Return one decision (1, 0, -1) per class: the maximum over its claims.

    Args:
        decisions: of each claim.
        classes: of each claim, from :func:`same_claims`.
    """
    best: dict[int, int] = {}
    for value, number in zip(decisions, classes, strict=True):
        best[number] = max(value, best.get(number, FAILED))
    return list(best.values())
