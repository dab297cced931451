"""What the papers print, and the same figures from the files that their authors released.

``printed.yaml`` has the printed figures with the names of the released files. Each entry names one
of ``MEASURES``, which computes the figures by the functions of the papers' experiments.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict

from components.statistics import nan_mean, pearson
from eval.decompose.given import Given
from eval.experiments.dfactscore.dfactscore_values import D_FACTSCORE, FACTSCORE, VALUES, Measure
from eval.experiments.factreasoner.factreasoner_values import collect_rows, compute_columns
from eval.experiments.lss.lss_metrics import LssMetrics, score_columns, target_of
from eval.experiments.lss.lss_pairs import ClaimPair
from eval.metrics.dfactscore_files import read_texts, reported
from eval.metrics.document import f1_at_k, median_claims
from eval.metrics.judged_texts import from_file
from eval.metrics.lss_agreement import agreement, merge, read_published_table
from eval.metrics.probabilities import e_measure
from eval.pipeline import Pipeline
from eval.similarity.bleu import Bleu
from eval.similarity.rouge import Rouge
from eval.stages import Verifier
from eval.verify.factreasoner.graph import table
from eval.verify.factreasoner.inference import solve
from eval.verify.factreasoner.network import Factor, Network
from eval.verify.labels import Labels
from eval.verify.recorded import Recorded
from records import Document, LssExample, UserError, iter_rows, read_records
from records.reading import load_json

ABSENT = "public, not available here"


class Entry(BaseModel):
    """Figures that a paper prints, from ``printed.yaml``.

    Attributes:
        measure: name of the function in ``MEASURES``.
        source: where to get the files.
        files: names (or ends of paths) of the released files; of names separated by ``|`` the first
            that is present is read.
        prints: name of a figure to its printed digits; empty if the file itself has them.
        whole: number of rows in the complete file.
        because: why figures of the complete file differ.
        options: further arguments of the measure.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    paper: str
    table: str
    name: str
    measure: str
    source: str = ""
    files: list[str] = []
    prints: dict[str, str] = {}
    whole: int | None = None
    because: str = ""
    options: dict[str, Any] = {}


class Computed(NamedTuple):
    """Our figures, the number of rows, and the figures that the file itself states."""

    values: Mapping[str, float]
    n: int | None = None
    stated: Mapping[str, str] = {}


class Row(BaseModel):
    """Our figures next to the printed ones."""

    paper: str
    table: str
    name: str
    ours: dict[str, float] = {}
    n: int | None = None
    printed: dict[str, str]
    state: str
    files: list[str] = []


def read_entries() -> list[Entry]:
    """Read ``printed.yaml``: per table, the shared fields and the entries of its rows."""
    content = yaml.safe_load(Path(__file__).with_name("printed.yaml").read_text("utf-8"))
    return [
        Entry(**{**part, "name": name, **row})
        for part in content
        for name, row in part.pop("rows").items()
    ]


def compare(folder: Path) -> Iterator[Row]:
    """Yield a row per entry; files are searched by name anywhere below ``folder``.

    Of several files of one name, the largest is read: released files exist cut and whole.
    """
    files = sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: -p.stat().st_size)
    for entry in read_entries():
        paths = [_find(names, files) for names in entry.files]
        row = Row(
            paper=entry.paper, table=entry.table, name=entry.name, printed=entry.prints, state=""
        )
        if None in paths:
            absent = f"{ABSENT}: {entry.source}: {entry.files[paths.index(None)]}"
            row.state = absent if "://" in entry.source else entry.source
        else:
            row.files = [str(path) for path in paths]
            try:
                computed = MEASURES[entry.measure](paths, **entry.options)
            except UserError as error:
                row.state = f"cannot be read: {error}"
            else:
                row.ours, row.n = dict(computed.values), computed.n
                row.printed = entry.prints or dict(computed.stated)
                row.state = _state(entry, row)
        yield row


