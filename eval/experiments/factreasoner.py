"""FactReasoner against other assessors on the same claims and evidence (2502.18573, Tables 3–27).

Every set of documents goes through the same decomposition and retrieval, and all assessors judge
the same claims by the same passages. For each set and source of evidence there is a table of the
assessors (Tables 3, 5–7, 9–19): numbers of supported, contradicted and undecided claims, Pr, R@K,
F1@K and the E-measure, against labels F1 of the class supported and MAE, each as mean ± standard
deviation; and one-sided paired t-tests between assessors (Tables 4, 20–27), Holm-corrected beside.
``relations`` swaps the relation model (Table 8).

In ``results.json`` a result's ``domain`` is the set, its ``group`` the source of evidence, and its
``kind`` the assessor. There is no length penalty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from html import unescape
from pathlib import Path

from eval.experiments.factreasoner_values import values_of
from eval.metrics.corpus import expected_claims
from eval.pipeline import Pipeline, Scored
from eval.report.factreasoner import markdown, write_tables
from eval.run.inside import identities, prompts
from eval.run.journal import keep_answers, resumably, usage
from eval.run.provenance import config_hash, inputs, provenance
from eval.stages import Decomposer, EntailmentModel, Retriever, Reviser, Verifier
from records import (
    Claim,
    Document,
    Passage,
    Result,
    ResultFile,
    UserError,
    Verdict,
    read_records,
    sha256_text,
    write_jsonl,
    write_results,
)

# Pairs of a document are many: a kill loses little.
CHUNK = 16
GIVEN = "given"


class Named:
    """A verifier under a name of the run's own, so that one class may stand in it several times.

    Args:
        name: the ``assessor`` of its verdicts.
        verifier: gives them.
    """

    def __init__(self, name: str, verifier: Verifier):
        self.name = name
        self.verifier = verifier
        self.judges_sets = verifier.judges_sets

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """The verifier's verdicts."""
        found = self.verifier(documents, claims, passages)
        return [[v.model_copy(update={"assessor": self.name}) for v in own] for own in found]


class FactReasoner:
    """The experiment.

    Args:
        documents: name of a set to its file: ours, FactReasoner's own (``atoms``, ``contexts``), or
            any other that ``score`` reads.
        assessors: name to verifier, e.g. eval.verify.factreasoner.stage.FactReasoner,
            eval.verify.factscore.FActScore, eval.verify.majority.Majority,
            eval.verify.whole_response.WholeResponse.
        decompose: texts to claims; the documents' own claims, with their labels, by
            eval.decompose.given.Given.
        revise: claims to claims that stand alone; without it they stay as they are.
        retrieve: name to source of evidence, each of which has tables of its own; without any the
            documents' own passages are used. The paper has ``k: 3`` for Wikipedia and 5 for web
            search, and eval.retrieve.cut.Cut around each for at most 4,000 characters a page.
        relations: name to relation model. Assessors with an ``entailment`` judge once with each of
            them in its place, and are called "assessor (relation model)"; none leaves them their
            own.
        challengers: names of assessors that are tested to be better than all others; by default
            every assessor is tested against every other.
        k: K of recall@K and F1@K; by default each set's median number of claims.
        seed: of the bootstrap.

    Raises:
        UserError: no set or assessor, a challenger that is none, or ``k`` below 1.
    """

    def __init__(
        self,
        documents: dict[str, str],
        assessors: dict[str, Verifier],
        decompose: Decomposer,
        revise: Reviser | None = None,
        retrieve: dict[str, Retriever] = {},  # noqa: B006 (jsonargparse shows it in --help)
        relations: dict[str, EntailmentModel] = {},  # noqa: B006
        challengers: list[str] = [],  # noqa: B006
        k: int | None = None,
        seed: int = 0,
    ):
        for name, given in (("documents", documents), ("assessors", assessors)):
            if not given:
                raise UserError(f"{name}: none; give at least one")
        for name in challengers:
            if name not in assessors:
                raise UserError(f"challengers: {name!r} is no assessor ({', '.join(assessors)})")
        if k is not None and k < 1:
            raise UserError(f"k: {k}; give at least 1")
        self.documents = documents
        self.assessors = assessors
        self.decompose = decompose
        self.revise = revise
        self.retrieve = retrieve
        self.relations = relations
        self.challengers = challengers
        self.k = k
        self.seed = seed

    def run(self, output: Path, config: dict) -> ResultFile:
        """Run, resuming what a killed run left in ``output``.

        Writes ``results.json``, ``scored.jsonl`` (every document of every set, with its verdicts)
        and the tables, ``tables.md`` and ``tables.csv``.
        """
        digests = inputs(config)
        asked = prompts(self)
        key = config_hash([config, asked], digests)
        keep_answers(self, output)
        variants = list(self._variants())
        verify = [Named(name, verifier) for _, name, verifier in variants]
        challengers = [name for own, name, _ in variants if own in self.challengers]
        results, rows, ks, journals = [], [], {}, []
        for domain, path in self.documents.items():
            documents = read_records(path, Document)
            for group, retrieve in (self.retrieve or {GIVEN: None}).items():
                place = sha256_text(f"{domain}\n{group}")[:12]
                journals.append(output / f".{place}.{key[:16]}.partial.jsonl")
                pipeline = Pipeline(self.decompose, verify, retrieve, revise=self.revise, gamma=0)
                scored = self._resumably(pipeline, documents, journals[-1])
                k = ks[domain if group == GIVEN else f"{domain}, {group}"] = (
                    self.k or expected_claims(scored)
                )
                shared = {"domain": domain, "group": group, "selection": "none"}
                shared |= {"generator": _generator(documents), "config_hash": key}
                found = values_of(scored, k, challengers, self.seed)
                results += [Result(**row, **shared) for row in found]
                names = {"set": domain, "evidence": group}
                rows += [names | one.model_dump(mode="json", exclude_none=True) for one in scored]
        write_jsonl(output / "scored.jsonl", rows)
        file = ResultFile(
            experiment="factreasoner",
            provenance=provenance(config, digests)
            | {"k": ks, "prompts": asked, "models": identities(self)}
            | {"usage": usage(self, *journals)},
            results=results,
        )
        write_results(output / "results.json", file)
        write_tables(output)
        for journal in journals:
            journal.unlink()
        return file

    def _resumably(
        self, pipeline: Pipeline, documents: Sequence[Document], journal: Path
    ) -> list[Scored]:
        rows = resumably(self, pipeline.score, documents, journal, CHUNK)
        return [Scored.model_validate(row) for row in rows]

    def _variants(self) -> Iterator[tuple[str, str, Verifier]]:
        """The assessors, once with each relation model where they have one.

        Each with its own name and the name that it has in the run.
        """
        for name, verifier in self.assessors.items():
            if not self.relations or not hasattr(verifier, "entailment"):
                yield name, name, verifier
                continue
            for relation, model in self.relations.items():
                twin = copy(verifier)
                twin.entailment = model
                yield name, f"{name} ({relation})", twin


def _generator(documents: Sequence[Document]) -> str:
    """Who wrote the texts, if they all have one writer."""
    found = Counter(document.generator or "given" for document in documents)
    return next(iter(found)) if len(found) == 1 else "several"


def tables(file: ResultFile) -> str:
    """The tables for the terminal."""
    return unescape(markdown(file))
