"""How many calls and tokens a run would take, without asking any language model or server.

Each stage runs with language models that only count, and with stand-ins for what would have come
before it: subclaims for the sentences of a text, passages for its claims. The figures are therefore
estimates, and those of methods that ask in several steps an upper bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

from components.sentences import split_sentences, without_citations
from eval.models.chat import CHARACTERS_A_TOKEN
from eval.pipeline import Pipeline
from eval.retrieve.given import Given as GivenPassages
from eval.retrieve.knowledge import WORDS
from eval.retrieve.pages import PageRetriever
from eval.retrieve.search import SearchRetriever
from eval.retrieve.titles import PagesOfTitles
from eval.run.held import writers
from eval.run.terminal import model_name
from eval.select.core import Core
from eval.stages import AsksInSteps
from records import Claim, Document, Passage

T = TypeVar("T")

# Human annotators found 3.9 facts in a sentence of FActScore's labelled biographies (n = 2,748).
CLAIMS_A_SENTENCE = 4
# Of passages where the retriever does not say.
PASSAGES_A_CLAIM = 5
WORDS_A_PASSAGE = 100


class _Row(NamedTuple):
    """What a stage would ask one model, as a row of the table; ``cost`` is 0 without prices."""

    stage: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


def dry_run(pipeline: Pipeline, documents: Sequence[Document]) -> str:
    """A table of the calls and tokens that scoring ``documents`` would take."""
    rows: list[_Row] = []
    decompose, revise, select = pipeline.decompose, pipeline.revise, pipeline.select
    claims = _counted(decompose, "decompose", lambda: decompose(documents), rows)
    claims = [_stand_ins(own) for own in claims]
    # Stages without a language model cost no call, and their own models need not run.
    if revise is not None and writers(revise):
        _counted(revise, "revise", lambda: revise(documents, claims), rows)
    if isinstance(select, Core) and select.relevance is not None and writers(select.relevance):
        relevance = select.relevance
        sentences = [split_sentences(without_citations(d.text)) for d in documents]
        _counted(relevance, "relevance", lambda: relevance(documents, sentences), rows)
    claims, passages = _evidence(pipeline, documents, claims)
    for verifier in pipeline.verify:
        if writers(verifier):
            name = type(verifier).__name__
            _counted(verifier, name, lambda v=verifier: v(documents, claims, passages), rows)
    return _table(rows, sum(map(len, claims)), len(documents))


def _counted(stage: object, name: str, run: Callable[[], T], rows: list[_Row]) -> T:
    """Run a stage whose language models only count; each gives a row."""
    models = writers(stage)
    with ExitStack() as counting:
        counts = [counting.enter_context(model.counting()) for model in models]
        found = run()
    times = stage.most_calls if isinstance(stage, AsksInSteps) else 1
    for model, count in zip(models, counts, strict=True):
        tokens = (count.prompt_tokens * times, count.completion_tokens * times)
        cost = model.cost(*tokens) or 0.0
        rows.append(_Row(name, model_name(model.identity), count.calls * times, *tokens, cost))
    return found


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


def _evidence(
    pipeline: Pipeline, documents: Sequence[Document], claims: list[list[Claim]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    """The documents' own passages, or stand-ins where a retriever would find some."""
    retrieve = pipeline.retrieve
    if isinstance(retrieve, GivenPassages):
        return retrieve(documents, claims)
    words, k = WORDS_A_PASSAGE, PASSAGES_A_CLAIM
    if isinstance(retrieve, SearchRetriever | PagesOfTitles):
        k = retrieve.k
    if isinstance(retrieve, PageRetriever | PagesOfTitles):
        words = retrieve.words or WORDS
    text = " ".join(["word"] * words)
    given, found = [], []
    for document, row in zip(documents, claims, strict=True):
        titles = ["Title"]
        if isinstance(retrieve, PagesOfTitles):
            titles = list(dict.fromkeys(p.title for p in document.passages or []))
        own = [
            Passage(id=f"p{place}.{n}", title=title, text=text)
            for place, title in enumerate(titles)
            for n in range(k)
        ]
        names = [passage.id for passage in own]
        given.append([claim.model_copy(update={"contexts": names}) for claim in row])
        found.append(own)
    return given, found


def _table(rows: Sequence[_Row], claims: int, documents: int) -> str:
    total = _Row("all", "", *(sum(row[place] for row in rows) for place in range(2, 6)))
    head = f"{'stage':14} {'model':36} {'calls':>10} {'prompt tokens':>15} {'new tokens':>12}"
    lines = [
        f"{r.stage:14} {r.model[-36:]:36} {r.calls:10,} {r.prompt_tokens:15,} "
        f"{r.completion_tokens:12,}" + (f" {r.cost:10,.2f}" if total.cost else "")
        for r in [*rows, total]
    ]
    return "\n".join(
        [
            head + (f" {'cost':>10}" if total.cost else ""),
            *lines,
            f"{documents} documents, about {claims} claims ({CLAIMS_A_SENTENCE} a sentence where a "
            "model decomposes). Calls that a cache answers are left out; prompt tokens are "
            f"characters / {CHARACTERS_A_TOKEN}, new tokens the most there can be, and methods of "
            "several steps count with all steps.",
        ]
    )
