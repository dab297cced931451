"""Which p, ε and threshold of Core let honest texts pass and stop the others? (2407.03572, §3–5.)

The paper leaves all three open. Here every setting of a grid selects from the same claims, and no
model is asked twice for anything. Half of the topics choose the setting, and the other half say
what it is worth: a setting that is chosen and judged on the same texts looks better than it is. The
halves are those of ``experiment robustness --experiment.half`` with the same seed.

Of every text: ``kept_share``, the share of its claims that Core keeps, and, where its claims have
labels or a run's verdicts, ``precision``, the supported share of those (0 where none is kept). The
``margin`` of a setting is the honest texts' mean of either less the largest mean of another kind:
how far the worst attack stays below honest texts. The setting with the largest margin is chosen; of
equal ones the first in the grid.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel

from components.statistics import bootstrap, nan_mean
from eval.experiments.core.informativeness import Source
from eval.experiments.core.labelled_texts import Text, read_texts
from eval.experiments.experiment import (
    Experiment,
    Found,
    at_least_one,
    drawn,
    half_of,
    natural,
)
from eval.metrics.document import score_document
from eval.report.declare import Figure, Page, Plot, Table, TextTable, cell
from eval.run.run import Run
from eval.select.core import Core, Relevance
from eval.select.judgements import CachedJudgements
from eval.select.weights import BleachedClaims
from eval.stages import EntailmentModel, UnliModel
from records import Document, Result, ResultFile, UserError

# The halves of the topics, as results name them: the one that chooses first.
TUNING, HELD_BACK = HALVES = ("tuning", "held back")
# A text of many claims asks for many pairs, which stay in memory until its chunk is done.
CHUNK = 32


class Setting(BaseModel):
    """What is chosen; the fields are :class:`eval.select.core.Core`'s options."""

    p: float
    epsilon: float
    entail_threshold: float | None


def _told(setting: dict) -> str:
    threshold = setting["entail_threshold"]
    said = "likeliest" if threshold is None else f"{threshold:g}"
    return f"p = {setting['p']:g}, ε = {setting['epsilon']:g}, entailment: {said}"


def _summary(file: ResultFile) -> list[str]:
    number = file.provenance["chosen"]
    own = [row for row in file.results if (row.variant, row.group) == (number, HELD_BACK)]
    told = [f"{row.metric} of {row.kind}: {cell(row, note='n = {n}')}" for row in own]
    chosen = _told(file.provenance["settings"][number])
    return [f"chosen by {file.provenance['choose_by']}: {chosen}; on the topics held back:", *told]


def _tables(file: ResultFile, folder: Path) -> list[TextTable]:
    chosen = Table("The chosen setting", {"kind": "Texts"}, ["metric", "selection", "group"])
    every = Table("All settings", {"variant": "Setting"}, ["metric", "kind", "group"])
    settings, number = file.provenance["settings"], file.provenance["chosen"]
    named = [
        row.model_copy(update={"variant": _told(settings[row.variant])})
        for row in file.results
        if row.variant is not None
    ]
    return [
        chosen.of(row for row in file.results if row.variant in (None, number)),
        every.of(named),
    ]


def _by_epsilon(file: ResultFile, folder: Path) -> list[Plot]:
    settings, number = file.provenance["settings"], file.provenance["chosen"]
    alike = {**settings[number], "epsilon": None}
    rows: list[Result] = [
        row.model_copy(update={"variant": settings[row.variant]["epsilon"]})
        for row in file.results
        if row.variant is not None and {**settings[row.variant], "epsilon": None} == alike
    ]
    title, where = "Kept share by ε in nats, at the chosen p and threshold", {"group": HELD_BACK}
    figure = Figure(title, "variant", ["kind"], {"kept_share": ""}, where, kind="lines")
    return figure.of(rows) if len({row.variant for row in rows}) > 1 else []


class Selected(BaseModel):
    """What every setting made of a text, in the order of the settings.

    Attributes:
        plain: its precision without Core, where its claims' truth is known.
        kept_share: of the claims that could be judged; ``None`` of none.
        failed: claims that could not be selected from, under any setting.
    """

    id: str
    kept_share: list[float | None]
    precision: list[float | None]
    plain: float | None
    failed: int


