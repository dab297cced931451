"""Core: select the subclaims that factual precision counts (2407.03572).

Uninformative and repeated claims can inflate factual precision. Core selects the claims that count
by the integer program of Eq. 1:

    maximise    Σ wᵢ xᵢ,   x binary
    subject to  xᵢ + xⱼ ≤ 1     where claim i entails claim j or j entails i
                Σ pᵢ xᵢ ≤ 0     with pᵢ = p − 1[the source sentence entails claim i]

``program.py`` contains the program, ``weights.py`` the weights wᵢ, both with their departures from
the paper, and ``view.py`` the input of the program and the reason of each selection. Choices here:

- ``Entail`` means that entailment is the most probable of the three relations; optionally, that its
  probability reaches a threshold.
- The premise of document entailment is the source sentence that the decomposer saw.
- Rel, the relevance factor of a weight, is judged on the source sentence; Rel = 0 means that the
  claim is never selected.
- Claims on which a judgement failed, of Rel or of a model, e.g. because the claim is too long for
  it, are not selected and are reported as failed.
- Claims with the same normalised text are one text for the models and the program, in their first
  spelling in character order. It is coherent if one of its claims is.
- Of selections with equal weight and size, the one whose claims entail the others is kept, then
  the first in character order: a claim is worth at least as much as what it entails.
- The paper states no value of p, the share of selected claims that their sentences must entail, or
  of ε; both are options. ``core_published.py`` has the values of the released code.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice, pairwise
from typing import Literal, Protocol

import numpy as np
import scipy

from eval.select.judgements import likelihoods, relations
from eval.select.view import View
from eval.select.weights import Bleached, BleachedClaims, capped, information
from eval.stages import EntailmentModel, Relevance, Selection, UnliModel, entails
from records import Claim, Document, UserError

# The cap is judged with the first bleached claim, then the next three, then the others.
CAP_ROUNDS = (1, 4)
# Pairs of texts per model call; 1,000 claims have a million pairs.
PAIRS_AT_ONCE = 65_536


class Comparison(Protocol):
    """Selects the pairs of claims to compare (``eval/select/gate.py``)."""

    def pairs(self, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield indices i < j of the distinct texts to compare, in order."""


