"""Do scores of texts that models wrote agree with labels on their facts? Evidence: lead paragraphs.

    LEADS=$(echo data/leads/passages_{test,dev,train}.jsonl)
    python benchmarks/people_truth.py downloads/factscore_labeled/*.jsonl --passages $LEADS
    python benchmarks/people_truth.py downloads/halogen_bios/*.jsonl --passages $LEADS --sentences 5
    python benchmarks/people_truth.py data/adversarial/*_dev.jsonl --passages $LEADS \\
        --sentences 5 --per_topic 2
    python benchmarks/people_truth.py downloads/factscore_labeled/InstructGPT.jsonl \\
        --facts downloads/factscore_labeled/PerplexityAI.jsonl --topics 50

Texts are scored whose topic has evidence: the passage with its title, or with ``--facts`` the facts
of the topic that are labelled S in other files. The claims are the labelled facts, or with
``--sentences`` the first sentences of the text, for which the columns with Core are computed too.

Prints the mean of each column by file and, for texts with labels, Kendall's τ-b of each column and
the share of facts labelled S, over all texts and within topics, and the AUROC of the labels of
single facts. Intervals are bootstrap intervals over topics.
"""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy.stats import kendalltau

from cli.command import run_command
from components.overlap import covered_share
from components.sentences import split_sentences
from components.statistics import Ratio, auroc, bootstrap, ratio
from components.words import name_key
from eval.decompose.given import Given
from eval.decompose.sentences import Sentences
from eval.models.encoder import Entailment
from eval.pipeline import Pipeline, Scored
from eval.select.core import Core
from eval.verify.about_topic import AboutTopic
from eval.verify.nli import NLI
from records import Claim, Document, Passage, UserError, read_records

LABELS = ("S", "NS")


def labelled(document: Document) -> list[Claim]:
    """The claims of a document that are labelled as supported or not."""
    return [claim for claim in document.claims or [] if claim.label in LABELS]


def evidence_by_topic(passages: Sequence[str], facts: Sequence[str]) -> dict[str, Passage]:
    """The evidence of each topic: the page of its name, or its supported facts as one passage."""
    pages = [passage for path in passages for passage in read_records(path, Passage)]
    evidence = {name_key(page.title): page for page in pages if page.title}
    supported = defaultdict(list)
    for document in (document for path in facts for document in read_records(path, Document)):
        texts = [claim.text for claim in labelled(document) if claim.label == "S"]
        supported[name_key(document.topic)] += texts
    joined = {topic: " ".join(texts) for topic, texts in supported.items() if texts}
    return evidence | {topic: Passage(id=topic, text=text) for topic, text in joined.items()}


def read_texts(options: argparse.Namespace) -> tuple[list[Document], list[str]]:
    """The texts with evidence, with their files' names."""
    evidence = evidence_by_topic(options.passages, options.facts)
    texts, files = [], []
    for path in options.texts:
        documents = read_records(path, Document)
        has_labels = any(document.claims for document in documents)
        counts: Counter[str] = Counter()
        for document in documents:
            topic = name_key(document.topic)
            if topic not in evidence or (has_labels and not labelled(document)):
                continue
            counts[topic] += 1
            if counts[topic] <= options.per_topic:
                passages = [evidence[topic]]
                fields = {"topic": topic, "passages": passages, "claims": labelled(document)}
                texts.append(document.model_copy(update=fields | {"id": f"{path} {document.id}"}))
                files.append(Path(path).stem)
    topics = sorted({text.topic for text in texts})
    if not topics:
        raise UserError(f"{options.texts[0]}: no text has evidence; pass --passages or --facts")
    drawn = random.Random(0).sample(topics, min(options.topics or len(topics), len(topics)))
    kept = [index for index, text in enumerate(texts) if text.topic in drawn]
    return [texts[index] for index in kept], [files[index] for index in kept]


def without_claims(text: Document, sentences: int) -> Document:
    """The first sentences of a text, without its labelled claims."""
    start = " ".join(split_sentences(text.text)[:sentences])
    return text.model_copy(update={"text": start, "claims": None})


def overlap(text: Scored) -> list[float]:
    """Share of the stems of each claim that the evidence contains."""
    evidence = [passage.text for passage in text.passages]
    return [covered_share(claim.text, evidence, lambda stem: 1.0) for claim in text.claims]


def score_texts(
    documents: Sequence[Document], options: argparse.Namespace
) -> tuple[list[Scored], dict[str, list[float]]]:
    """The texts scored by the plain judge, and all columns."""
    model = Entailment(options.checkpoint, cache=options.cache)
    core = Core(model, weighting="uniform", entail_threshold=0.6, repeats="unsupported")
    select = core if options.sentences else None
    columns: dict[str, list[float]] = {}
    scored: list[Scored] = []
    nli = NLI(model)
    for name, verifier in {"": nli, "plain ": AboutTopic(nli, plain=True)}.items():
        pipeline = Pipeline(Given(otherwise=Sentences()), [verifier], select=select)
        results = pipeline.score(documents)
        scored = scored or results
        by_selection = zip(*(result.scores for result in results), strict=True)
        for scores in by_selection:
            prefix = "robust " if scores[0].selection == "core" else ""
            at_k = [score.at_k(options.k).f1 or 0.0 for score in scores]
            if not prefix:
                columns[f"{name}precision"] = [score.precision or 0.0 for score in scores]
            columns[f"{name}{prefix}F1@{options.k}"] = at_k
    columns["word overlap"] = [fmean(overlap(text) or [0.0]) for text in scored]
    columns["number of claims"] = [float(len(text.claims)) for text in scored]
    return scored, columns