def _find(names: str, files: Sequence[Path]) -> Path | None:
    ends = [f"/{name.strip()}" for name in names.split("|")]
    return next((p for end in ends for p in files if f"/{p.as_posix()}".endswith(end)), None)


def as_printed(value: float, printed: str) -> str:
    """Format a value with the digits of a printed one."""
    return f"{value:.{len(printed.partition('.')[2])}f}"


def _state(entry: Entry, row: Row) -> str:
    other = [k for k, text in row.printed.items() if as_printed(row.ours[k], text) != text]
    equal = "equal to all printed digits" if entry.prints else "equal to the file's own figures"
    state = f"differs in {', '.join(other)}" if other else equal
    if entry.whole and row.n and row.n < entry.whole:
        return f"first rows, {row.n:,} of {entry.whole:,}: {state}"
    return f"{state}: {entry.because}" if other and entry.because else state


# Merging Facts, Crafting Fallacies (2402.05629)


def _mean(values: Sequence[float | None]) -> float:
    return float(nan_mean(np.asarray([math.nan if v is None else v for v in values], dtype=float)))


def _table_4(paths: Sequence[Path]) -> Computed:
    texts = [from_file(document) for document in read_texts({"file": [str(p) for p in paths]})]
    means = {m: _mean([VALUES[m].value(t) for t in texts]) for m in (FACTSCORE, D_FACTSCORE)}
    values = {"FS": 100 * means[FACTSCORE], "D-FS": 100 * means[D_FACTSCORE]}
    values["entities"] = _mean([VALUES[Measure("entities")].value(text) for text in texts])
    # Groups are not released, their mean number is.
    values["biographies (recorded)"] = reported({"file": str(paths[0])})["file"]["biographies"]
    return Computed(values, len(texts))


def _citations(paths: Sequence[Path]) -> Computed:
    names = [str(path) for path in paths]
    texts = [from_file(document) for document in read_texts({"file": names})]
    header = reported({"file": names})["file"]
    recall = _mean([VALUES[Measure("citation_recall")].value(text) for text in texts])
    values = {"recall": recall, "recall (recorded)": header["citation recall"]}
    values["precision (recorded)"] = header["citation precision"]
    return Computed({name: 100 * value for name, value in values.items()}, len(texts))


def _rows(paths: Sequence[Path]) -> Computed:
    n = sum(1 for _ in iter_rows(paths[0]))
    return Computed({"rows": n}, n)


# FactReasoner (2502.18573)


def _scored(path: Path, verify: Verifier, k: int | None = None) -> tuple[dict, int, int]:
    documents = read_records(path, Document)
    scored = Pipeline(Given(), [verify], None, gamma=0).score(documents)
    (row,) = collect_rows(scored).values()
    judged = [score.judged for score in row.scores if score and score.responded]
    k = k or median_claims(judged)
    columns = compute_columns(row, k)
    return {name: _mean(values) for name, values in columns.items()}, k, len(judged)


def _labelled(paths: Sequence[Path]) -> Computed:
    means, k, n = _scored(paths[0], Labels())
    values = {"texts": n, "atoms": means["supported"] + means["not_supported"]}
    values |= {"supported": means["supported"], "Pr": means["precision"], "K": k}
    return Computed(values, n)


