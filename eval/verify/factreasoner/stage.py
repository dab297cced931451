"""FactReasoner (2502.18573): posteriors of claims under relations with and between contexts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from eval.retrieve.dense import SentenceEncoder
from eval.stages import EntailmentModel
from eval.verify.claim_by_claim import RETRIEVAL_FAILED, premise
from eval.verify.factreasoner.graph import ContextFactors, Edge, Graph, build
from eval.verify.factreasoner.inference import Posterior, solve
from eval.verify.factreasoner.relations import Context, Pruning, ask, plan
from eval.verify.factreasoner.uai import write_graph
from records import Claim, Document, Passage, UserError, Verdict
from records.types import VerdictLabel

_ASSESSOR = "factreasoner"
# |P - 0.5| up to this is undecided.
_TOLERANCE = 1e-9
_DIGITS = 6


class FactReasoner:
    """Judge all claims of a document together, by a graphical model over claims and contexts.

    Each version gives verdicts of its own name, from one scoring of all pairs:

    - ``fr1``: a claim and the contexts that were retrieved for it; a graph a claim.
    - ``fr2``: all claims and all contexts of the document, each text once.
    - ``fr3``: the same with relations between contexts.

    With Core the selected claims are judged anew, among all contexts of the document: also those
    that were retrieved for a claim that is not selected.

    ``p`` is the posterior P(claim is true); above 0.5 the claim is supported, below contradicted,
    at 0.5 (up to 1e-9) undecided. The released code's labels are S above 0.5 and NS at or below it.

    A claim for which nothing was found keeps its prior in ``fr1``, and is undecided at 0.5 (there
    it is NS); in the others the other claims' contexts may tell. A claim whose retrieval failed, or
    all of whose pairs the model failed to judge, is ``failed``. A failed pair has no factor (there
    it is neutral).

    Verdicts carry what a graph is drawn from: ``relations`` ([{context, relation, p}]), ``pairs``
    and, where there are any, ``failed_pairs``. The first verdict of a graph carries
    ``context_posteriors`` ({id: p}) and, where there are any, ``context_relations`` ([{from, to,
    relation, p}]), ``failed_context_pairs``, ``claim_relations``, ``failed_claim_pairs``,
    ``skipped_pairs``, ``collapsed_contexts`` and, if not exact, ``inference``. ``evidence`` are the
    contexts with a relation to the claim, strongest first.

    Not of the paper but of its code since (version 0.8) are the gate of pairs and near duplicates
    by an ``encoder``; there thresholds are 0.2 and 0.92 of a MiniLM's cosines. What is not asked
    counts as neutral: two assessors in one experiment, with and without, tell what that loses.

    Args:
        entailment: the relation model. Its probabilities decide the factors, so that it should be
            calibrated; give it a cache where Core runs, which asks the same pairs again.
        versions: which of 1, 2 and 3; all where not given.
        atom_prior: P(claim is true) before anything is known.
        context_prior: P(context is true) where neither the passage nor its source has one.
        source_priors: the same for kinds of sources, by the passages' ``source``.
        passage_priors: take the passages' own ``prior`` where they have one, before the others.
        title_in_premise: put a passage's title before its text.
        context_factors: one factor a ``pair`` of contexts, from the answers to both directions, or
            one a ``direction`` (``graph.py`` says who has which). Of ``fr3``.
        atom_relations: relations between claims as well, one factor a pair. Of ``fr2`` and ``fr3``.
        skip_below: do not ask about pairs that share less than this share of the hypothesis' stems,
            weighted by rarity within the document, and that retrieval did not bring together; such
            pairs count as neutral. Not given, all pairs are asked.
        collapse_from: contexts are one where each has this share of the other's stems: the first,
            with the largest prior of them. Not given, only contexts of equal text are one.
        encoder: ``skip_below`` and ``collapse_from`` are of cosines of its vectors, not of stems.
        uai: a folder into which each graph is written as a UAI file for other solvers
            (:func:`eval.verify.factreasoner.uai.write_graph`).
        max_width: largest induced width for exact inference.
        approximate: the method beyond it; ``wmb``, weighted mini-buckets, is the paper's.
        i_bound: of the mini-buckets.
        seed: of the annealing.
    """

    def __init__(
        self,
        entailment: EntailmentModel,
        versions: list[Literal[1, 2, 3]] | None = None,
        atom_prior: float = 0.5,
        context_prior: float = 0.99,
        source_priors: dict[str, float] | None = None,
        passage_priors: bool = True,
        title_in_premise: bool = False,
        context_factors: ContextFactors = "pair",
        atom_relations: bool = False,
        skip_below: float | None = None,
        collapse_from: float | None = None,
        encoder: SentenceEncoder | None = None,
        uai: str | None = None,
        max_width: int = 14,
        approximate: Literal["annealed", "wmb"] = "annealed",
        i_bound: int = 6,
        seed: int = 0,
    ):
        versions = [1, 2, 3] if versions is None else versions
        if not versions or not set(versions) <= {1, 2, 3} or len(set(versions)) < len(versions):
            raise UserError(f"versions: {versions}; give one or more of 1, 2 and 3, each once")
        priors = {"atom_prior": atom_prior, "context_prior": context_prior}
        priors |= {f"source_priors.{name}": p for name, p in (source_priors or {}).items()}
        for name, p in priors.items():
            if not 0 <= p <= 1:
                raise UserError(f"{name}: {p}; give a probability")
        for name, least in (("skip_below", skip_below), ("collapse_from", collapse_from)):
            if least is not None and not 0 <= least <= 1:
                raise UserError(f"{name}: {least}; give a share between 0 and 1")
        if encoder is not None and skip_below is None and collapse_from is None:
            raise UserError("encoder: nothing is compared; give skip_below or collapse_from")
        if min(max_width, i_bound) < 1:
            raise UserError(f"max_width, i_bound: {max_width}, {i_bound}; give at least 1")
        self.entailment = entailment
        self.versions = versions
        self.atom_prior = atom_prior
        self.context_prior = context_prior
        self.source_priors = source_priors or {}
        self.passage_priors = passage_priors
        self.title_in_premise = title_in_premise
        self.context_factors = context_factors
        self.atom_relations = atom_relations
        self.prune = Pruning(skip_below, collapse_from, encoder)
        self.uai = uai
        self.max_width = max_width
        self.approximate = approximate
        self.i_bound = i_bound
        self.seed = seed
        self.judges_sets = versions != [1]

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        graphs = self.graphs(claims, passages)
        if self.uai is not None:
            for graph in graphs:
                write_graph(Path(self.uai), documents[graph.document].id, graph)
        posteriors = solve(
            [graph.network() for graph in graphs],
            i_bound=self.i_bound,
            max_width=self.max_width,
            approximate=self.approximate,
            seed=self.seed,
        )
        found = {}
        for graph, posterior in zip(graphs, posteriors, strict=True):
            for verdict in _verdicts(graph, posterior):
                found[graph.document, verdict.name, verdict.claim] = verdict
        return [
            [
                found.get((row, f"fr{version}", claim.id))
                or _failed(claim, version, RETRIEVAL_FAILED)
                for version in self.versions
                for claim in own
            ]
            for row, own in enumerate(claims)
        ]

    def graphs(
        self, claims: Sequence[Sequence[Claim]], passages: Sequence[Sequence[Passage]]
    ) -> list[Graph]:
        """The graphs of a batch; of ``fr1`` one a claim, else one a document.

        Variable i of a graph's network is claim i, after the claims come the contexts. Claims whose
        retrieval failed are in none.
        """
        plans = []
        for row, (own, texts) in enumerate(zip(claims, passages, strict=True)):
            usable = [claim for claim in own if claim.contexts is not None]
            contexts = [(self._context(text), _owners(text, usable)) for text in texts]
            for version in self.versions:
                if version == 1:
                    for claim in usable:
                        its = [both for both in contexts if claim.id in both[1]]
                        plans.append(plan(row, version, [claim], its, self.prune))
                elif usable:
                    once = _without_copies(contexts)
                    among = self.atom_relations
                    plans.append(plan(row, version, usable, once, self.prune, among))
        answers = ask(self.entailment, plans)
        return [build(own, answers, self.atom_prior, self.context_factors) for own in plans]

    def _context(self, passage: Passage) -> Context:
        prior = passage.prior if self.passage_priors else None
        if prior is None:
            prior = self.source_priors.get(passage.source or "", self.context_prior)
        return Context(passage.id, premise(passage, self.title_in_premise), prior)


def _owners(passage: Passage, claims: Sequence[Claim]) -> set[str]:
    return {claim.id for claim in claims if passage.id in (claim.contexts or [])}


def _without_copies(
    contexts: Sequence[tuple[Context, set[str]]],
) -> list[tuple[Context, set[str]]]:
    found: dict[str, tuple[Context, set[str]]] = {}
    for context, claims in contexts:
        text = " ".join(context.text.split())
        first, own = found.get(text, (context, set()))
        prior = max(first.prior, context.prior)
        found[text] = (first._replace(prior=prior), own | claims)
    return list(found.values())


def _verdicts(graph: Graph, posterior: Posterior) -> Iterator[Verdict]:
    of_graph = _of_graph(graph, posterior)
    for number, claim in enumerate(graph.claims):
        asked, failed = graph.asked[number], graph.failed[number]
        edges = sorted((e for e in graph.to_claims if e.target == number), key=lambda e: -e.p)
        more = {"pairs": asked} | ({"failed_pairs": failed} if failed else {}) | of_graph
        of_graph = {}
        if asked and failed == asked:
            reason = "no relation to a context could be judged"
            yield _failed(claim, graph.version, reason, more)
            continue
        p = float(min(max(posterior.p[number], 0.0), 1.0))
        yield Verdict(
            claim=claim.id,
            assessor=_ASSESSOR,
            name=f"fr{graph.version}",
            label=_label(p),
            p=p,
            evidence=[_name(graph, edge.source) for edge in edges],
            relations=[
                {"context": _name(graph, e.source), "relation": e.relation, "p": _short(e.p)}
                for e in edges
            ],
            **more,
        )


def _of_graph(graph: Graph, posterior: Posterior) -> dict:
    own = len(graph.claims)
    more: dict = {
        "context_posteriors": {
            context.id: _short(posterior.p[own + number])
            for number, context in enumerate(graph.contexts)
        }
    }
    if graph.between:
        more["context_relations"] = [_between(graph, edge) for edge in graph.between]
    if graph.among:
        more["claim_relations"] = [_between(graph, edge) for edge in graph.among]
    counts = {
        "failed_context_pairs": graph.failed_between,
        "failed_claim_pairs": graph.failed_among,
        "skipped_pairs": graph.skipped,
        "collapsed_contexts": graph.collapsed,
    }
    more |= {name: count for name, count in counts.items() if count}
    if posterior.method != "exact":
        more["inference"] = posterior.method
    return more


def _between(graph: Graph, edge: Edge) -> dict:
    ends = {"from": _name(graph, edge.source), "to": _name(graph, edge.target)}
    return ends | {"relation": edge.relation, "p": _short(edge.p)}


def _name(graph: Graph, variable: int) -> str:
    return graph.names()[variable]


def _label(p: float) -> VerdictLabel:
    if abs(p - 0.5) <= _TOLERANCE:
        return "undecided"
    return "supported" if p > 0.5 else "contradicted"


def _short(p: float) -> float:
    return round(float(p), _DIGITS)


def _failed(claim: Claim, version: int, reason: str, more: dict | None = None) -> Verdict:
    return Verdict(
        claim=claim.id,
        assessor=_ASSESSOR,
        name=f"fr{version}",
        label="failed",
        reason=reason,
        **(more or {}),
    )
