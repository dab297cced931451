"""Time of a grid of metrics and defences, relative to its slowest metric with one defence.

    python benchmarks/grid.py                                  # 200 documents, word overlap
    python benchmarks/grid.py --documents 1000
    python benchmarks/grid.py --relation checkpoints/small/relation --unli checkpoints/small/unli

Synthetic documents with given claims and passages: half normal, half repetitive, on the same
topics. Each metric runs alone with the defence ``core``, then all three metrics run with all three
defences, as in ``experiment robustness``, from the files to the report. By default word overlap
replaces the models, so that only the grid is measured; checkpoints add the cost of models. Runs do
not share caches. Target: at most 1.3 times the slowest metric alone. ``--profile`` prints a profile
of the grid.
"""

import argparse
import contextlib
import cProfile
import io
import pstats
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cli.command import run_command
from components.encoding import Pair
from components.overlap import new_words
from eval.decompose.given import Given
from eval.defences import Defence
from eval.experiments.robustness.robustness import Robustness
from eval.models.encoder import Entailment, Unli
from eval.models.lss import SharedWords
from eval.pipeline import Pipeline
from eval.report.render import write_page
from eval.retrieve.given import Given as GivenPassages
from eval.select.core import Core
from eval.select.core_published import CorePublished
from eval.verify.factreasoner.stage import FactReasoner
from eval.verify.nli import NLI
from eval.verify.supported_share import SupportedShare
from records import Claim, Document, Passage, write_jsonl

TARGET = 1.3
BLEACHED = ["{topic} is a person.", "{topic} exists.", "{topic} has a name.", "{topic} is known."]
_VERBS = ("painted", "founded", "visited", "studied", "praised", "left", "wrote about", "owned")


class WordOverlap:
    """Relation and UNLI model by the share of the hypothesis's words in the premise."""

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """The share as entailment, the rest as neutral, shape (n, 3)."""
        p = 0.98 * self.likelihood(pairs)
        return np.stack([p, 1 - p, np.zeros(len(pairs))], axis=1).reshape(-1, 3)

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """The share, shape (n,)."""
        new_flags = [new_words(hypothesis.split(), premise) for premise, hypothesis in pairs]
        return np.array([1 - sum(is_new) / max(1, len(is_new)) for is_new in new_flags])


def documents(count: int, claims: int, passages: int) -> dict[str, list[Document]]:
    """Kind → documents: one normal and one repetitive document per topic."""
    draw = random.Random(0)
    result: dict[str, list[Document]] = {"normal": [], "repetitive": []}
    for number in range(count // 2):
        topic = f"Person {number}"
        facts = [
            f"{topic} {draw.choice(_VERBS)} place {draw.randrange(10**6)} in {1800 + place}."
            for place in range(claims + passages * 3)
        ]
        shared = {
            "topic": topic,
            "passages": [
                Passage(id=f"p{n}", title=topic, text=" ".join(facts[n::passages]))
                for n in range(passages)
            ],
            "generator": f"g{number % 3}",
            "bin": ("rare", "often")[number % 2],
        }
        texts = {
            # About half of them are in a passage.
            "normal": [
                f if draw.random() < 0.5 else f.replace("place", "town") for f in facts[:claims]
            ],
            "repetitive": [f"{topic} {verb} place." for verb in draw.choices(_VERBS, k=claims)],
        }
        for kind, sentences in texts.items():
            kind_claims = [
                Claim(id=f"c{n}", text=s, sentence=n, source=s, label=draw.choice(["S", "NS"]))
                for n, s in enumerate(sentences)
            ]
            fields = {"text": " ".join(sentences), "claims": kind_claims, "kind": kind, **shared}
            result[kind].append(Document(id=f"{kind}-{number}", **fields))
    return result


def models(options: argparse.Namespace, folder: Path) -> tuple[object, object]:
    """The relation and the UNLI model of a run."""
    if options.relation is None:
        return WordOverlap(), WordOverlap()
    cache = folder / "answers.sqlite"
    return Entailment(options.relation, cache=cache), Unli(options.unli, cache=cache)


def metrics(relation: object) -> dict[str, Pipeline]:
    """Three metrics over the same claims and passages."""
    verifiers = {
        "NLI": NLI(relation),
        "FactReasoner": FactReasoner(relation, versions=[1]),
        "supported share": SupportedShare(SharedWords()),
    }
    decompose, retrieve = Given(), GivenPassages()
    return {name: Pipeline(decompose, [verifier], retrieve) for name, verifier in verifiers.items()}


def defences(relation: object, unli: object) -> dict[str, Defence]:
    """Three defences with the same models."""
    return {
        "core": Defence(select=Core(relation, unli, BLEACHED)),
        "core_published": Defence(select=CorePublished(relation, unli, BLEACHED, relevance=None)),
        "deduplicated": Defence(
            select=Core(relation, weighting="uniform", entail_threshold=0.6),
        ),
    }


def timed(
    options: argparse.Namespace, files: Mapping[str, Path], names: Sequence[str], single: bool
) -> tuple[float, float]:
    """Wall-clock and processor seconds of a run.

    Args:
        names: names of the metrics; empty: all.
        single: run only the first defence.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        relation, unli = models(options, folder)
        pipelines = {n: p for n, p in metrics(relation).items() if n in names or not names}
        chosen = dict(list(defences(relation, unli).items())[: 1 if single else None])
        texts = {kind: [str(path)] for kind, path in files.items()}
        experiment = Robustness(texts, pipelines, defences=chosen)
        clock, processor = time.perf_counter(), time.process_time()
        with contextlib.redirect_stderr(io.StringIO()):
            file = experiment.run(folder / "run", {})
        write_page(experiment.page, file, folder / "run")
        return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    """Parse the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--claims", type=int, default=20, help="claims per document")
    parser.add_argument("--passages", type=int, default=5, help="passages per document")
    parser.add_argument("--relation", help="checkpoint; default: word overlap")
    parser.add_argument("--unli", help="checkpoint; default: word overlap")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if (options.relation is None) != (options.unli is None):
        parser.error("set both --relation and --unli, or neither")
    with tempfile.TemporaryDirectory() as temporary:
        by_kind = documents(options.documents, options.claims, options.passages)
        files = {kind: Path(temporary) / f"{kind}.jsonl" for kind in by_kind}
        small_files = {kind: Path(temporary) / f"{kind}-few.jsonl" for kind in by_kind}
        for kind, kind_documents in by_kind.items():
            write_jsonl(files[kind], kind_documents)
            write_jsonl(small_files[kind], kind_documents[:4])
        timed(options, small_files, (), single=False)  # warm up
        names = list(metrics(WordOverlap()))
        rows = {f"{name}, core": timed(options, files, [name], single=True) for name in names}
        slowest = [max(column) for column in zip(*rows.values(), strict=True)]
        profile = cProfile.Profile()
        if options.profile:
            profile.enable()
        rows["all, three defences"] = timed(options, files, (), single=False)
        profile.disable()
    print(f"{'run':28} {'seconds':>9} {'processor':>10}")
    for name, (clock, processor) in rows.items():
        print(f"{name:28} {clock:9.1f} {processor:10.1f}")
    ratios = np.divide(rows["all, three defences"], slowest)
    print(f"{'times the slowest alone':28} {ratios[0]:9.2f} {ratios[1]:10.2f}   (target: {TARGET})")
    if options.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(70)


if __name__ == "__main__":
    run_command(main)
