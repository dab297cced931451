"""Does a text's factual precision follow the share of its sentences that people call supported?

    python benchmarks/labelled_texts.py downloads/wikibio_gpt3/wikibio.json
    python benchmarks/labelled_texts.py downloads/faithbench/data_for_release/*.json --spans \\
        --judges MiniLM=checkpoints/ready/relation

Reads sentences with people's labels and evidence, in any format of ``experiment agreement``, and
joins those of one unit (person) to a text. With ``--spans`` the texts are FaithBench's summaries,
whose sentences are labelled by the spans that people marked.

Prints, for each judge, for all judges together, for the word test and for baselines: the shares of
true and of false sentences that are accepted and the AUROC of single sentences; Kendall's τ-b of
the texts' precision and people's share, and the mean absolute difference of the two, without and
with Core (equal weights). Intervals are bootstrap intervals over units (people, sources).
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np
from people_truth import overlap, print_single_facts, show, tau_b

from cli.command import run_command
from components.sentences import split_sentences
from components.statistics import bootstrap
from eval.decompose.given import Given
from eval.experiments.agreement.sets import read_sets, unit_of
from eval.models.encoder import Entailment
from eval.models.joint import Joint
from eval.pipeline import Pipeline
from eval.select.controls import DistinctWords
from eval.select.core import Core
from eval.stages import Selector, Verifier
from eval.verify.nli import NLI
from eval.verify.word_test import WordTest
from records import Claim, Document, iter_rows, read_records

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
    fields = {"claims": numbered, "passages": list(passages.values()), "topic": unit}
    return Document(id=unit, text=text, **fields)


def read_summaries(files: Sequence[str]) -> Iterator[Document]:
    """FaithBench's summaries with their sentences as claims; the topic is the source.

    A sentence is false if a part of it is marked as unwanted. It is excluded if its worst mark is
    questionable, and if it is not in the text as it is, since emphasis was removed.
    """
    rows = ((path, row) for path in files for _, row in iter_rows(path))
    documents = (document for path in files for document in read_records(path, Document))
    for number, (document, (path, row)) in enumerate(zip(documents, rows, strict=True)):
        claims, end = [], 0
        for sentence in split_sentences(row["summary"]):
            start = row["summary"].find(sentence, end)
            if start < 0:
                continue
            end = start + len(sentence)
            marks = {
                label.partition(".")[0]
                for span in row["annotations"]
                if span["summary_start"] < end and span["summary_end"] > start
                for label in span["label"]
            }
            if "Unwanted" in marks or "Questionable" not in marks:
                label = "NS" if "Unwanted" in marks else "S"
                claims.append(Claim(id=f"c{len(claims)}", text=sentence, label=label))
        if claims:
            fields = {"id": f"{path} {number}", "claims": claims, "topic": unit_of(document)}
            yield document.model_copy(update=fields)


def people_share(document: Document) -> float:
    return fmean(claim.label == "S" for claim in document.claims)


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
        error = float(np.abs(scores[rows] - truth[rows]).mean())
        return {"τ": tau_b(scores[rows], truth[rows]), "mean error": error}

    columns = bootstrap(measures, units)
    measured = ", ".join(
        f"{n} {show(value['value'], value['ci95'])}" for n, value in columns.items()
    )
    print(f"{name}: mean {scores.mean():.3f}, {measured}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Score the texts and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="sentences with labels and evidence")
    parser.add_argument("--judges", nargs="+", default=READY, help="NAME=CHECKPOINT")
    parser.add_argument("--cache", help="SQLite file for the models' answers")
    parser.add_argument("--spans", action="store_true", help="the files are FaithBench's summaries")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    texts = list(read_summaries(options.files)) if options.spans else read_texts(options.files)
    shares, units = [people_share(text) for text in texts], [text.topic for text in texts]
    sentences = sum(len(text.claims) for text in texts)
    print(f"{len(texts)} texts, {sentences} sentences, {len(set(units))} units")
    print(f"share that people call supported: {fmean(shares):.3f}")
    for name, (verifier, selector) in judges(
        dict(pair.split("=", 1) for pair in options.judges), options.cache
    ).items():
        scored = Pipeline(Given(), [verifier], select=selector).score(texts)
        print(name)
        print_single_facts(scored)
        for place, selection in enumerate(("all claims", "kept claims")):
            precision = [result.scores[place].precision for result in scored]
            print_column(f"{name}, {selection}", precision, shares, units)
    print_column("word overlap", [fmean(overlap(text)) for text in scored], shares, units)
    print_column("number of claims", [float(len(t.claims)) for t in texts], shares, units)
    print(f"{time.monotonic() - start:.0f} seconds")


if __name__ == "__main__":
    run_command(main)