@dataclass(eq=False)
class CoreSettings(Experiment):
    """The experiment.

    Args:
        texts: kind to where its texts are: documents, with ``claims`` or split into sentences, or
            ``scored.jsonl`` of a run of ``score``, whose claims and verdicts are taken.
        entailment: judges document entailment and exclusion, and the cap where ``cap`` does not.
        unli: judges p(claim | bleached claim).
        bleached: as Core's.
        honest: the kind whose claims are to stay.
        p: the shares to try; see :class:`eval.select.core.Core`, here and below.
        epsilon: the ε to try, in nats.
        entail_threshold: the thresholds to try; null for the most probable relation.
        floor: probabilities below it count as it.
        cap: a model of its own for the cap.
        relevance: judges Rel.
        choose_by: what the margin is made of; ``precision`` needs the truth of all kinds' claims.
        assessor: whose verdicts of a run are taken, as its results name it; null where it has one.
        topics: at most this many topics a kind, drawn at random; 0 for all.
        per_topic: at most this many texts of a kind a topic, drawn at random; 0 for all.
        domain: named in the results.
        seed: of draws, halves and bootstrap.
    """

    name = "core_settings"
    page = Page(
        "Which setting of Core lets honest texts pass and stops the others?",
        "On Core (arXiv 2407.03572, sections 3 to 5). The margin is the honest texts’ value less "
        "the largest other one; the setting with the largest margin on the tuning half is chosen, "
        "and the other half took no part in choosing. n counts topics; brackets hold 95 % "
        "bootstrap intervals over topics.",
        [_tables],
        [_by_epsilon],
        summary=_summary,
        terminal=None,
    )

    texts: dict[str, Source]
    entailment: EntailmentModel
    unli: UnliModel
    bleached: BleachedClaims
    honest: str = "honest"
    p: tuple[float, ...] = (0.0, 0.5, 0.8, 1.0)
    epsilon: tuple[float, ...] = (1e-3, 0.1, 0.4, 0.8, 1.5)
    entail_threshold: tuple[float | None, ...] = (None, 0.6, 0.7, 0.8)
    floor: float = 1e-6
    cap: EntailmentModel | None = None
    relevance: Relevance | None = None
    choose_by: Literal["kept_share", "precision"] = "kept_share"
    assessor: str | None = None
    topics: int = 0
    per_topic: int = 0
    domain: str = "biographies"
    seed: int = 0

    def __post_init__(self):
        at_least_one(p=self.p, epsilon=self.epsilon, entail_threshold=self.entail_threshold)
        natural(topics=self.topics, per_topic=self.per_topic)
        if len(self.texts) < 2 or self.honest not in self.texts:
            raise UserError(
                f"texts: give {self.honest!r} and at least one kind that is to be stopped"
            )
        self.settings = [
            Setting(p=one, epsilon=nats, entail_threshold=threshold)
            for one, nats, threshold in product(self.p, self.epsilon, self.entail_threshold)
        ]
        self._cores(self.entailment, self.unli, self.cap, self.relevance)

    def measure(self, run: Run) -> Found:
        """Select under every setting, choose on one half of the topics, judge on the other.

        The settings stand in the results' provenance, in the order of their numbers, which are the
        ``variant`` of results.
        """
        left_out: Counter[str] = Counter()
        texts = [text for kind in self.texts for text in self._texts(kind, left_out)]
        half = halves(texts, self.seed)
        rows = run.process("texts", self._select, texts, Selected, CHUNK)
        values, chosen = [], None
        for name in HALVES:
            own = [
                (t, r) for t, r in zip(texts, rows, strict=True) if half[t.document.topic] == name
            ]
            found = measures_of(own, list(self.texts), self.honest, self.seed)
            if name == TUNING:
                chosen = best(found, f"margin_{self.choose_by}", len(self.settings))
            values += _values(found, own, name)
        if chosen is None:
            raise UserError(
                f"choose_by: {self.choose_by}: some kind has no text of which it is known; give "
                "labelled claims or runs' scored.jsonl, or choose by kept_share"
            )
        settings = [setting.model_dump() for setting in self.settings]
        return Found(
            values,
            provenance={
                "settings": settings,
                "chosen": chosen,
                "choose_by": self.choose_by,
                "honest": self.honest,
                "left_out": dict(left_out),
            },
        )

    def _cores(self, entailment, unli, cap, relevance) -> list[Core]:
        return [
            Core(
                entailment,
                unli,
                self.bleached,
                floor=self.floor,
                cap=cap,
                relevance=relevance,
                **setting.model_dump(),
            )
            for setting in self.settings
        ]

    def _select(self, texts: Sequence[Text]) -> list[Selected]:
        entailment, unli = CachedJudgements(self.entailment), CachedJudgements(self.unli)
        cap = None if self.cap is None else CachedJudgements(self.cap)
        relevance = None if self.relevance is None else _RememberedRelevance(self.relevance)
        documents = [text.document.model_copy(update={"id": text.id}) for text in texts]
        claims = [text.claims for text in texts]
        shares: list[list[float | None]] = [[] for _ in texts]
        precision: list[list[float | None]] = [[] for _ in texts]
        failed = [0] * len(texts)
        for core in self._cores(entailment, unli, cap, relevance):
            for row, own in enumerate(core(documents, claims)):
                kept = {selection.claim for selection in own if selection.selected}
                failed[row] = sum(selection.reason == "failed" for selection in own)
                judged = len(own) - failed[row]
                shares[row].append(len(kept) / judged if judged else None)
                precision[row].append(_precision(texts[row], kept, failed[row]))
        return [
            Selected(
                id=text.id,
                kept_share=shares[row],
                precision=precision[row],
                plain=_precision(text, None, 0),
                failed=failed[row],
            )
            for row, text in enumerate(texts)
        ]

    def _texts(self, kind: str, left_out: Counter[str]) -> Iterator[Text]:
        source = self.texts[kind]
        draw = random.Random(f"{self.seed}:{kind}")
        every = [
            one
            for one in read_texts(source.file, kind, self.assessor)
            if source.kind in (None, one.document.kind)
        ]
        found = [one for one in every if one.claims]
        left_out["text without a claim"] += len(every) - len(found)
        if not found:
            raise UserError(f"{source.file}: no text of kind {source.kind!r} has a claim")
        by_topic: dict[str, list[Text]] = defaultdict(list)
        for one in found:
            by_topic[one.document.topic].append(one)
        for topic in sorted(drawn(by_topic, self.topics, draw)):
            own = by_topic[topic]
            yield from draw.sample(own, min(self.per_topic or len(own), len(own)))


