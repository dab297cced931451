"""How many calls, tokens and pairs a run would take, without asking any model or server.

Each stage runs with models that only count, and with stand-ins for what would have come before it:
subclaims for the sentences of a text, passages for its claims. The figures are therefore estimates,
and those of methods that ask in several steps an upper bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from typing import Any, NamedTuple, Protocol, TypeVar

from components.sentences import split_sentences, without_citations
from eval.models.chat import CHARACTERS_A_TOKEN, CachedWriter
from eval.pipeline import Once, Pipeline, kept_of
from eval.retrieve.bm25 import BM25
from eval.retrieve.cut import Cut, InSentences
from eval.retrieve.given import Given as GivenPassages
from eval.retrieve.knowledge import WORDS
from eval.retrieve.links import PagesOfLinks
from eval.retrieve.pages import PageRetriever
from eval.retrieve.search import SearchRetriever
from eval.retrieve.titles import PagesOfTitles
from eval.retrieve.trusted import Trusted
from eval.retrieve.wikipedia_search import WikipediaSearch
from eval.run.held import held, writers
from eval.run.terminal import model_name
from eval.select.core import Core
from eval.stages import AsksInSteps, Retriever, Selector, Verifier
from eval.verify.factreasoner.stage import FactReasoner
from records import Claim, Document, Passage, UserError

T = TypeVar("T")

# Human annotators found 3.9 facts in a sentence of FActScore's labelled biographies (n = 2,748).
CLAIMS_A_SENTENCE = 4
# Of passages where the retriever does not say.
PASSAGES_A_CLAIM = 5
WORDS_A_PASSAGE = 100
# Of the beginning of a page: 4,000 characters of stand-ins, where FactReasoner cuts.
WORDS_A_PAGE = 1000


class Judging(Protocol):
    """Metrics and defences on the same texts (``eval.experiments.experiment.Plan`` is one).

    Attributes:
        pipelines: name to metric.
        selectors: name to defence; all select from the claims of each metric.
        documents: the texts that are still to be judged.
        shared: metric to a function of a stage, and of a verifier's place, that gives the same for
            stages that run once.
    """

    pipelines: Mapping[str, Pipeline]
    selectors: Mapping[str, Selector]
    documents: Sequence[Document]

    def shared(self, metric: str) -> Callable[..., Hashable]: ...


class _Row(NamedTuple):
    """What a stage would ask one model, as a row of the table; ``cost`` is 0 without prices."""

    stage: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


class _Pairs(NamedTuple):
    """The pairs that a stage would ask of one encoder, and those that its cache answers."""

    stage: str
    model: str
    pairs: int
    known: int


def dry_run(pipeline: Pipeline, documents: Sequence[Document]) -> str:
    """A table of the calls, tokens and pairs that scoring ``documents`` would take."""
    selectors = {} if pipeline.select is None else {"select": pipeline.select}
    count = _Count(selectors, documents)
    count.metric("", pipeline, lambda stage, number=None: (stage, number))
    return count.table()


def dry_run_of(judging: Judging) -> str:
    """The same of several metrics and defences that share their stages."""
    count = _Count(judging.selectors, judging.documents)
    for name, pipeline in judging.pipelines.items():
        count.metric(f"{name}: ", pipeline, judging.shared(name))
    return count.table()


class _Count:
    """Counts stage by stage; a stage that several metrics share is counted with the first."""

    def __init__(self, selectors: Mapping[str, Selector], documents: Sequence[Document]):
        self.selectors = selectors
        self.documents = documents
        self.rows: list[_Row] = []
        self.pairs: list[_Pairs] = []
        self.unknown: list[str] = []  # stages whose models cannot be counted
        self.claims: dict[str, int] = {}
        self._asked: set[bytes] = set()
        self._once = Once()

    def metric(self, name: str, pipeline: Pipeline, key: Callable[..., Hashable]) -> None:
        texts = (key("decompose"), key("revise"))
        place = (*texts, key("retrieve"))
        claims = self._once(("claims", *texts), lambda: self._claims(name, pipeline))
        selections = {
            defence: self._once(
                ("select", defence, *texts),
                lambda d=defence, s=select: self._select(f"{name}{d}", s, claims),
            )
            for defence, select in self.selectors.items()
        }
        claims, passages = self._once(
            ("retrieve", *place), lambda c=claims: _evidence(pipeline, self.documents, c)
        )
        for number, verifier in enumerate(pipeline.verify):
            own = ("verify", key("verify", number), *place)
            stage, verifier = f"{name}{type(verifier).__name__}", _unwritten(verifier)

            def judge(some: list[list[Claim]], said: str, v=verifier) -> None:
                if _models(v):
                    self._counted(v, said, lambda: v(self.documents, some, passages))

            self._once(own, lambda j=judge, s=stage: j(claims, s))
            for defence in selections if verifier.judges_sets else ():
                kept = claims
                if selections[defence] is not None:
                    kept = kept_of(claims, selections[defence])
                said = f"{stage}, {defence}"
                self._once((*own, defence), lambda j=judge, k=kept, s=said: j(k, s))

    def table(self) -> str:
        parts = [_calls(self.rows, bool(self.pairs))] if self.rows or not self.pairs else []
        parts += [_encoders(self.pairs)] if self.pairs else []
        if self.unknown:
            parts.append(f"Not known before the run: {', '.join(self.unknown)}.")
        claims = [f"{count:,}" + f" ({name})" * bool(name) for name, count in self.claims.items()]
        parts.append(
            f"{len(self.documents)} documents, about {' and '.join(claims)} claims "
            f"({CLAIMS_A_SENTENCE} a sentence where a model decomposes). Calls that a cache "
            f"answers are left out; prompt tokens are characters / {CHARACTERS_A_TOKEN}, new "
            "tokens the most there can be, and methods of several steps count with all steps."
        )
        return "\n".join(parts)

    def _claims(self, name: str, pipeline: Pipeline) -> list[list[Claim]]:
        decompose, revise = pipeline.decompose, pipeline.revise
        found = self._counted(decompose, f"{name}decompose", lambda: decompose(self.documents))
        claims = [_stand_ins(own) for own in found or [[] for _ in self.documents]]
        # Stages without a model cost nothing, and need not run.
        if revise is not None and _models(revise):
            self._counted(revise, f"{name}revise", lambda: revise(self.documents, claims))
        self.claims[name.removesuffix(": ")] = sum(map(len, claims))
        return claims

    def _select(self, stage: str, select: Selector, claims: list[list[Claim]]) -> list | None:
        if isinstance(select, Core) and select.relevance is not None:
            relevance, select = select.relevance, copy(select)
            select.relevance = None
            sentences = [split_sentences(without_citations(d.text)) for d in self.documents]
            run = lambda: relevance(self.documents, sentences)  # noqa: E731
            name = "relevance" if stage == "select" else f"{stage} relevance"
            self._counted(relevance, name, run)
        if not _models(select):
            return None
        try:
            return self._counted(select, stage, lambda: select(self.documents, claims))
        except UserError:  # a prompted model, of which every answer fails here
            return None

    def _counted(self, stage: object, name: str, run: Callable[[], T]) -> T | None:
        models = _models(stage)
        with ExitStack() as counting:
            counts = [counting.enter_context(model.counting(self._asked)) for model in models]
            try:
                return run()
            except NotImplementedError:
                self.unknown.append(name)
                return None
            finally:
                times = stage.most_calls if isinstance(stage, AsksInSteps) else 1
                for model, count in zip(models, counts, strict=True):
                    self._add(name, model, count, times)

    def _add(self, stage: str, model: Any, count: Any, times: int) -> None:
        if not isinstance(model, CachedWriter):
            if count.pairs or count.known:
                self.pairs.append(_Pairs(stage, _checkpoint(model), count.pairs, count.known))
            return
        tokens = (count.prompt_tokens * times, count.completion_tokens * times)
        cost = model.cost(*tokens) or 0.0
        name = model_name(model.identity)
        self.rows.append(_Row(stage, name, count.calls * times, *tokens, cost))


def _models(stage: object) -> list[Any]:
    known = writers(stage)
    return known + [p for p in held(stage) if p not in known and hasattr(p, "counting")]


def _checkpoint(model: Any) -> str:
    name = getattr(model, "checkpoint", None) or getattr(model, "model", None)
    return str(name or type(model).__name__)


def _stand_ins(claims: Sequence[Claim]) -> list[Claim]:
    """For a sentence that nobody decomposed as many texts as it is likely to have claims.

    Where each of its claims was to be asked for alone, their number is known.
    """
    found = []
    asked = Counter(claim.sentence for claim in claims if claim.failed is not None)
    done: Counter[int] = Counter()
    for claim in claims:
        if claim.failed is None:
            found.append(claim)
            continue
        words = claim.text.split()
        times = CLAIMS_A_SENTENCE if asked[claim.sentence] == 1 else 1
        for number in range(done[claim.sentence], done[claim.sentence] + times):
            text = f"{' '.join(words[number:] + words[:number])} {number}"
            update = {"id": f"{claim.id}.{number}", "text": text, "failed": None}
            found.append(claim.model_copy(update=update))
        done[claim.sentence] += times
    return found


def _unwritten(verifier: Verifier) -> Verifier:
    if isinstance(verifier, FactReasoner):
        verifier = copy(verifier)
        verifier.uai = None
    return verifier


def _chain(retrieve: Retriever) -> list[Retriever]:
    chain = [retrieve]
    while isinstance(chain[-1], Cut | InSentences | PagesOfLinks | Trusted):
        chain.append(chain[-1].retrieve)
    return chain


def _evidence(
    pipeline: Pipeline, documents: Sequence[Document], claims: list[list[Claim]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    chain = _chain(pipeline.retrieve)
    retrieve = chain[-1]
    whole = any(isinstance(part, PagesOfLinks | WikipediaSearch) for part in chain)
    if isinstance(retrieve, GivenPassages | BM25) and not whole:
        return pipeline.retrieve(documents, claims)
    words, k = WORDS_A_PAGE if whole else WORDS_A_PASSAGE, PASSAGES_A_CLAIM
    if isinstance(retrieve, SearchRetriever | PagesOfTitles):
        k = retrieve.k
    if isinstance(retrieve, PageRetriever | PagesOfTitles) and not whole:
        words = retrieve.words or WORDS
    given, found = [], []
    for document, row in zip(documents, claims, strict=True):
        titles = ["Title"]
        if isinstance(retrieve, PagesOfTitles):
            titles = list(dict.fromkeys(p.title for p in document.passages or []))
        own = [
            Passage(id=f"p{place}.{n}", title=title, text=" ".join([f"w{place}{n}"] * words))
            for place, title in enumerate(titles)
            for n in range(k)
        ]
        names = [passage.id for passage in own]
        given.append([claim.model_copy(update={"contexts": names}) for claim in row])
        found.append(own)
    return given, found


def _calls(rows: Sequence[_Row], more: bool) -> str:
    total = _Row("all", "", *(sum(row[place] for row in rows) for place in range(2, 6)))
    wide = max(14, *(len(row.stage) for row in rows)) if rows else 14
    head = f"{'stage':{wide}} {'model':36} {'calls':>10} {'prompt tokens':>15} {'new tokens':>12}"
    lines = [
        f"{r.stage:{wide}} {r.model[-36:]:36} {r.calls:10,} {r.prompt_tokens:15,} "
        f"{r.completion_tokens:12,}" + (f" {r.cost:10,.2f}" if total.cost else "")
        for r in [*rows, total]
    ]
    return "\n".join([head + (f" {'cost':>10}" if total.cost else ""), *lines, *[""] * more])


def _encoders(rows: Sequence[_Pairs]) -> str:
    total = _Pairs("all", "", sum(r.pairs for r in rows), sum(r.known for r in rows))
    wide = max(14, *(len(row.stage) for row in rows))
    head = f"{'stage':{wide}} {'encoder':36} {'pairs':>10} {'in the cache':>13}"
    lines = [f"{r.stage:{wide}} {r.model[-36:]:36} {r.pairs:10,} {r.known:13,}" for r in rows]
    last = f"{total.stage:{wide}} {'':36} {total.pairs:10,} {total.known:13,}"
    return "\n".join([head, *lines, last])