def show(value: float | None, interval: Sequence[float] | None) -> str:
    """A value with its interval."""
    if value is None:
        return "–"
    return f"{value:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


def tau_b(left: np.ndarray, right: np.ndarray) -> float:
    """Kendall's τ-b; NaN if a side is constant."""
    return float(kendalltau(left, right).statistic)


def within_topics(column: np.ndarray, truth: np.ndarray, topics: np.ndarray) -> Ratio:
    """Mean of τ-b over the topics in which it is defined."""
    orders = {t: tau_b(column[topics == t], truth[topics == t]) for t in set(topics)}
    defined = {topic: order for topic, order in sorted(orders.items()) if not np.isnan(order)}
    return ratio(np.array(list(defined.values())), np.ones(len(defined)), list(defined))


def print_agreement(
    columns: dict[str, list[float]], truth: np.ndarray, topics: np.ndarray, files: np.ndarray
) -> None:
    """Print τ-b of each column and the labels, over texts, within topics and over files."""
    names = sorted(set(files))
    for name, values in columns.items():
        column = np.array(values)
        tau = bootstrap(
            lambda rows, column=column: {"τ": tau_b(column[rows], truth[rows])},
            topics,
        )["τ"]
        inside = within_topics(column, truth, topics)
        means = [[values[files == file].mean() for file in names] for values in (column, truth)]
        over = tau_b(*map(np.array, means))
        within = f"{show(inside.value, inside.ci95)} (n {inside.n})"
        print(f"τ {name}: {show(tau['value'], tau['ci95'])}, within {within}, files {over:.2f}")


def print_single_facts(scored: Sequence[Scored]) -> None:
    """Print the AUROC of the judge's probability and of word overlap, against the labels."""
    rows = [
        (verdict.p, share, claim.label == "S", text.document.topic, verdict.label == "supported")
        for text in scored
        for claim, verdict, share in zip(text.claims, text.verdicts, overlap(text), strict=True)
        if verdict.p is not None
    ]
    p, shares, positive, topics, accepted = map(np.array, zip(*rows, strict=True))

    def areas(rows: np.ndarray) -> dict[str, float]:
        judge, words = (auroc(values[rows], positive[rows]) for values in (p, shares))
        return {"AUROC judge": judge, "AUROC word overlap": words, "difference": judge - words}

    print(f"facts: {len(rows)}, S {positive.mean():.3f}, topics {len(set(topics))}")
    for label, chosen in (("S", positive), ("NS", ~positive)):
        share = ratio(accepted[chosen].astype(float), np.ones(chosen.sum()), topics[chosen])
        print(f"accepted of {label}: {show(share.value, share.ci95)}, n {chosen.sum()}")
    for name, area in bootstrap(areas, topics).items():
        print(f"{name}: {show(area['value'], area['ci95'])}")


def main(arguments: list[str] | None = None) -> None:
    """Score the texts and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", help="files of texts, with or without labelled facts")
    parser.add_argument("--passages", nargs="+", default=[], help="pages, by title")
    parser.add_argument("--facts", nargs="+", default=[], help="texts whose S facts are evidence")
    parser.add_argument("--checkpoint", default="checkpoints/ready/relation")
    parser.add_argument("--cache", help="SQLite file for the model's answers")
    parser.add_argument("--sentences", type=int, help="claims are the first sentences of a text")
    parser.add_argument("--per_topic", type=int, default=1, help="texts per topic and file")
    parser.add_argument("--topics", type=int, help="draw fewer topics")
    parser.add_argument("--k", type=int, default=5, help="facts of a complete answer")
    options = parser.parse_args(arguments)
    texts, file_names = read_texts(options)
    documents = texts
    if options.sentences:
        documents = [without_claims(text, options.sentences) for text in texts]
    scored, columns = score_texts(documents, options)
    files, topics = np.array(file_names), np.array([text.topic for text in texts])
    print(f"{len(texts)} texts, {len(set(topics))} topics, {len(set(files))} files")
    facts = [labelled(text) for text in texts]
    if all(facts):
        shares = [fmean(claim.label == "S" for claim in claims) for claims in facts]
        columns = {"share labelled S": shares} | columns
    for file in sorted(set(files)):
        rows = np.flatnonzero(files == file)
        for name, values in columns.items():
            mean = ratio(np.array(values)[rows], np.ones(len(rows)), topics[rows])
            print(f"{file}, {name}: {show(mean.value, mean.ci95)}, n {len(rows)}")
    if all(facts):
        truth = np.array(columns.pop("share labelled S"))
        print_agreement(columns, truth, topics, files)
        if not options.sentences:
            print_single_facts(scored)


if __name__ == "__main__":
    run_command(main)