class _RememberedRelevance:
    """Rel of documents, judged once."""

    def __init__(self, relevance: Relevance):
        self.relevance = relevance
        self.known: list | None = None

    def __call__(self, documents: Sequence[Document], sentences: Sequence[Sequence[str]]) -> list:
        if self.known is None:
            self.known = self.relevance(documents, sentences)
        return self.known


def _precision(text: Text, kept: set[str] | None, unjudged: int) -> float | None:
    """Factual precision of a text, without length penalty.

    ``None`` where no truth is known: of no claim, or of none that is kept though some are.
    """
    known = {verdict.claim for verdict in text.verdicts}
    if not known or (kept and not kept & known):
        return None
    claims = [claim for claim in text.claims if claim.id in known]
    return score_document(text.document, claims, text.verdicts, kept, 0, unjudged).precision


def halves(texts: Sequence[Text], seed: int) -> dict[str, str]:
    named = {"tuning": TUNING, "test": HELD_BACK}
    half = {text.document.topic: named[half_of(text.document.topic, seed)] for text in texts}
    for kind in {text.kind: None for text in texts}:
        topics = {text.document.topic for text in texts if text.kind == kind}
        for name in named.values():
            if name not in {half[topic] for topic in topics}:
                raise UserError(
                    f"texts: {kind!r} has no topic in the half {name!r} of its {len(topics)}; give "
                    "more topics or another seed"
                )
    return half


def measures_of(
    rows: Sequence[tuple[Text, Selected]], kinds: Sequence[str], honest: str, seed: int
) -> dict[tuple[str, str, int | None], dict]:
    """Means over texts with bootstrap intervals over topics.

    Returns:
        (metric, kind, number of the setting) to ``value`` and ``ci95``; the number is ``None``
        without Core. Margins have the honest kind.
    """
    kind = np.asarray([kinds.index(text.kind) for text, _ in rows])
    tables = {
        "kept_share": np.asarray([row.kept_share for _, row in rows], dtype=float),
        "precision": np.asarray([row.precision for _, row in rows], dtype=float),
    }  # (texts, settings), NaN where nothing is known
    plain = np.asarray([row.plain for _, row in rows], dtype=float)

    def statistics(chosen: np.ndarray) -> dict:
        own = [chosen[kind[chosen] == place] for place in range(len(kinds))]
        found = {}
        for metric, table in tables.items():
            means = np.stack([nan_mean(table[rows]) for rows in own])  # (kinds, settings)
            first = kinds.index(honest)
            margin = means[first] - np.delete(means, first, axis=0).max(axis=0)
            for number in range(table.shape[1]):
                for name, value in zip(kinds, means[:, number], strict=True):
                    found[metric, name, number] = float(value)
                found[f"margin_{metric}", honest, number] = float(margin[number])
        for name, rows in zip(kinds, own, strict=True):
            found["precision", name, None] = float(nan_mean(plain[rows]))
        return found

    return bootstrap(statistics, [text.document.topic for text, _ in rows], seed=seed)


def best(
    found: Mapping[tuple[str, str, int | None], dict], metric: str, settings: int
) -> int | None:
    """The setting with the largest margin, of equal ones the first; ``None`` without any margin."""
    margins = {number: one["value"] for (m, _, number), one in found.items() if m == metric}
    known = [number for number in range(settings) if margins.get(number) is not None]
    return max(known, key=lambda number: (margins[number], -number), default=None)


def _values(
    found: Mapping[tuple[str, str, int | None], dict],
    rows: Sequence[tuple[Text, Selected]],
    half: str,
) -> Iterator[dict]:
    for (metric, kind, number), value in found.items():
        if value["value"] is None:
            continue
        margin, precise = metric.startswith("margin_"), metric.endswith("precision")
        own = [(t, r) for t, r in rows if margin or t.kind == kind]
        if precise:
            own = [(t, r) for t, r in own if t.verdicts]
            known = [r.plain if number is None else r.precision[number] for _, r in own]
        else:
            known = [r.kept_share[number] for _, r in own]
        entered = [t for (t, _), value in zip(own, known, strict=True) if value is not None]
        yield {
            "metric": metric,
            "kind": kind,
            "group": half,
            "selection": "none" if number is None else "core",
            "variant": number,
            "against": "the worst of the others" if margin else None,
            "n": len({text.document.topic for text in entered}),
            "failed": 0 if number is None else sum(row.failed for _, row in own),
            **value,
        }
