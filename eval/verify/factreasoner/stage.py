"""FactReasoner (2502.18573): posteriors of claims under relations with and between contexts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from eval.models.sentence_encoder import SentenceEncoder
from eval.stages import EntailmentModel, no_answer
from eval.verify.claim_by_claim import RETRIEVAL_FAILED, premise
from eval.verify.factreasoner.graph import ContextFactors, Graph, build_graph
from eval.verify.factreasoner.inference import Posterior, solve
from eval.verify.factreasoner.relations import Context, plan_pairs, query_relations
from records import Claim, Document, Passage, UserError, Verdict
from records.types import VerdictLabel

_ASSESSOR = "factreasoner"
_NO_RELATION = "no relation to a context could be judged"
# Maximum |P - 0.5| of undecided claims.
_TOLERANCE = 1e-9
_DIGITS = 6


@dataclass(eq=False)
class FactReasoner:
    """Judge all claims of a document together, by a graphical model over claims and contexts.

    Each version has separately named verdicts, computed from the same relations:

    - ``fr1``: one graph per claim, with the contexts retrieved for it.
    - ``fr2``: all claims and all contexts of the document, without duplicate texts.
    - ``fr3``: the same with relations between contexts.

    ``p`` is the posterior P(claim is true). The claim is supported above 0.5, contradicted below,
    and undecided at 0.5 (tolerance 1e-9). The released code labels S above 0.5, otherwise NS.

    A claim without contexts keeps its prior in ``fr1`` and is undecided at 0.5 (released: NS); in
    ``fr2`` and ``fr3`` contexts of other claims may decide it. A claim is ``failed`` if its
    retrieval failed or the model failed on all of its pairs. A failed pair has no factor (released:
    neutral).

    Verdicts have ``relations`` ([{context, relation, p}]), ``pairs`` and ``failed_pairs``. The
    first verdict of a graph also has ``context_posteriors`` ({id: p}), ``context_relations``
    ([{from, to, relation, p}]), ``failed_context_pairs``, ``skipped_pairs`` and, if not exact,
    ``inference``. ``evidence`` has the contexts with a relation to the claim, strongest first.

    Args:
        entailment: the relation model; it should be calibrated, since its probabilities are the
            factors. Set its cache if Core is used, which judges the same pairs again.
        versions: any of 1, 2 and 3.
        atom_prior: prior P(claim is true).
        context_prior: prior P(context is true) of passages without a ``prior``.
        passage_priors: use the passages' ``prior`` if present.
        title_in_premise: prepend a passage's title to its text.
        context_factors: one factor per ``pair`` of contexts, merged from both directions (released
            code), or one per ``direction`` (paper). For ``fr3``.
        skip_below: skip pairs that share less than this share of the hypothesis' stems, weighted by
            rarity in the document, unless retrieval paired them; skipped pairs are neutral. Not of
            the paper, but of version 0.8 of the released code (0.2, cosines of a MiniLM).
        encoder: use cosines of its vectors for ``skip_below`` instead of stems.
        keep_unlikely: keep a relation whose probability is the largest but at most 1/2 (published
            argmax); by default it is neutral.
        max_width: maximum induced width for exact inference.
        approximate: method above ``max_width``; ``wmb``, weighted mini-buckets, is the paper's.
        i_bound: i-bound of the mini-buckets.
        seed: seed of the annealing.
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
    keep_unlikely: bool = False
    max_width: PositiveInt = 14
    approximate: Literal["annealed", "wmb"] = "annealed"
    i_bound: PositiveInt = 6
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.versions or len(set(self.versions)) < len(self.versions):
            raise UserError(f"versions: expected distinct values of 1 to 3, got {self.versions}")
        self.judges_sets = self.versions != [1]

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        graphs = self.graphs(claims, passages)
        posteriors = solve(
            [graph.network() for graph in graphs],
            i_bound=self.i_bound,
            max_width=self.max_width,
            approximate=self.approximate,
            seed=self.seed,
        )
        verdicts = {}
        reason = no_answer(self.entailment, _NO_RELATION)
        for graph, posterior in zip(graphs, posteriors, strict=True):
            for verdict in _verdicts(graph, posterior, reason):
                verdicts[graph.plan.document, verdict.name, verdict.claim] = verdict
        return [
            [
                verdicts.get((row, f"fr{version}", claim.id))
                or _failed(claim, version, RETRIEVAL_FAILED)
                for version in self.versions
                for claim in listed
            ]
            for row, listed in enumerate(claims)
        ]

    def graphs(
        self, claims: Sequence[Sequence[Claim]], passages: Sequence[Sequence[Passage]]
    ) -> list[Graph]:
        """Build the graphs of a batch, without claims whose retrieval failed."""
        plans = []
        for row, (listed, texts) in enumerate(zip(claims, passages, strict=True)):
            usable = [claim for claim in listed if claim.contexts is not None]
            contexts = [(self._context(text), _owners(text, usable)) for text in texts]
            for version in self.versions:
                if version == 1:
                    for claim in usable:
                        retrieved = [pair for pair in contexts if claim.id in pair[1]]
                        plans.append(plan_pairs(row, version, [claim], retrieved))
                elif usable:
                    kept = _merge_copies(contexts)
                    plans.append(
                        plan_pairs(row, version, usable, kept, self.skip_below, self.encoder)
                    )
        answers = query_relations(self.entailment, plans, self.keep_unlikely)
        return [build_graph(plan, answers, self.atom_prior, self.context_factors) for plan in plans]

    def _context(self, passage: Passage) -> Context:
        prior = passage.prior if self.passage_priors else None
        prior = self.context_prior if prior is None else prior
        return Context(passage.id, premise(passage, self.title_in_premise), prior)


