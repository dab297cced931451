"""Core: the subclaims that a factual precision may count (2407.03572).

A text can inflate its factual precision by saying little (uninformative claims) or one thing many
times (repeated claims). Core selects the claims that count, by the integer program of Eq. 1:

    maximise    Σ wᵢ xᵢ,   x binary
    subject to  xᵢ + xⱼ ≤ 1     where claim i entails claim j or j entails i
                Σ pᵢ xᵢ ≤ 0     with pᵢ = p − 1[the source sentence entails claim i]

The program is in ``program.py``, the weights wᵢ are in ``weights.py``; both say where they depart
from the paper. ``view.py`` has the claims as the program sees them, and says why each
stays or goes. What is decided here:

- ``Entail`` means that entailment is the most probable of the three relations; a threshold on its
  probability is an option.
- The premise of document entailment is the source sentence as the decomposer saw it.
- Rel, the relevance factor of a weight, is judged on the source sentence; Rel = 0 means that the
  claim is never selected. Where Rel could not be judged, the claim is not selected either, and
  counts as failed beside the score.
- Claims with the same normalised text are one claim to the models and the program, asked for in
  the first of their spellings in the order of characters. It is coherent if a copy of it is.
- p, the share of selected claims that their sentences must entail, has no value in the paper; nor
  has ε. Both are in the signature, so that they are in every configuration and every result. Those
  of the authors' released code are in ``core_published.py``.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice, pairwise
from typing import Literal, Protocol

import numpy as np
import scipy

from eval.select.judgements import likelihoods, relations
from eval.select.view import View
from eval.select.weights import Bleached, BleachedClaims, capped, information
from eval.stages import EntailmentModel, Selection, UnliModel, entails
from records import Claim, Document, UserError

# The cap is asked of the first bleached claim, then of the next three, then of the others.
CAP_ROUNDS = (1, 4)
# Pairs of texts that one call asks for; a document of 1,000 claims has a million of them.
PAIRS_AT_ONCE = 65_536


class Relevance(Protocol):
    """Judges whether sentences say something about their document's topic (Rel)."""

    def __call__(
        self, documents: Sequence[Document], sentences: Sequence[Sequence[str]]
    ) -> list[Sequence[int | None]]:
        """1 (relevant) or 0 for each distinct source sentence of each document.

        ``None`` where that could not be judged.
        """


class Comparison(Protocol):
    """Says which claims of a document may entail each other (``eval/select/gate.py``)."""

    def pairs(self, texts: Sequence[str]) -> Iterable[tuple[int, int]]:
        """Places i < j of the distinct texts to compare, in order."""