def _recorded(paths: Sequence[Path]) -> Computed:
    # The released code's K is half the number of atoms, its entropy in nats.
    results = load_json(paths[0])["results"]
    means, *_ = _scored(paths[0], Recorded(), results["num_atoms"] // 2)
    values = {"Pr": means["precision"], "F1@K": means["f1_at_k"]}
    stated = {"Pr": results["factuality_score"], "F1@K": results["f1_k"]}
    if "e_measure" in means:
        values["E"] = means["e_measure"]
        stated["E"] = results["avg_entropy"] / math.log(10)
    return Computed(values, 1, {name: f"{value:.3f}" for name, value in stated.items()})


def _example(paths: Sequence[Path], contexts: int, relations: Sequence[Sequence]) -> Computed:
    # Variable 0 is the atom with prior 0.5; contexts have prior 0.99.
    priors = [np.array([0.5, 0.5])] + [np.array([0.01, 0.99])] * contexts
    factors = [Factor((number,), prior) for number, prior in enumerate(priors)]
    factors += [Factor((a, b), table(name, p)) for a, b, name, p in relations]
    return Computed({"P(a1)": float(solve([Network(1 + contexts, factors)])[0].p[0])})


def _f1(paths: Sequence[Path], supported: int, atoms: int, k: int) -> Computed:
    precision = supported / atoms
    return Computed({"Pr": precision, "F1@K": f1_at_k(precision, supported, k)})


def _e_measure(paths: Sequence[Path], p: float) -> Computed:
    return Computed({"E": e_measure(np.array([p]))})


# Core (2407.03572) and A Closer Look at Claim Decomposition (2403.11903)


def _topics(paths: Sequence[Path]) -> Computed:
    bins = list(load_json(paths[0]).values())
    # The file goes through Table 1's groups, and in each through the bins.
    cells = [len(list(cell)) for _, cell in groupby(bins)]
    values = {"topics": len(bins), "per bin": min(Counter(bins).values())}
    return Computed(values | {"cells": len(cells), "per cell": min(cells)}, len(bins))


def _texts_per_topic(paths: Sequence[Path]) -> Computed:
    topics = Counter(document.topic for document in read_records(paths[0], Document))
    return Computed({"per topic": min(topics.values())}, topics.total())


def _correlation(paths: Sequence[Path], ours: Sequence[float], theirs: Sequence[float]) -> Computed:
    return Computed({"Pearson": float(pearson(np.asarray(ours), np.asarray(theirs)))}, len(ours))


# Longest Supported Subsequence (2308.12157)


@cache
def _lss_pairs(path: Path) -> list[LssExample]:
    return merge(read_published_table(str(path)), Counter(), "all")


@cache
def _lss_correlations(path: Path) -> dict[tuple[str, str], float]:
    pairs = [
        ClaimPair(
            id=str(n), group=str(n), **e.model_dump(include={"reference", "claim", "annotations"})
        )
        for n, e in enumerate(_lss_pairs(path))
    ]
    metrics = {"ROUGE-1": Rouge("rouge1"), "ROUGE-L": Rouge(), "BLEU": Bleu(blanks=True)}
    experiment = LssMetrics([str(path)], metrics, control=False)
    ratings = np.asarray([target_of(pair, "rating") for pair in pairs])
    values = {}
    for column in score_columns(experiment.score_pairs(pairs)):
        entered = ~(np.isnan(column.scores) | np.isnan(ratings))
        value = pearson(column.scores[entered], ratings[entered])
        values[column.form, column.metric] = float(value)
    return values


def _lss_metrics(paths: Sequence[Path], form: str) -> Computed:
    values = {m: v for (f, m), v in _lss_correlations(paths[0]).items() if f == form}
    return Computed(values, len(_lss_pairs(paths[0])))


def _lss_agreement(paths: Sequence[Path]) -> Computed:
    pairs = _lss_pairs(paths[0])
    statistics = agreement(pairs)
    triples = statistics["triples"]["lss"]
    share = 100 * triples["pairs"] * triples["letters"]["all_different"] / len(pairs)
    return Computed(
        {"all different": share, "kappa": statistics["rating"]["kappa_pooled"]}, len(pairs)
    )


MEASURES: dict[str, Callable[..., Computed]] = {
    "table_4": _table_4,
    "citations": _citations,
    "rows": _rows,
    "labelled": _labelled,
    "recorded": _recorded,
    "example": _example,
    "f1": _f1,
    "e_measure": _e_measure,
    "topics": _topics,
    "texts_per_topic": _texts_per_topic,
    "correlation": _correlation,
    "lss_metrics": _lss_metrics,
    "lss_agreement": _lss_agreement,
}
