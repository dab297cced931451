"""Does a text's factual precision follow the share of its sentences that people call supported?

    python benchmarks/labelled_texts.py downloads/wikibio_gpt3/wikibio.json
    python benchmarks/labelled_texts.py downloads/faithbench/data_for_release --judges \\
        MiniLM=checkpoints/ready/relation

Reads sentences with people's labels and evidence, in any format of ``experiment agreement``, and
joins those of one unit (person, summary) to a text. Prints, for each judge, for all judges
together, for the word test and for baselines: Kendall's τ-b of the texts' precision and people's
share, and the mean absolute difference of the two, without and with Core (equal weights); and the
shares of true and of false sentences that are accepted. Intervals are bootstrap intervals over
units.
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from scipy.stats import kendalltau

from cli.command import run_command
from components.overlap import covered_share
from components.statistics import bootstrap, ratio
from eval.decompose.given import Given
from eval.experiments.agreement.sets import read_sets, unit_of
from eval.metrics.document import Scored
from eval.models.encoder import Entailment
from eval.models.joint import Joint
from eval.pipeline import Pipeline
from eval.select.controls import DistinctWords
from eval.select.core import Core
from eval.stages import Selector, Verifier
from eval.verify.nli import NLI
from eval.verify.word_test import WordTest
from records import Document

READY = ["MiniLM=checkpoints/ready/relation", "MPNet=checkpoints/ready/relation_mpnet"]


def read_texts(files: Sequence[str]) -> list[Document]:
    """One document per unit, with its labelled sentences as claims and their evidence."""
    (sentences,) = read_sets("texts", files, ("claims",), Counter())
    by_unit: dict[str, list[Document]] = defaultdict(list)
    for document in sentences.documents:
        by_unit[unit_of(document)].append(document)
    return [joined(unit, rows) for unit, rows in sorted(by_unit.items())]


def joined(unit: str, rows: Sequence[Document]) -> Document:
    """The sentences of a unit as one document."""
    claims = [claim for row in rows for claim in row.claims]
    numbered = [
        claim.model_copy(update={"id": f"c{place}", "contexts": None})
        for place, claim in enumerate(claims)
    ]
    passages = {passage.text: passage for row in rows for passage in row.passages or []}
    text = " ".join(claim.text for claim in claims)
    fields = {"claims": numbered, "passages": list(passages.values()), "topic": rows[0].topic}
    return Document(id=unit, text=text, **fields)


def people_share(document: Document) -> float:
    return fmean(claim.label == "S" for claim in document.claims)


def overlap(document: Document) -> float:
    evidence = [passage.text for passage in document.passages]
    shares = [covered_share(claim.text, evidence, lambda stem: 1.0) for claim in document.claims]
    return fmean(shares)


def judges(named: dict[str, str], cache: str | None) -> dict[str, tuple[Verifier, Selector]]:
    """The verifier and the selector of each column."""
    models = {name: Entailment(checkpoint, cache=cache) for name, checkpoint in named.items()}
    if len(models) > 1:
        models["all judges"] = Joint(list(models.values()))
    columns: dict[str, tuple[Verifier, Selector]] = {
        name: (NLI(model), Core(model, weighting="uniform", entail_threshold=0.6))
        for name, model in models.items()
    }
    return columns | {"word test": (WordTest(), DistinctWords())}


def print_column(
    name: str, values: Sequence[float | None], shares: Sequence[float], units: Sequence[str]
) -> None:
    """Print τ-b and the mean absolute difference; a text without a score has 0."""
    scores, truth = np.array([value or 0.0 for value in values]), np.array(shares)

    def measures(rows: np.ndarray) -> dict[str, float]:
        tau = kendalltau(scores[rows], truth[rows]).statistic
        return {"τ": float(tau), "mean error": float(np.abs(scores[rows] - truth[rows]).mean())}

    columns = bootstrap(measures, np.array(units))
    measured = (
        f"{measure} {value['value']:.3f} [{value['ci95'][0]:.3f}, {value['ci95'][1]:.3f}]"
        for measure, value in columns.items()
    )
    print(f"{name}: mean {scores.mean():.3f}, {', '.join(measured)}", flush=True)


def print_accepted(name: str, scored: Sequence[Scored]) -> None:
    """Print the shares of true and of false sentences that are accepted."""
    rows = [
        (verdict.label == "supported", labels[verdict.claim], result.document.id)
        for result in scored
        for labels in [{claim.id: claim.label for claim in result.claims}]
        for verdict in result.verdicts
    ]
    for label, words in (("S", "true"), ("NS", "false")):
        accepted = np.array(
            [float(is_supported) for is_supported, truth, _ in rows if truth == label]
        )
        units = [unit for _, truth, unit in rows if truth == label]
        share = ratio(accepted, np.ones(len(accepted)), units)
        interval = f"[{share.ci95[0]:.3f}, {share.ci95[1]:.3f}]"
        print(f"{name}: accepted of {words} {share.value:.3f} {interval}, n {len(accepted)}")


def main(arguments: list[str] | None = None) -> None:
    """Score the texts and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="sentences with labels and evidence")
    parser.add_argument("--judges", nargs="+", default=READY, help="NAME=CHECKPOINT")
    parser.add_argument("--cache", help="SQLite file for the models' answers")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    texts = read_texts(options.files)
    shares, units = [people_share(text) for text in texts], [text.id for text in texts]
    print(f"{len(texts)} texts, {sum(len(text.claims) for text in texts)} sentences")
    print(f"share that people call supported: {fmean(shares):.3f}")
    for name, (verifier, selector) in judges(
        dict(pair.split("=", 1) for pair in options.judges), options.cache
    ).items():
        scored = Pipeline(Given(), [verifier], select=selector).score(texts)
        print_accepted(name, scored)
        for place, selection in enumerate(("all claims", "kept claims")):
            precision = [result.scores[place].precision for result in scored]
            print_column(f"{name}, {selection}", precision, shares, units)
    print_column("word overlap", [overlap(text) for text in texts], shares, units)
    print_column("number of claims", [float(len(t.claims)) for t in texts], shares, units)
    print(f"{time.monotonic() - start:.0f} seconds")


if __name__ == "__main__":
    run_command(main)
