"""FactReasoner (2502.18573): posteriors of claims under relations with and between contexts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from eval.retrieve.dense import SentenceEncoder
from eval.stages import EntailmentModel
from eval.verify.claim_by_claim import RETRIEVAL_FAILED, premise
from eval.verify.factreasoner.graph import ContextFactors, Graph, build
from eval.verify.factreasoner.inference import Posterior, solve
from eval.verify.factreasoner.relations import Context, ask, plan
from eval.verify.factreasoner.uai import write_graph
from records import Claim, Document, Passage, UserError, Verdict
from records.types import VerdictLabel

_ASSESSOR = "factreasoner"
# |P - 0.5| up to this is undecided.
_TOLERANCE = 1e-9
_DIGITS = 6


@dataclass(eq=False)
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
    relation, p}]), ``failed_context_pairs``, ``skipped_pairs`` and, if not exact, ``inference``.
    ``evidence`` are the contexts with a relation to the claim, strongest first.

    ``skip_below`` is not of the paper but of its code since (version 0.8), there 0.2 of a MiniLM's
    cosines. What is not asked counts as neutral: two assessors in one experiment, with and without,
    tell what that loses.

    Args:
        entailment: the relation model. Its probabilities decide the factors, so that it should be
            calibrated; give it a cache where Core runs, which asks the same pairs again.
        versions: which of 1, 2 and 3.
        atom_prior: P(claim is true) before anything is known.
        context_prior: P(context is true) where the passage has none.
        passage_priors: take the passages' own ``prior`` where they have one.
        title_in_premise: put a passage's title before its text.
        context_factors: one factor a ``pair`` of contexts, from the answers to both directions, or
            one a ``direction`` (``graph.py`` says who has which). Of ``fr3``.
        skip_below: do not ask about pairs that share less than this share of the hypothesis' stems,
            weighted by rarity within the document, and that retrieval did not bring together; such
            pairs count as neutral. Not given, all pairs are asked.
        encoder: ``skip_below`` is of cosines of its vectors, not of stems.
        uai: a folder into which each graph is written as a UAI file for other solvers
            (:func:`eval.verify.factreasoner.uai.write_graph`).
        max_width: largest induced width for exact inference.
        approximate: the method beyond it; ``wmb``, weighted mini-buckets, is the paper's.
        i_bound: of the mini-buckets.
        seed: of the annealing.
    """

    entailment: EntailmentModel
    versions: list[Literal[1, 2, 3]] = field(default_factory=lambda: [1, 2, 3])
    atom_prior: ClosedUnitInterval = 0.5
    context_prior: ClosedUnitInterval = 0.99
    passage_priors: bool = True
    title_in_premise: bool = False
    context_factors: ContextFactors = "pair"
    skip_below: ClosedUnitInterval | None = None
    encoder: SentenceEncoder | None = None
    uai: str | None = None
    max_width: PositiveInt = 14
    approximate: Literal["annealed", "wmb"] = "annealed"
    i_bound: PositiveInt = 6
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.versions or len(set(self.versions)) < len(self.versions):
            raise UserError(f"versions: {self.versions}; give 1, 2 and 3, or some, each once")
        self.judges_sets = self.versions != [1]

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        graphs = self.graphs(claims, passages)
        if self.uai is not None:
            for graph in graphs:
                write_graph(Path(self.uai), documents[graph.plan.document].id, graph)
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
                found[graph.plan.document, verdict.name, verdict.claim] = verdict
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
                        plans.append(plan(row, version, [claim], its))
                elif usable:
                    once = _without_copies(contexts)
                    plans.append(plan(row, version, usable, once, self.skip_below, self.encoder))
        answers = ask(self.entailment, plans)
        return [build(own, answers, self.atom_prior, self.context_factors) for own in plans]

    def _context(self, passage: Passage) -> Context:
        prior = passage.prior if self.passage_priors else None
        prior = self.context_prior if prior is None else prior
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
    names, version = graph.names(), graph.plan.version
    of_graph = _of_graph(graph, posterior, names)
    for number, claim in enumerate(graph.plan.claims):
        asked, failed = graph.asked[number], graph.failed[number]
        edges = sorted((e for e in graph.to_claims if e.target == number), key=lambda e: -e.p)
        more = {"pairs": asked} | ({"failed_pairs": failed} if failed else {}) | of_graph
        of_graph = {}
        if asked and failed == asked:
            yield _failed(claim, version, "no relation to a context could be judged", more)
            continue
        p = float(posterior.p[number])
        label: VerdictLabel = "supported" if p > 0.5 else "contradicted"
        yield Verdict(
            claim=claim.id,
            assessor=_ASSESSOR,
            name=f"fr{version}",
            label="undecided" if abs(p - 0.5) <= _TOLERANCE else label,
            p=p,
            evidence=[names[edge.source] for edge in edges],
            relations=[
                {"context": names[e.source], "relation": e.relation, "p": _short(e.p)}
                for e in edges
            ],
            **more,
        )


def _of_graph(graph: Graph, posterior: Posterior, names: Sequence[str]) -> dict:
    own = len(graph.plan.claims)
    posteriors = zip(names[own:], posterior.p[own:], strict=True)
    more: dict = {"context_posteriors": {name: _short(p) for name, p in posteriors}}
    if graph.between:
        more["context_relations"] = [
            {
                "from": names[edge.source],
                "to": names[edge.target],
                "relation": edge.relation,
                "p": _short(edge.p),
            }
            for edge in graph.between
        ]
    counts = {
        "failed_context_pairs": graph.failed_between,
        "skipped_pairs": graph.plan.skipped,
    }
    more |= {name: count for name, count in counts.items() if count}
    return more if posterior.method == "exact" else more | {"inference": posterior.method}


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
