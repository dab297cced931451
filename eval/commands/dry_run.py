"""Estimate the calls, tokens and pairs of a run without calling any model or server.

The pipeline itself runs, chunk by chunk, with models that only count. Their outputs cause as many
further calls as possible: no pair entails, each likelihood is 0, and every claim is selected. If
claims and passages are rule-based, the estimate is an upper bound. Otherwise their numbers are
assumed, as the last lines of the output state.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from clients.mediawiki import MediaWiki
from clients.webpages import WebPages
from eval.experiments.experiment import Plan
from eval.models.chat import CHARACTERS_A_TOKEN, CachedWriter
from eval.pipeline import Pipeline
from eval.run.parts import KeepsAnswers, find_parts, find_writers
from eval.run.run import CHUNK
from eval.run.terminal import model_name
from eval.stages import AsksInSteps, Selection
from records import Claim, Document, Passage, UserError

# Human annotators found 3.9 facts in a sentence of FActScore's labelled biographies (n = 2,748).
CLAIMS_PER_SENTENCE = 4
# Assumed number of passages if the retriever has no ``k``.
PASSAGES_PER_CLAIM = 5
WORDS_PER_PASSAGE = 100
# FactReasoner cuts pages after 4,000 characters.
WORDS_PER_PAGE = 1000

# Columns of the two tables with their formats; the cost is omitted without prices.
_CALLS = {"calls": "10,", "prompt tokens": "15,", "new tokens": "12,", "cost": "10,.2f"}
_PAIRS = {"pairs": "10,", "in the cache": "13,"}
# (stage, index of the model in it, name of the model) to the numbers of a row.
_Rows = dict[tuple[str, int, str], list[float]]


def estimate_score(pipeline: Pipeline, documents: Sequence[Document], chunk: int = CHUNK) -> str:
    """Return a table of the calls, tokens and pairs of scoring ``documents``."""
    count = _Count()
    for start in range(0, len(documents), chunk):
        batch = documents[start : start + chunk]
        count.outputs.clear()
        count.add_metric("", pipeline, batch, lambda *stage: stage)
    return count.table(len(documents))


def estimate_plan(plan: Plan) -> str:
    """Return the same table for several metrics and selectors that share their stages."""
    count = _Count()
    for start in range(0, len(plan.documents), CHUNK):
        batch = plan.documents[start : start + CHUNK]
        count.outputs.clear()
        for name, pipeline in plan.pipelines.items():
            count.add_metric(f"{name}: ", pipeline, batch, plan.shared(name))
    return count.table(len(plan.documents))


class _Count:
    """Counts stage by stage; a stage shared by several metrics is counted once."""

    def __init__(self):
        self.calls: _Rows = {}
        self.pairs: _Rows = {}
        self.unknown: dict[str, None] = {}  # stages whose models cannot be counted
        self.claims: Counter[str] = Counter()
        self.outputs: dict[Hashable, Any] = {}
        self._counted: set[bytes] = set()

    def add_metric(
        self,
        name: str,
        pipeline: Pipeline,
        documents: Sequence[Document],
        key: Callable[..., Hashable],
    ) -> None:
        first = documents[0].id
        texts = (first, key("decompose"), key("revise"))
        evidence = (*texts, key("retrieve"))
        shares = ("claims", *texts) in self.outputs
        self.outputs["claims", *texts] = None
        revise, retrieve = pipeline.revise, pipeline.retrieve
        select = pipeline.select
        scored = Pipeline(
            _Stage(self, f"{name}decompose", pipeline.decompose, texts[:2], _stand_ins),
            [
                _Stage(
                    self,
                    f"{name}{type(verifier).__name__}",
                    verifier,
                    (*evidence, key("verify", number)),
                    lambda _, batch, *rest: [[] for _ in batch],
                    key("select"),
                    getattr(verifier, "judges_sets", False),
                )
                for number, verifier in enumerate(pipeline.verify)
            ],
            _Stage(self, f"{name}retrieve", retrieve, ("retrieve", *evidence), _passages),
            select and _Stage(self, f"{name}select", select, (key("select"), *texts), _select_all),
            revise and _Stage(self, f"{name}revise", revise, texts, lambda _, batch, row: row),
        ).score(documents)
        if not shares:
            self.claims[name.removesuffix(": ")] += sum(len(row.claims) for row in scored)

    def run_stage(self, name: str, stage: Any, args: Sequence, needed: bool) -> Any:
        """Run a stage with counting models, if there are any or if its output is ``needed``."""
        parts = find_parts(stage)
        models = find_writers(parts) + [
            part
            for part in parts
            if not isinstance(part, CachedWriter) and hasattr(part, "counting")
        ]
        if not (models or needed):
            return None
        with ExitStack() as counting:
            counts = [counting.enter_context(model.counting(self._counted)) for model in models]
            try:
                return stage(*args)
            except NotImplementedError:
                self.unknown[name] = None
            except UserError:  # a prompted model; all its answers fail here
                pass
            finally:
                times = stage.most_calls if isinstance(stage, AsksInSteps) else 1
                for index, (model, count) in enumerate(zip(models, counts, strict=True)):
                    self._add(name, index, model, count, times)
        return None

    def _add(self, stage: str, index: int, model: Any, count: Any, times: int) -> None:
        if isinstance(model, CachedWriter):
            tokens = (count.prompt_tokens * times, count.completion_tokens * times)
            new = [count.calls * times, *tokens, model.cost(*tokens) or 0.0]
            table, name = self.calls, model_name(model.identity)
        elif count.pairs or count.cached:
            new, table = [count.pairs, count.cached], self.pairs
            name = getattr(model, "checkpoint", None) or getattr(model, "model", None)
        else:
            return
        key = (stage, index, str(name or type(model).__name__))
        table[key] = [a + b for a, b in zip(table.get(key, [0] * len(new)), new, strict=True)]

    def table(self, documents: int) -> str:
        parts = []
        if self.calls or not self.pairs:
            parts += [_table("model", _CALLS, self.calls), *[""] * bool(self.pairs)]
        if self.pairs:
            parts.append(_table("encoder", _PAIRS, self.pairs))
        if self.unknown:
            parts.append(f"Cannot be counted before the run: {', '.join(self.unknown)}.")
        claims = [f"{count:,}" + f" ({name})" * bool(name) for name, count in self.claims.items()]
        parts.append(
            f"{documents} documents, about {' and '.join(claims)} claims (assumed: "
            f"{CLAIMS_PER_SENTENCE} claims per sentence decomposed by a model; `k`, or else "
            f"{PASSAGES_PER_CLAIM}, passages per claim found by a server or an encoder). "
            f"Cached calls are not counted. Prompt tokens are characters / {CHARACTERS_A_TOKEN}; "
            "new tokens and the calls of multi-step methods are upper bounds."
        )
        return "\n".join(parts)


@dataclass
class _Stage:
    """A stage with counting models."""

    count: _Count
    name: str
    stage: Any
    key: Hashable  # stages with the same key run once per chunk
    replace: Callable  # maps the stage's output and input to the output for the next stage
    selector: Hashable = None  # its key; a second call judges the claims that it kept
    judges_sets: bool = False

    def __call__(self, *args: Sequence) -> Any:
        if self.key not in self.count.outputs:
            output: Any = self.stage
            parts = find_parts(self.stage) if self.replace is _passages else []
            if not any(isinstance(p, KeepsAnswers) or hasattr(p, "encode") for p in parts):
                needed = self.replace in (_stand_ins, _passages)
                output = self.count.run_stage(self.name, self.stage, args, needed)
            self.count.outputs[self.key] = self.replace(output, *args)
        output = self.count.outputs[self.key]
        self.key, self.name = (self.key, self.selector), f"{self.name}, selected claims"
        return output


def _stand_ins(
    output: list[list[Claim]] | None, documents: Sequence[Document]
) -> list[list[Claim]]:
    """Replace a sentence's failed claim by as many claims as a sentence has on average."""
    rows = []
    for claims in output or [[] for _ in documents]:
        failed = Counter(claim.sentence for claim in claims if claim.failed is not None)
        done: Counter[int] = Counter()
        rows.append([])
        for claim in claims:
            if claim.failed is None:
                rows[-1].append(claim)
                continue
            words = claim.text.split()
            times = CLAIMS_PER_SENTENCE if failed[claim.sentence] == 1 else 1
            for number in range(done[claim.sentence], done[claim.sentence] + times):
                text = f"{' '.join(words[number:] + words[:number])} {number}"
                update = {"id": f"{claim.id}.{number}", "text": text, "failed": None}
                rows[-1].append(claim.model_copy(update=update))
            done[claim.sentence] += times
    return rows


