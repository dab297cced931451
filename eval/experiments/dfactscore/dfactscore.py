"""Do biographies merge people who share a name? (Merging Facts, Crafting Fallacies, 2402.05629.)

Biographies of several generators are scored by FActScore and by D-FActScore in one run on the same
claims: with the numbers of biographies and of entities, the share that responds, citation recall
and precision (Tables 3, 4 and 6: generators, or prompts, side by side), the types of output
(section 2.4), and, where page views are given, whether a generator tells of the most-viewed person
(section 5.3). Where a file brings its authors' verdicts (AmbigBio's) or people judged the texts,
their values stand beside and how far both agree; without a verifier they stand alone, and no model
is needed.

FActScore and D-FActScore are without length penalty, as the paper reports them but for one cell;
those with it are in the results as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pydantic import BaseModel

from eval.experiments.dfactscore.files import Files, read_texts, reported
from eval.experiments.dfactscore.page import DFActScorePage
from eval.experiments.dfactscore.texts import JudgedText, from_file, from_pipeline
from eval.experiments.dfactscore.values import values_of
from eval.experiments.dfactscore.views import Views
from eval.experiments.experiment import (
    Experiment,
    Found,
    at_least_one,
    drawn,
    natural,
)
from eval.metrics.citations import Citations, CitedSentence
from eval.metrics.document import Scored
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.stages import Decomposer, Retriever, Reviser, Verifier
from records import Document, UserError, read_records
from records.abstention import responds


class Judged(BaseModel):
    """A text with all that was found out about it; ``citations`` is null without a judge."""

    scored: Scored
    citations: list[CitedSentence] | None


class DFActScore(Experiment):
    """The experiment.

    Args:
        documents: generator (or prompt) to its file of texts, or to several files about the same
            texts (ALCE's generations, D-FActScore's output, ALCE's scores); or files whose records
            name their ``generator`` themselves. AmbigBio's files, our builder's, or any documents.
        decompose: texts to claims; ``eval.decompose.given.Given`` takes those of the file. Null,
            with ``verify``: nothing is judged, the verdicts of the files and of people are shown.
        verify: the D-FActScore verifier; its verdicts are ``independent`` and ``grouped``.
        retrieve: finds the people's passages; without it the documents' own are used.
        revise: claims to claims that stand alone.
        citations: judges citations; null leaves them out.
        people: files of people's judgements, as ``data_builders dfactscore_labels`` writes them
            for a project of the same ``documents``.
        views: page views: rows of ``title`` and ``views``, or the ``names.jsonl`` of
            ``data_builders ambigbio --views``; null leaves them out.
        names: at most this many names (topics), drawn at random; 0 for all.
        domain: named in the results.
        seed: of the draw and of the bootstrap.
    """

    name = "dfactscore"
    page = DFActScorePage

    def __init__(
        self,
        documents: Files,
        decompose: Decomposer | None = None,
        verify: Verifier | None = None,
        retrieve: Retriever | None = None,
        revise: Reviser | None = None,
        citations: Citations | None = None,
        people: list[str] = [],  # noqa: B006 (jsonargparse shows it in --help)
        views: str | None = None,
        names: int = 0,
        domain: str = "biographies",
        seed: int = 0,
    ):
        at_least_one(documents=documents)
        natural(names=names)
        if (decompose is None) != (verify is None):
            raise UserError("decompose, verify: give both, or neither for the files' own verdicts")
        if verify is None and (retrieve or revise or citations or views):
            raise UserError(
                "retrieve, revise, citations, views: need a verifier; give decompose and verify "
                "as well"
            )
        self.documents = documents
        self.pipeline = (
            Pipeline(decompose, [verify], retrieve, revise=revise, gamma=0)
            if decompose is not None and verify is not None
            else None
        )
        self.citations = citations
        self.people = people
        self.views = views
        self.names = names
        self.domain = domain
        self.seed = seed

    def measure(self, run: Run) -> Found:
        """Judge every text; beside the results ``texts.jsonl``, every text by every source."""
        views = Views(self.views) if self.views else None
        every = read_texts(self.documents)
        topics = drawn((document.topic for document in every), self.names, Random(self.seed))
        documents = [document for document in every if document.topic in topics]
        judgements = self._judgements(every, documents)
        judged = run.documents("texts", self._judge, documents, Judged) if self.pipeline else []
        texts = [from_pipeline(one.scored, one.citations) for one in judged]
        texts += [*filter(None, map(from_file, documents)), *judgements]
        if not texts:
            raise UserError("documents: no file has verdicts; give decompose and verify")
        names = {verdict.name for one in judged for verdict in one.scored.verdicts}
        if names and "grouped" not in names:
            raise UserError(
                "verify: no verdict named `grouped`; give eval.verify.dfactscore.stage.DFActScore"
            )
        heads = reported(self.documents)
        return Found(
            values_of(texts, views, self.seed),
            {"texts.jsonl": texts},
            {"reported": heads} if heads else {},
        )

    def _judgements(self, every: Sequence[Document], drawn: Sequence[Document]) -> list[JudgedText]:
        known = {document.id for document in every}
        wanted = {document.id for document in drawn}
        found: dict[str, JudgedText] = {}
        for path in self.people:
            for text in read_records(path, JudgedText):
                if text.id not in known:
                    raise UserError(
                        f"{path}: text {text.id!r} is none of the documents; give the same "
                        "`documents` as dfactscore_project had"
                    )
                if text.id in found:
                    raise UserError(f"{path}: text {text.id!r} is judged twice; keep one row")
                found[text.id] = text
        return [text for text in found.values() if text.id in wanted]

    def _judge(self, documents: Sequence[Document]) -> list[Judged]:
        answers = [document for document in documents if responds(document)]
        scored = {one.document.id: one for one in self.pipeline.score(answers)}
        none = {"claims": [], "selections": [], "passages": [], "verdicts": [], "scores": []}
        cited = self.citations(documents) if self.citations else [None] * len(documents)
        return [
            Judged(scored=scored.get(d.id) or Scored(document=d, **none), citations=own)
            for d, own in zip(documents, cited, strict=True)
        ]
