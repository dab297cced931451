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
from eval.experiments.dfactscore.dfactscore_values import D_FACTSCORE, FACTSCORE, VALUES
from eval.experiments.factreasoner.factreasoner_values import collect_rows, compute_columns
from eval.experiments.lss.lss_metrics import LssMetrics, score_columns, target_of
from eval.experiments.lss.lss_pairs import ClaimPair
from eval.metrics.dfactscore_files import read_texts, reported
from eval.metrics.document import f1_at_k, median_claims
from eval.metrics.judged_texts import from_file
from eval.metrics.lss_agreement import agreement, merge, read_published_table
from eval.pipeline import Pipeline
from eval.similarity.bleu import Bleu
from eval.similarity.rouge import Rouge
from eval.stages import Verifier
from eval.verify.factreasoner.graph import table
from eval.verify.factreasoner.inference import solve
from eval.verify.factreasoner.network import Factor, Network
from eval.verify.labels import Labels
from eval.verify.recorded import Recorded
from records import Document, LssExample, UserError, read_records
from records.reading import load_json

ABSENT = "public, not available here"


class PrintedRow(BaseModel):
    """Figures that a paper prints, and ours; ``printed.yaml`` explains its fields."""

    model_config = ConfigDict(extra="forbid")

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
    ours: dict[str, float] = {}
    n: int | None = None
    state: str = ""


class Computed(NamedTuple):
    """Our figures, the number of rows, and the figures that the file itself states."""

    values: Mapping[str, float]
    n: int | None = None
    stated: Mapping[str, str] = {}


def read_rows() -> list[PrintedRow]:
    """Read ``printed.yaml``: per table, the shared fields and its rows."""
    content = yaml.safe_load(Path(__file__).with_name("printed.yaml").read_text("utf-8"))
    return [
        PrintedRow(**{**part, "name": name, **row})
        for part in content
        for name, row in part.pop("rows").items()
    ]


def compare(folder: Path) -> Iterator[PrintedRow]:
    """Yield the rows with our figures; files are searched by name anywhere below ``folder``.

    Of several files of one name, the largest is read: released files exist cut and whole.
    """
    files = sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: -p.stat().st_size)
    for row in read_rows():
        paths = [_find(names, files) for names in row.files]
        if None in paths:
            absent = f"{ABSENT}: {row.source}: {row.files[paths.index(None)]}"
            row.state = absent if "://" in row.source else row.source
        else:
            try:
                row.state = _fill(row, MEASURES[row.measure](paths, **row.options))
            except UserError as error:
                row.state = f"cannot be read: {error}"
        yield row


def _find(names: str, files: Sequence[Path]) -> Path | None:
    ends = [f"/{name.strip()}" for name in names.split("|")]
    return next((p for end in ends for p in files if f"/{p.as_posix()}".endswith(end)), None)


def as_printed(value: float, printed: str) -> str:
    """Format a value with the digits of a printed one."""
    return f"{value:.{len(printed.partition('.')[2])}f}"


def _fill(row: PrintedRow, computed: Computed) -> str:
    equal = "equal to all printed digits" if row.prints else "equal to the file's own figures"
    row.n, row.prints = computed.n, row.prints or dict(computed.stated)
    row.ours = {name: computed.values[name] for name in row.prints}
    other = [k for k, text in row.prints.items() if as_printed(row.ours[k], text) != text]
    state = f"differs in {', '.join(other)}" if other else equal
    if row.whole and row.n and row.n < row.whole:
        return f"first rows, {row.n:,} of {row.whole:,}: {state}"
    return f"{state}: {row.because}" if other and row.because else state


def _mean(values: Sequence[float | None]) -> float:
    return float(nan_mean(np.asarray([math.nan if v is None else v for v in values], dtype=float)))


def _dfactscore(paths: Sequence[Path]) -> Computed:
    files = {"file": [str(path) for path in paths]}
    texts = [from_file(document) for document in read_texts(files)]
    shares = {"FS": FACTSCORE, "D-FS": D_FACTSCORE, "recall": ("citation_recall", None)}
    means = {"entities": ("entities", None)} | shares
    values = {name: _mean([VALUES[m].value(t) for t in texts]) for name, m in means.items()}
    # Groups are not released, their mean number is.
    stated = {f"{name} (recorded)": value for name, value in reported(files)["file"].items()}
    return Computed(
        {k: 100 * v if k in shares or "citation" in k else v for k, v in (values | stated).items()},
        len(texts),
    )


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


def _topics(paths: Sequence[Path]) -> Computed:
    bins = list(load_json(paths[0]).values())
    # The file goes through Table 1's groups, and in each through the bins.
    cells = [len(list(cell)) for _, cell in groupby(bins)]
    values = {"topics": len(bins), "per bin": min(Counter(bins).values())}
    return Computed(values | {"cells": len(cells), "per cell": min(cells)}, len(bins))


def _splits(paths: Sequence[Path]) -> Computed:
    sizes = [len(path.read_text("utf-8").splitlines()) for path in paths]
    values = dict(zip(("train", "dev", "test"), sizes, strict=True))
    return Computed(values | {"topics": sum(sizes)}, sum(sizes))


def _texts_per_topic(paths: Sequence[Path]) -> Computed:
    topics = Counter(document.topic for document in read_records(paths[0], Document))
    return Computed({"per topic": min(topics.values())}, topics.total())


def _correlation(paths: Sequence[Path], ours: Sequence[float], theirs: Sequence[float]) -> Computed:
    return Computed({"Pearson": float(pearson(np.asarray(ours), np.asarray(theirs)))}, len(ours))


@cache
def _lss_pairs(path: Path) -> list[LssExample]:
    return merge(read_published_table(str(path)), Counter(), "all")


@cache
def _lss_correlations(path: Path) -> dict[tuple[str, str], float]:
    pairs = [
        ClaimPair(**dict(example) | {"id": str(n), "group": str(n)})
        for n, example in enumerate(_lss_pairs(path))
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
    kappa = statistics["rating"]["kappa_pooled"]
    return Computed({"all different": share, "kappa": kappa}, len(pairs))


MEASURES: dict[str, Callable[..., Computed]] = {
    measure.__name__.removeprefix("_"): measure
    for measure in (
        *(_dfactscore, _labelled, _recorded, _example, _f1, _topics, _splits, _texts_per_topic),
        *(_correlation, _lss_metrics, _lss_agreement),
    )
}
