"""DecompScore: how much of a passage its decomposition keeps (2403.11903, section 3.2).

A subclaim is supported when the sentence it came from entails it, whether or not the sentence is
true. Then

    DecompScore = mean over passages of the number of supported subclaims
    coherence   = supported subclaims / judged subclaims, of all passages together
    coherence_per_passage = mean over passages of each one's supported / judged subclaims

Table 2 of the paper has the first, its ratio to Table 3 is the second, and Table 6 the third. A
decomposer that says more, and nothing that its sentence does not say, scores higher. There is no
length penalty.

It is factual precision with the source sentence as the reference, so any verifier can be its judge:
``eval.verify.nli.NLI`` by entailment, ``eval.verify.factscore.FActScore`` by asking a language
model the question that FActScore asks of retrieved passages.

DecompScore rewards repetition. The paper counts every subclaim; the decomposers that ask a model or
a parser give none twice in the same words for one sentence, but one that says everything in two
ways doubles it all the same. :func:`same_claims` finds the subclaims of a passage that entail each
other in both directions, so that the score can be taken again with one subclaim of each such class.
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
    """Judge each claim against the sentence that it came from.

    A claim without a ``source`` is judged against the whole text, as in Core. A claim that is its
    sentence is supported, and the judge is not asked.

    Args:
        judge: any verifier; its first verdict on a claim counts. It sees the sentence as the
            claim's only passage, with the document's topic as its title.
        documents: the batch.
        claims: of each document, without those that have failed.

    Returns:
        One verdict a claim, in the claims' order; a claim that the judge has no verdict on failed.
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
    return Verdict(claim=claim.id, assessor="none", label="failed", reason="the judge said nothing")


def _is_source(claim: Claim) -> bool:
    return claim.source is not None and normalise(claim.text) == normalise(claim.source)


def decision(verdict: Verdict) -> int:
    """1 for supported, -1 for failed, 0 for every other label."""
    return {"supported": 1, "failed": FAILED}.get(verdict.label, 0)


def same_claims(
    model: EntailmentModel, claims: Sequence[Sequence[Claim]], threshold: float | None = None
) -> list[list[int]]:
    """Which claims of a document say the same: the class of each claim.

    Two claims are of one class where each entails the other, and where a chain of such pairs joins
    them (mutual entailment by a model need not be transitive). The other direction is only asked
    where the first one holds.

    Args:
        model: judges entailment.
        claims: of each document.
        threshold: least probability of entailment; None: the argmax.

    Returns:
        Per document one number a claim, 0-based in the order of the classes' first claims.
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
    """The decisions of one subclaim a class: a supported one where the class has one.

    Args:
        decisions: of each claim (1, 0, -1).
        classes: of each claim, as :func:`same_claims` gives them.
    """
    best: dict[int, int] = {}
    for value, number in zip(decisions, classes, strict=True):
        best[number] = max(value, best.get(number, FAILED))
    return list(best.values())