class Core:
    """The selector stage: which subclaims of each document count.

    All model calls are batched over the documents of a call: one for document entailment, up to
    three for the cap, one for likelihoods, two for exclusion among the claims that can still be
    selected.

    Args:
        entailment: judges document entailment and exclusion, and the cap where ``cap`` does not.
        unli: judges p(claim | bleached claim); not needed with uniform weights.
        bleached: texts with {topic}, or the path of a file with one a line, e.g.
            eval/select/bleached/biographies.txt; domain to file, chosen by ``domain`` of a
            document; or a .json file of topics, each with its list. Not needed with uniform
            weights.
        weighting: uniform (wᵢ = 1), cpmi (w_Info) or capped (w_Info − ε, and −ε if entailed by a
            bleached claim).
        p: share of the selected claims that their source sentence must entail, in [0, 1].
        epsilon: ε of the capped weights in nats. Claims with w_Info ≤ ε go; and every claim that
            stays pays it, so that one claim beats two parts that are worth up to ε more together.
        entail_threshold: least probability of entailment; None: it must be the most probable
            relation.
        strict_eq1: keep claims of weight ≤ 0 in the program, as Eq. 1 is printed; uninformative
            claims can then buy budget for incoherent ones.
        floor: probabilities below it count as it, so that weights are finite.
        relevance: judges Rel of source sentences; None: all are relevant.
        cap: a model of its own for the cap, whose most probable relation decides; None:
            ``entailment`` and its threshold.
        gate: leaves out pairs of claims that have little in common; None compares all of them.
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
    ):
        if weighting not in ("uniform", "cpmi", "capped"):
            raise UserError(f"weighting: {weighting!r}; give uniform, cpmi or capped")
        if weighting != "uniform" and (unli is None or bleached is None):
            missing = "unli" if unli is None else "bleached"
            raise UserError(f"weighting: {weighting} needs {missing}; give it, or use uniform")
        if not 0 <= p <= 1:
            raise UserError(f"p: {p}; give a share in [0, 1]")
        if not 0 <= epsilon <= 50:
            raise UserError(f"epsilon: {epsilon}; give a number of nats in [0, 50]")
        if entail_threshold is not None and not 0 < entail_threshold <= 1:
            raise UserError(f"entail_threshold: {entail_threshold}; give a probability in (0, 1]")
        if not 1e-20 <= floor < 1:
            raise UserError(f"floor: {floor}; give a probability in [1e-20, 1)")
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

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]:
        """Select claims.

        Args:
            documents: the batch.
            claims: of each document, with the sentence they came from in ``source`` (without one
                the document's text is the premise).

        Returns:
            One selection a claim, in the claims' order.
        """
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
            own = [relevance[source] for source in view.sources]
            view.relevant = np.array([bool(rel) for rel in own], dtype=bool)
            view.unjudged = np.array([rel is None for rel in own], dtype=bool)

    def _judge_coherence(self, views: list[View]) -> None:
        """Fill in document entailment.

        A revised claim ("Ann Lee moved") is judged as it was before ("She moved"): its sentence
        does not say who moved.
        """
        support = [
            [
                (source, claim.original or view.spellings[node])
                for source, claim, node in zip(view.sources, view.claims, view.node, strict=True)
            ]
            for view in views
        ]
        known = relations(self.entailment, (pair for pairs in support for pair in pairs))
        for view, pairs in zip(views, support, strict=True):
            answers = np.array([known[pair] for pair in pairs]).reshape(-1, 3)
            view.support = np.clip(answers[:, 0], 0.0, 1.0)
            view.coherent = entails(answers, self.entail_threshold)

    def _judge_cap(self, views: list[View]) -> list[np.ndarray]:
        """Which texts of each view some bleached claim entails.

        One bleached claim is enough, so they are asked in rounds: a text that is entailed by an
        early one is not asked for again. Uninformative texts cost one or two pairs instead of one
        a bleached claim.
        """
        held = [np.zeros(len(view.texts), bool) for view in views]
        if self.weighting != "capped":
            return held
        model = self.entailment if self.cap is None else self.cap
        threshold = self.entail_threshold if self.cap is None else None
        open_texts = [
            (view, mine, int(node))
            for view, mine in zip(views, held, strict=True)
            for node in np.flatnonzero(view.any_copy(view.relevant))
        ]
        longest = max((len(view.bleached) for view in views), default=0)
        edges = [0, *(edge for edge in CAP_ROUNDS if edge < longest), longest]
        for start, end in pairwise(edges):
            asked = [view.bleached_pairs(node)[start:end] for view, _, node in open_texts]
            known = relations(model, (pair for pairs in asked for pair in pairs))
            for (_, mine, node), pairs in zip(open_texts, asked, strict=True):
                answers = np.array([known[pair] for pair in pairs]).reshape(-1, 3)
                mine[node] = entails(answers, threshold).any()
            open_texts = [item for item in open_texts if not item[1][item[2]]]
        return held

    def _weigh(self, views: list[View], capped_texts: list[np.ndarray]) -> None:
        in_race = [view.any_copy(view.relevant) for view in views]
        if self.weighting == "uniform":
            for view, relevant in zip(views, in_race, strict=True):
                view.weights = relevant.astype(float)
            return
        wanted = [
            pair
            for view, relevant, held in zip(views, in_race, capped_texts, strict=True)
            for node in np.flatnonzero(relevant & ~held)
            for pair in view.bleached_pairs(node)
        ]
        known = likelihoods(self.unli, wanted)
        for view, relevant, held in zip(views, in_race, capped_texts, strict=True):
            for node in np.flatnonzero(relevant):
                if held[node]:
                    view.weights[node] = capped(1.0, True, self.epsilon, self.floor)
                    continue
                likelihood = max(float(known[pair]) for pair in view.bleached_pairs(node))
                view.weights[node] = (
                    capped(likelihood, False, self.epsilon, self.floor)
                    if self.weighting == "capped"
                    else information(likelihood, self.floor)
                )

    def _in_race(self, view: View) -> np.ndarray:
        able = view.any_copy(view.coherent if self.p == 1 else view.relevant)
        return np.flatnonzero(able if self.strict_eq1 else able & (view.weights > 0))

    def _compared(self, views: list[View]) -> Iterator[tuple[int, int, int]]:
        """Which texts of the race are compared: the view's place and two nodes, the longer first.

        The longer of two texts is likelier to say what the other says.
        """
        for row, view in enumerate(views):
            race = self._in_race(view)
            if self.gate is None:
                pairs = combinations(range(len(race)), 2)
            else:
                pairs = self.gate.pairs([view.spellings[node] for node in race])
            for one, other in pairs:
                i, j = int(race[one]), int(race[other])
                shorter = len(view.spellings[i]) < len(view.spellings[j])
                yield (row, j, i) if shorter else (row, i, j)

    def _judge_exclusion(self, views: list[View]) -> None:
        """Fill in which texts exclude each other; of all pairs only the entailing ones are kept.

        One direction is enough: the other is asked for where the first does not entail.
        """
        compared = self._compared(views)
        entailing: list[list[tuple[int, int]]] = [[] for _ in views]
        while block := list(islice(compared, PAIRS_AT_ONCE)):
            held = self._entailed(views, block)
            open_block = [block[place] for place in np.flatnonzero(~held)]
            back = self._entailed(views, [(row, j, i) for row, i, j in open_block])
            found = [block[place] for place in np.flatnonzero(held)]
            for row, i, j in found + [open_block[place] for place in np.flatnonzero(back)]:
                entailing[row].append((i, j))
        for view, found in zip(views, entailing, strict=True):
            i, j = np.array(found, np.int64).reshape(-1, 2).T
            both = (np.append(i, j), np.append(j, i))
            view.exclusion = scipy.sparse.csr_array(
                (np.ones(2 * len(i), bool), both), shape=view.exclusion.shape
            )

    def _entailed(self, views: list[View], block: list[tuple[int, int, int]]) -> np.ndarray:
        pairs = [(views[row].spellings[i], views[row].spellings[j]) for row, i, j in block]
        known = relations(self.entailment, pairs)
        answers = np.array([known[pair] for pair in pairs]).reshape(-1, 3)
        return entails(answers, self.entail_threshold)

    def _select(self, view: View) -> list[Selection]:
        race = self._in_race(view)
        selected = np.zeros(len(view.texts), bool)
        from eval.select.program import solve  # scipy.sparse takes time to import

        selected[race] = solve(
            view.weights[race],
            view.exclusion[race][:, race],
            view.any_copy(view.coherent)[race],
            self.p,
            self.strict_eq1,
            [view.texts[node] for node in race],
        )
        return view.selections(selected)