class Core:
    """The selector stage: select the subclaims of each document that count.

    Model calls are batched over documents: one for document entailment, up to three for the cap,
    one for likelihoods, two for exclusion between candidates.

    Args:
        entailment: model for document entailment, exclusion and, by default, the cap.
        unli: model for p(claim | bleached claim); not needed with uniform weights.
        bleached: texts with {topic}, or a file with one text per line, e.g.
            eval/select/bleached/biographies.txt; a mapping from domain (field ``domain`` of
            documents) to file; or a .json file that maps topics to lists. Not needed with uniform
            weights.
        weighting: uniform (wᵢ = 1), cpmi (w_Info) or capped (w_Info − ε, or −ε if a bleached claim
            entails the claim).
        p: minimum share of the selected claims that their source sentences entail, in [0, 1].
        epsilon: ε of the capped weights in nats. Claims with w_Info ≤ ε are removed; each selected
            claim costs ε, so one claim wins over two parts with up to ε more weight in total.
        entail_threshold: minimum probability of entailment; null: entailment must be the most
            probable relation.
        strict_eq1: keep claims with weight ≤ 0 in the program, as Eq. 1 is printed; uninformative
            claims then provide budget for incoherent ones.
        floor: minimum probability in weights, so that they are finite.
        relevance: model for Rel of source sentences; null: all are relevant.
        cap: a separate model for the cap, by its most probable relation; null: ``entailment`` with
            its threshold.
        gate: skips pairs of dissimilar claims; null: all pairs are compared.
        repeats: whether F1@K counts claims that are removed as duplicates as ``unsupported``, so
            that repeating a true claim does not pay. Core's precision drops them in either case.
    """

    def __init__(
        self,
        entailment: EntailmentModel,
        unli: UnliModel | None = None,
        bleached: BleachedClaims | None = None,
        weighting: Literal["uniform", "cpmi", "capped"] = "capped",
        p: float = 0.5,
        epsilon: float = 0.1,
        entail_threshold: float | None = None,
        strict_eq1: bool = False,
        floor: float = 1e-6,
        relevance: Relevance | None = None,
        cap: EntailmentModel | None = None,
        gate: Comparison | None = None,
        repeats: Literal["dropped", "unsupported"] = "dropped",
    ):
        if weighting not in ("uniform", "cpmi", "capped"):
            raise UserError(f"weighting: expected uniform, cpmi or capped, got {weighting!r}")
        if weighting != "uniform" and (unli is None or bleached is None):
            missing = "unli" if unli is None else "bleached"
            raise UserError(f"weighting: {weighting} needs {missing}; set it or use uniform")
        if not 0 <= p <= 1:
            raise UserError(f"p: expected a number in [0, 1], got {p}")
        if not 0 <= epsilon <= 50:
            raise UserError(f"epsilon: expected nats in [0, 50], got {epsilon}")
        if entail_threshold is not None and not 0 < entail_threshold <= 1:
            raise UserError(f"entail_threshold: expected (0, 1], got {entail_threshold}")
        if not 1e-20 <= floor < 1:
            raise UserError(f"floor: expected a number in [1e-20, 1), got {floor}")
        self.entailment = entailment
        self.unli = unli
        self.bleached = None if bleached is None else Bleached(bleached)
        self.weighting = weighting
        self.p = p
        self.epsilon = epsilon
        self.entail_threshold = entail_threshold
        self.strict_eq1 = strict_eq1
        self.floor = floor
        self.relevance = relevance
        self.cap = cap
        self.gate = gate
        self.repeats = repeats

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]:
        """Return one selection per claim; the premise is a claim's ``source``, else the text."""
        views = [
            View.of(d, c, [] if self.bleached is None else self.bleached.claims_for(d))
            for d, c in zip(documents, claims, strict=True)
        ]
        self._judge_relevance(views)
        self._judge_coherence(views)
        self._weigh(views, self._judge_cap(views))
        self._judge_exclusion(views)
        return [self._select(view) for view in views]

    def _judge_relevance(self, views: list[View]) -> None:
        if self.relevance is None:
            return
        sentences = [list(dict.fromkeys(view.sources)) for view in views]
        scores = self.relevance([view.document for view in views], sentences)
        for view, distinct, scored in zip(views, sentences, scores, strict=True):
            relevance = dict(zip(distinct, scored, strict=True))
            of_claims = [relevance[source] for source in view.sources]
            view.relevant = np.array([bool(rel) for rel in of_claims], dtype=bool)
            view.unjudged = np.array([rel is None for rel in of_claims], dtype=bool)

    def _judge_coherence(self, views: list[View]) -> None:
        # revised claims are judged in their original form, since the premise is one sentence
        support = [
            [
                (source, claim.original or view.spellings[node])
                for source, claim, node in zip(view.sources, view.claims, view.node, strict=True)
            ]
            for view in views
        ]
        pairs_of_all = (pair for pairs in support for pair in pairs)
        relation_of = relations(self.entailment, pairs_of_all, require_all=False)
        for view, pairs in zip(views, support, strict=True):
            answers = np.array([relation_of[pair] for pair in pairs]).reshape(-1, 3)
            view.support = np.clip(answers[:, 0], 0.0, 1.0)
            view.coherent = entails(answers, self.entail_threshold)
            view.fail(np.isnan(answers).any(axis=1))

    def _judge_cap(self, views: list[View]) -> list[np.ndarray]:
        """Whether a bleached claim entails the texts of each view.

        Rounds skip texts that an earlier bleached claim entails, which saves most queries for
        uninformative texts.
        """
        capped_texts = [np.zeros(len(view.texts), bool) for view in views]
        if self.weighting != "capped":
            return capped_texts
        model = self.entailment if self.cap is None else self.cap
        threshold = self.entail_threshold if self.cap is None else None
        open_texts = [
            (view, is_capped, int(node))
            for view, is_capped in zip(views, capped_texts, strict=True)
            for node in np.flatnonzero(view.any_copy(view.relevant))
        ]
        longest = max((len(view.bleached) for view in views), default=0)
        edges = [0, *(edge for edge in CAP_ROUNDS if edge < longest), longest]
        for start, end in pairwise(edges):
            pairs_of = [view.bleached_pairs(node)[start:end] for view, _, node in open_texts]
            pairs_of_all = (pair for pairs in pairs_of for pair in pairs)
            relation_of = relations(model, pairs_of_all, require_all=False)
            for (view, is_capped, node), pairs in zip(open_texts, pairs_of, strict=True):
                answers = np.array([relation_of[pair] for pair in pairs]).reshape(-1, 3)
                is_capped[node] = entails(answers, threshold).any()
                if not is_capped[node] and np.isnan(answers).any():
                    view.fail(view.node == node)
            open_texts = [item for item in open_texts if not item[1][item[2]]]
        return capped_texts

    def _weigh(self, views: list[View], capped_texts: list[np.ndarray]) -> None:
        candidates = [view.any_copy(view.relevant) for view in views]
        if self.weighting == "uniform":
            for view, relevant in zip(views, candidates, strict=True):
                view.weights = relevant.astype(float)
            return
        pairs = [
            pair
            for view, relevant, is_capped in zip(views, candidates, capped_texts, strict=True)
            for node in np.flatnonzero(relevant & ~is_capped)
            for pair in view.bleached_pairs(node)
        ]
        likelihood_of = likelihoods(self.unli, pairs, require_all=False)
        for view, relevant, is_capped in zip(views, candidates, capped_texts, strict=True):
            for node in np.flatnonzero(relevant):
                if is_capped[node]:
                    view.weights[node] = capped(1.0, True, self.epsilon, self.floor)
                    continue
                pairs = view.bleached_pairs(node)
                likelihood = float(np.max([likelihood_of[pair] for pair in pairs]))
                if np.isnan(likelihood):
                    view.fail(view.node == node)
                    continue
                view.weights[node] = (
                    capped(likelihood, False, self.epsilon, self.floor)
                    if self.weighting == "capped"
                    else information(likelihood, self.floor)
                )

    def _candidates(self, view: View) -> np.ndarray:
        able = view.any_copy(view.coherent if self.p == 1 else view.relevant)
        return np.flatnonzero(able if self.strict_eq1 else able & (view.weights > 0))

    def _compared(self, views: list[View]) -> Iterator[tuple[int, int, int]]:
        # the longer text of a pair comes first, since it is likelier to entail the other
        for row, view in enumerate(views):
            nodes = self._candidates(view)
            if self.gate is None:
                pairs = combinations(range(len(nodes)), 2)
            else:
                pairs = self.gate.pairs([view.spellings[node] for node in nodes])
            for first, second in pairs:
                i, j = int(nodes[first]), int(nodes[second])
                shorter = len(view.spellings[i]) < len(view.spellings[j])
                yield (row, j, i) if shorter else (row, i, j)

    def _judge_exclusion(self, views: list[View]) -> None:
        # one direction suffices, so the reverse is only judged if the first does not entail
        compared = self._compared(views)
        entailing: list[list[tuple[int, int]]] = [[] for _ in views]
        while block := list(islice(compared, PAIRS_AT_ONCE)):
            is_entailed = self._entailed(views, block)
            remaining = [block[index] for index in np.flatnonzero(~is_entailed)]
            is_reversed = self._entailed(views, [(row, j, i) for row, i, j in remaining])
            for index in np.flatnonzero(is_entailed):
                row, i, j = block[index]
                entailing[row].append((i, j))
            for index in np.flatnonzero(is_reversed):
                row, i, j = remaining[index]
                entailing[row].append((j, i))
        for view, edges in zip(views, entailing, strict=True):
            i, j = np.array(edges, np.int64).reshape(-1, 2).T
            m = len(view.texts)
            view.strength = np.bincount(i, minlength=m) - np.bincount(j, minlength=m)
            both = (np.append(i, j), np.append(j, i))
            view.exclusion = scipy.sparse.csr_array(
                (np.ones(2 * len(i), bool), both), shape=view.exclusion.shape
            )

    def _entailed(self, views: list[View], block: list[tuple[int, int, int]]) -> np.ndarray:
        pairs = [(views[row].spellings[i], views[row].spellings[j]) for row, i, j in block]
        relation_of = relations(self.entailment, pairs, require_all=False)
        answers = np.array([relation_of[pair] for pair in pairs]).reshape(-1, 3)
        for index in np.flatnonzero(np.isnan(answers).any(axis=1)):
            row, _, hypothesis = block[index]
            views[row].fail(views[row].node == hypothesis)
        return entails(answers, self.entail_threshold)

    def _select(self, view: View) -> list[Selection]:
        nodes = self._candidates(view)
        # Of selections with equal weight, the program keeps the one with the earlier texts.
        nodes = nodes[np.argsort(-view.strength[nodes], kind="stable")]
        selected = np.zeros(len(view.texts), bool)
        from eval.select.program import solve  # scipy.sparse takes time to import

        selected[nodes] = solve(
            view.weights[nodes],
            view.exclusion[nodes][:, nodes],
            view.any_copy(view.coherent)[nodes],
            self.p,
        )
        return view.selections(selected)