def _owners(passage: Passage, claims: Sequence[Claim]) -> set[str]:
    return {claim.id for claim in claims if passage.id in (claim.contexts or [])}


def _merge_copies(contexts: Sequence[tuple[Context, set[str]]]) -> list[tuple[Context, set[str]]]:
    unique: dict[str, tuple[Context, set[str]]] = {}
    for context, claim_ids in contexts:
        text = " ".join(context.text.split())
        first, owners = unique.get(text, (context, set()))
        prior = max(first.prior, context.prior)
        unique[text] = (first._replace(prior=prior), owners | claim_ids)
    return list(unique.values())


def _verdicts(graph: Graph, posterior: Posterior, reason: str) -> Iterator[Verdict]:
    names, version = graph.names(), graph.plan.version
    graph_fields = _graph_fields(graph, posterior, names)
    for number, claim in enumerate(graph.plan.claims):
        pairs, failed = graph.pair_counts[number], graph.failed_counts[number]
        edges = sorted((e for e in graph.to_claims if e.target == number), key=lambda e: -e.p)
        fields = {"pairs": pairs} | ({"failed_pairs": failed} if failed else {}) | graph_fields
        graph_fields = {}
        if pairs and failed == pairs:
            yield _failed(claim, version, reason, fields)
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
                {"context": names[e.source], "relation": e.relation, "p": round(e.p, _DIGITS)}
                for e in edges
            ],
            **fields,
        )


def _graph_fields(graph: Graph, posterior: Posterior, names: Sequence[str]) -> dict:
    n = len(graph.plan.claims)
    posteriors = zip(names[n:], posterior.p[n:], strict=True)
    fields: dict = {
        "context_posteriors": {name: round(float(p), _DIGITS) for name, p in posteriors}
    }
    if graph.between:
        fields["context_relations"] = [
            {
                "from": names[edge.source],
                "to": names[edge.target],
                "relation": edge.relation,
                "p": round(edge.p, _DIGITS),
            }
            for edge in graph.between
        ]
    counts = {"failed_context_pairs": graph.failed_between, "skipped_pairs": graph.plan.skipped}
    fields |= {name: count for name, count in counts.items() if count}
    return fields if posterior.method == "exact" else fields | {"inference": posterior.method}


def _failed(claim: Claim, version: int, reason: str, fields: dict | None = None) -> Verdict:
    names = {"claim": claim.id, "assessor": _ASSESSOR, "name": f"fr{version}"}
    return Verdict(**names, label="failed", reason=reason, **(fields or {}))
