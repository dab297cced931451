"""Choose p, ε and the entailment threshold of Core (2407.03572, §3–5), which the paper leaves open.

The setting is chosen on one half of the topics and evaluated on the other half. The halves equal
those of ``experiment robustness --experiment.half`` with the same seed. ``kept_share`` is the share
of a text's claims that Core keeps, ``precision`` the supported share of the kept claims (0 if none
is kept). The ``margin`` of a setting is the mean of the honest texts minus the largest mean of
another kind. The first setting with the largest margin is chosen.
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
from eval.experiments.core.informativeness import TextFile
from eval.experiments.core.labelled_texts import LabelledText, read_texts
from eval.experiments.experiment import (
    Experiment,
    Outcome,
    draw_names,
    half_of,
    require_entries,
    require_non_negative,
)
from eval.metrics.document import score_document
from eval.report.declare import Figure, Page, Plot, Table, TextTable, cell
from eval.run.run import Run
from eval.select.core import Core
from eval.select.judgements import CachedJudgements
from eval.select.weights import BleachedClaims
from eval.stages import EntailmentModel, Relevance, UnliModel
from records import Document, Result, ResultFile, UserError
from records.abstention import responds

# Names of the topic halves in results; the setting is chosen on the first one.
TUNING, HELD_BACK = HALVES = ("tuning", "held back")
# Texts per chunk; all pairs of a chunk are in memory.
CHUNK = 32


class Setting(BaseModel):
    """Options of :class:`eval.select.core.Core` in the grid."""

    p: float
    epsilon: float
    entail_threshold: float | None


def _format_setting(setting: dict) -> str:
    threshold = setting["entail_threshold"]
    relation = "likeliest" if threshold is None else f"{threshold:g}"
    return f"p = {setting['p']:g}, ε = {setting['epsilon']:g}, entailment: {relation}"


def _summary(file: ResultFile) -> list[str]:
    number = file.provenance["chosen"]
    rows = [row for row in file.results if (row.variant, row.group) == (number, HELD_BACK)]
    lines = [f"{row.metric} of {row.kind}: {cell(row, note='n = {n}')}" for row in rows]
    chosen = _format_setting(file.provenance["settings"][number])
    return [f"chosen by {file.provenance['choose_by']}: {chosen}; on held-back topics:", *lines]


def _tables(file: ResultFile, folder: Path) -> list[TextTable]:
    chosen = Table("The chosen setting", {"kind": "Texts"}, ["metric", "selection", "group"])
    all_settings = Table("All settings", {"variant": "Setting"}, ["metric", "kind", "group"])
    settings, number = file.provenance["settings"], file.provenance["chosen"]
    rows = [
        row.model_copy(update={"variant": _format_setting(settings[row.variant])})
        for row in file.results
        if row.variant is not None
    ]
    return [
        chosen.of(row for row in file.results if row.variant in (None, number)),
        all_settings.of(rows),
    ]


def _by_epsilon(file: ResultFile, folder: Path) -> list[Plot]:
    settings, number = file.provenance["settings"], file.provenance["chosen"]
    fixed = {**settings[number], "epsilon": None}
    rows: list[Result] = [
        row.model_copy(update={"variant": settings[row.variant]["epsilon"]})
        for row in file.results
        if row.variant is not None and {**settings[row.variant], "epsilon": None} == fixed
    ]
    title, where = "Kept share by ε in nats, at the chosen p and threshold", {"group": HELD_BACK}
    figure = Figure(title, "variant", ["kind"], {"kept_share": ""}, where, kind="lines")
    return figure.of(rows) if len({row.variant for row in rows}) > 1 else []


class SettingMeasures(BaseModel):
    """Measures of a text for every setting, in the order of the settings.

    Attributes:
        kept_share: share of the judged claims that are kept; ``None`` without judged claims.
        plain: precision without Core; ``None`` if the truth is unknown.
        failed: number of claims whose selection failed.
    """

    id: str
    kept_share: list[float | None]
    precision: list[float | None]
    plain: float | None
    failed: int


@dataclass(eq=False)
class CoreSettings(Experiment):
    """Choose Core's p, ε and entailment threshold on half of the topics.

    Args:
        texts: kind to its texts: documents, with ``claims`` or split into sentences, or
            ``scored.jsonl`` of a ``score`` run with claims and verdicts.
        entailment: model for document entailment and exclusion, and for the cap by default.
        unli: model for p(claim | bleached claim).
        bleached: Core's bleached claims.
        honest: the kind whose claims Core should keep.
        p: values of Core's ``p`` to try.
        epsilon: values of ε to try, in nats.
        entail_threshold: thresholds to try; null for the most probable relation.
        floor: lower limit of probabilities.
        cap: separate model for the cap.
        relevance: model for Rel.
        choose_by: measure of the margin; ``precision`` needs the truth of all kinds' claims.
        assessor: assessor of a run whose verdicts are used; null if it has only one.
        topics: maximum number of topics per kind, sampled at random; 0 for all.
        per_topic: maximum number of texts per kind and topic, sampled at random; 0 for all.
        domain: domain in the results.
        seed: seed of sampling, halves and bootstrap.
    """

    name = "core_settings"
    page = Page(
        "Which setting of Core lets honest texts pass and stops the others?",
        "Core (arXiv 2407.03572, sections 3 to 5). The margin is the value of honest texts minus "
        "the largest other value. The setting is chosen on the tuning half and evaluated on the "
        "other half. n counts topics; brackets are 95 % bootstrap intervals over topics.",
        [_tables],
        [_by_epsilon],
        summary=_summary,
        terminal=None,
    )

    texts: dict[str, TextFile]
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
        require_entries(p=self.p, epsilon=self.epsilon, entail_threshold=self.entail_threshold)
        require_non_negative(topics=self.topics, per_topic=self.per_topic)
        if len(self.texts) < 2 or self.honest not in self.texts:
            raise UserError(f"texts: expected {self.honest!r} and at least one other kind")
        self.settings = [
            Setting(p=p, epsilon=nats, entail_threshold=threshold)
            for p, nats, threshold in product(self.p, self.epsilon, self.entail_threshold)
        ]
        self._cores(self.entailment, self.unli, self.cap, self.relevance)

    def measure(self, run: Run) -> Outcome:
        """Select with every setting; a result's ``variant`` is the index of its setting."""
        skipped: Counter[str] = Counter()
        texts = [text for kind in self.texts for text in self._texts(kind, skipped)]
        half = assign_halves(texts, self.seed)
        rows = run.process("texts", self._select, texts, SettingMeasures, CHUNK)
        values, chosen = [], None
        for name in HALVES:
            half_rows = [
                (t, r) for t, r in zip(texts, rows, strict=True) if half[t.document.topic] == name
            ]
            measures = compute_measures(half_rows, list(self.texts), self.honest, self.seed)
            if name == TUNING:
                chosen = best_setting(measures, f"margin_{self.choose_by}", len(self.settings))
            values += _values(measures, half_rows, name)
        if chosen is None:
            raise UserError(
                f"choose_by: {self.choose_by} is unknown for all texts of some kind; use labelled "
                "claims or scored.jsonl of a run, or choose by kept_share"
            )
        settings = [setting.model_dump() for setting in self.settings]
        return Outcome(
            values,
            provenance={
                "settings": settings,
                "chosen": chosen,
                "choose_by": self.choose_by,
                "honest": self.honest,
                "left_out": dict(skipped),
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

    def _select(self, texts: Sequence[LabelledText]) -> list[SettingMeasures]:
        entailment, unli = CachedJudgements(self.entailment), CachedJudgements(self.unli)
        cap = None if self.cap is None else CachedJudgements(self.cap)
        relevance = None if self.relevance is None else _CachedRelevance(self.relevance)
        documents = [text.document.model_copy(update={"id": text.id}) for text in texts]
        claims = [text.claims for text in texts]
        shares: list[list[float | None]] = [[] for _ in texts]
        precision: list[list[float | None]] = [[] for _ in texts]
        failed = [0] * len(texts)
        for core in self._cores(entailment, unli, cap, relevance):
            for row, selections in enumerate(core(documents, claims)):
                kept = {selection.claim for selection in selections if selection.selected}
                failed[row] = sum(selection.reason == "failed" for selection in selections)
                judged = len(selections) - failed[row]
                shares[row].append(len(kept) / judged if judged else None)
                precision[row].append(_precision(texts[row], kept, failed[row]))
        return [
            SettingMeasures(
                id=text.id,
                kept_share=shares[row],
                precision=precision[row],
                plain=_precision(text, None, 0),
                failed=failed[row],
            )
            for row, text in enumerate(texts)
        ]

    def _texts(self, kind: str, skipped: Counter[str]) -> Iterator[LabelledText]:
        source = self.texts[kind]
        draw = random.Random(f"{self.seed}:{kind}")
        texts = [
            text
            for text in read_texts(source.file, kind, self.assessor)
            if source.kind in (None, text.document.kind)
        ]
        with_claims = [text for text in texts if text.claims]
        skipped["text without a claim"] += len(texts) - len(with_claims)
        if not with_claims:
            raise UserError(f"{source.file}: no text of kind {source.kind!r} has a claim")
        by_topic: dict[str, list[LabelledText]] = defaultdict(list)
        for text in with_claims:
            by_topic[text.document.topic].append(text)
        for topic in sorted(draw_names(by_topic, self.topics, draw)):
            topic_texts = by_topic[topic]
            n = len(topic_texts)
            yield from draw.sample(topic_texts, min(self.per_topic or n, n))


class _CachedRelevance:
    def __init__(self, relevance: Relevance):
        self.relevance = relevance
        self.cache: list | None = None

    def __call__(self, documents: Sequence[Document], sentences: Sequence[Sequence[str]]) -> list:
        if self.cache is None:
            self.cache = self.relevance(documents, sentences)
        return self.cache


def _precision(text: LabelledText, kept: set[str] | None, unjudged: int) -> float | None:
    # Without length penalty; None if the truth of all claims, or of all kept claims, is unknown
    judged = {verdict.claim for verdict in text.verdicts}
    if not judged or (kept and not kept & judged):
        return None
    claims = [claim for claim in text.claims if claim.id in judged]
    return score_document(
        responds(text.document), claims, text.verdicts, kept, 0, unjudged
    ).precision


def assign_halves(texts: Sequence[LabelledText], seed: int) -> dict[str, str]:
    named = {"tuning": TUNING, "test": HELD_BACK}
    half = {text.document.topic: named[half_of(text.document.topic, seed)] for text in texts}
    for kind in {text.kind: None for text in texts}:
        topics = {text.document.topic for text in texts if text.kind == kind}
        for name in named.values():
            if name not in {half[topic] for topic in topics}:
                raise UserError(
                    f"texts: kind {kind!r} has no topic in the {name!r} half ({len(topics)} topics "
                    "in total); use more topics or another seed"
                )
    return half


def compute_measures(
    rows: Sequence[tuple[LabelledText, SettingMeasures]],
    kinds: Sequence[str],
    honest: str,
    seed: int,
) -> dict[tuple[str, str, int | None], dict]:
    """Compute means over texts with bootstrap intervals over topics.

    Returns:
        (metric, kind, index of the setting) to ``value`` and ``ci95``; the index is ``None``
        without Core. The kind of margins is the honest one.
    """
    kind = np.asarray([kinds.index(text.kind) for text, _ in rows])
    tables = {
        "kept_share": np.asarray([row.kept_share for _, row in rows], dtype=float),
        "precision": np.asarray([row.precision for _, row in rows], dtype=float),
    }  # (texts, settings), NaN if unknown
    plain = np.asarray([row.plain for _, row in rows], dtype=float)

    def statistics(chosen: np.ndarray) -> dict:
        rows_of_kind = [chosen[kind[chosen] == index] for index in range(len(kinds))]
        values = {}
        for metric, table in tables.items():
            means = np.stack([nan_mean(table[rows]) for rows in rows_of_kind])  # (kinds, settings)
            first = kinds.index(honest)
            margin = means[first] - np.delete(means, first, axis=0).max(axis=0)
            for number in range(table.shape[1]):
                for name, value in zip(kinds, means[:, number], strict=True):
                    values[metric, name, number] = float(value)
                values[f"margin_{metric}", honest, number] = float(margin[number])
        for name, rows in zip(kinds, rows_of_kind, strict=True):
            values["precision", name, None] = float(nan_mean(plain[rows]))
        return values

    return bootstrap(statistics, [text.document.topic for text, _ in rows], seed=seed)


def best_setting(
    values: Mapping[tuple[str, str, int | None], dict], metric: str, settings: int
) -> int | None:
    """Return the first setting with the largest margin; ``None`` without margins."""
    margins = {number: row["value"] for (m, _, number), row in values.items() if m == metric}
    candidates = [number for number in range(settings) if margins.get(number) is not None]
    return max(candidates, key=lambda number: (margins[number], -number), default=None)


def _values(
    measures: Mapping[tuple[str, str, int | None], dict],
    rows: Sequence[tuple[LabelledText, SettingMeasures]],
    half: str,
) -> Iterator[dict]:
    for (metric, kind, number), value in measures.items():
        if value["value"] is None:
            continue
        is_margin, is_precision = metric.startswith("margin_"), metric.endswith("precision")
        kind_rows = [(t, r) for t, r in rows if is_margin or t.kind == kind]
        if is_precision:
            kind_rows = [(t, r) for t, r in kind_rows if t.verdicts]
            row_values = [r.plain if number is None else r.precision[number] for _, r in kind_rows]
        else:
            row_values = [r.kept_share[number] for _, r in kind_rows]
        entered = [t for (t, _), v in zip(kind_rows, row_values, strict=True) if v is not None]
        yield {
            "metric": metric,
            "kind": kind,
            "group": half,
            "selection": "none" if number is None else "core",
            "variant": number,
            "against": "the worst of the others" if is_margin else None,
            "n": len({text.document.topic for text in entered}),
            "failed": 0 if number is None else sum(row.failed for _, row in kind_rows),
            **value,
        }