def _select_all(
    output: object, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> list[list[Selection]]:
    chosen = {"selected": True, "weight": 1.0, "reason": "selected"}
    return [[Selection(claim=claim.id, **chosen) for claim in row] for row in claims]


def _passages(
    output: Any, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    if isinstance(output, tuple):
        return output
    parts = find_parts(output)
    is_page = any(isinstance(part, MediaWiki | WebPages) for part in parts)
    n_words = WORDS_PER_PAGE if is_page else WORDS_PER_PASSAGE
    k = next((part.k for part in parts if hasattr(part, "k")), PASSAGES_PER_CLAIM)
    rows, passages = [], []
    for document, row in zip(documents, claims, strict=True):
        titles = dict.fromkeys(passage.title for passage in document.passages or []) or ["Title"]
        passages.append(
            [
                Passage(id=f"p{i}.{n}", title=title, text=" ".join([f"w{i}{n}"] * n_words))
                for i, title in enumerate(titles)
                for n in range(k)
            ]
        )
        names = [passage.id for passage in passages[-1]]
        rows.append([claim.model_copy(update={"contexts": names}) for claim in row])
    return rows, passages


def _table(kind: str, columns: Mapping[str, str], rows: _Rows) -> str:
    total = [sum(column) for column in zip(*rows.values(), strict=True)] or [0] * len(columns)
    used = [(name, form) for name, form in columns.items() if name != "cost" or total[-1]]
    width = max([14, *(len(stage) for stage, _, _ in rows)])
    headings = "".join(f" {name:>{form.partition(',')[0]}}" for name, form in used)
    lines = [f"{'stage':{width}} {kind:36}{headings}"]
    for (stage, _, model), numbers in [*rows.items(), (("all", 0, ""), total)]:
        cells = zip(numbers, used, strict=False)
        values = "".join(f" {number:{form}}" for number, (_, form) in cells)
        lines.append(f"{stage:{width}} {model[-36:]:36}{values}")
    return "\n".join(lines)
