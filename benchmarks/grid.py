"""What a grid of metrics and defences costs beside its slowest metric with one defence.

    python benchmarks/grid.py                                  # 200 documents, words for models
    python benchmarks/grid.py --documents 1000
    python benchmarks/grid.py --relation checkpoints/small/relation --unli checkpoints/small/unli

Documents of our own with given claims and passages: half honest, half repetitive, on the same
topics. Each metric runs alone with the defence ``core``, then all three with all three defences, as
``experiment robustness`` runs them, from the files to the report. By default words that two texts
share stand in for models, so that what is measured is the grid itself; a checkpoint adds what
models cost. Each run has caches of its own. The aim: at most 1.3 times the slowest metric alone.
``--profile`` prints where the time of the grid goes.
"""

from __future__ import annotations

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
from eval.experiments.robustness.robustness import Robustness
from eval.models.encoder import Entailment, Unli
from eval.models.lss import SharedWords
from eval.pipeline import Pipeline
from eval.report.render import write_page
from eval.retrieve.given import Given as GivenPassages
from eval.select.core import Core
from eval.select.core_published import CorePublished
from eval.stages import Selector
from eval.verify.factreasoner.stage import FactReasoner
from eval.verify.nli import NLI
from eval.verify.supported_share import SupportedShare
from records import Claim, Document, Passage, write_jsonl

AIM = 1.3
BLEACHED = ["{topic} is a person.", "{topic} exists.", "{topic} has a name.", "{topic} is known."]
_VERBS = ("painted", "founded", "visited", "studied", "praised", "left", "wrote about", "owned")


class Words:
    """Relation and UNLI model: the share of the hypothesis's words that the premise has."""

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Entailment by the share, the rest neutral, shape (n, 3)."""
        p = 0.98 * self.likelihood(pairs)
        return np.stack([p, 1 - p, np.zeros(len(pairs))], axis=1).reshape(-1, 3)

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """The share, shape (n,)."""
        new = [new_words(hypothesis.split(), premise) for premise, hypothesis in pairs]
        return np.array([1 - sum(own) / max(1, len(own)) for own in new])


def documents(count: int, claims: int, passages: int) -> dict[str, list[Document]]:
    """Kind to its documents: an honest and a repetitive one a topic."""
    draw = random.Random(0)
    found: dict[str, list[Document]] = {"normal": [], "repetitive": []}
    for number in range(count // 2):
        topic = f"Person {number}"
        facts = [
            f"{topic} {draw.choice(_VERBS)} place {draw.randrange(10**6)} in {1800 + place}."
            for place in range(claims + passages * 3)
        ]
        own = [
            Passage(id=f"p{n}", title=topic, text=" ".join(facts[n::passages]))
            for n in range(passages)
        ]
        said = {
            # About half of them stand in a passage
            "normal": [
                f if draw.random() < 0.5 else f.replace("place", "town") for f in facts[:claims]
            ],
            "repetitive": [f"{topic} {verb} place." for verb in draw.choices(_VERBS, k=claims)],
        }
        for kind, texts in said.items():
            made = [
                Claim(id=f"c{n}", text=t, sentence=n, source=t, label=draw.choice(["S", "NS"]))
                for n, t in enumerate(texts)
            ]
            more = {
                "kind": kind,
                "generator": f"g{number % 3}",
                "bin": ("rare", "often")[number % 2],
            }
            text = " ".join(texts)
            given = {"topic": topic, "text": text, "claims": made, "passages": own, **more}
            found[kind].append(Document(id=f"{kind}-{number}", **given))
    return found


def models(options: argparse.Namespace, folder: Path) -> tuple[object, object]:
    """The relation model and the UNLI model of a run."""
    if options.relation is None:
        return Words(), Words()
    cache = folder / "answers.sqlite"
    return Entailment(options.relation, cache=cache), Unli(options.unli, cache=cache)


def metrics(relation: object) -> dict[str, Pipeline]:
    """Three metrics of the same claims and passages."""
    verifiers = {
        "NLI": NLI(relation),
        "FactReasoner": FactReasoner(relation, versions=[1]),
        "supported share": SupportedShare(SharedWords()),
    }
    decompose, retrieve = Given(), GivenPassages()
    return {name: Pipeline(decompose, [verifier], retrieve) for name, verifier in verifiers.items()}


def defences(relation: object, unli: object) -> dict[str, Selector]:
    """Three defences of the same models."""
    return {
        "core": Core(relation, unli, BLEACHED),
        "core_published": CorePublished(relation, unli, BLEACHED, relevance=None),
        "deduplicated": Core(relation, weighting="uniform", entail_threshold=0.6),
    }


def timed(
    options: argparse.Namespace, files: Mapping[str, Path], some: Sequence[str], one: bool
) -> tuple[float, float]:
    """Seconds on the clock and of the processor for a run of some metrics.

    Args:
        some: names of the metrics; all where it is empty.
        one: with the first defence alone.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        relation, unli = models(options, folder)
        own = {n: p for n, p in metrics(relation).items() if n in some or not some}
        held = dict(list(defences(relation, unli).items())[: 1 if one else None])
        texts = {kind: [str(path)] for kind, path in files.items()}
        experiment = Robustness(own, texts, held)
        clock, processor = time.perf_counter(), time.process_time()
        with contextlib.redirect_stderr(io.StringIO()):
            file = experiment.run(folder / "run", {})
        write_page(experiment.page, file, folder / "run")
        return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    """Parse the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--claims", type=int, default=20, help="of a document")
    parser.add_argument("--passages", type=int, default=5, help="of a document")
    parser.add_argument("--relation", help="checkpoint instead of shared words")
    parser.add_argument("--unli", help="checkpoint instead of shared words")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if (options.relation is None) != (options.unli is None):
        parser.error("--relation and --unli: give both or neither")
    with tempfile.TemporaryDirectory() as place:
        made = documents(options.documents, options.claims, options.passages)
        files = {kind: Path(place) / f"{kind}.jsonl" for kind in made}
        few = {kind: Path(place) / f"{kind}-few.jsonl" for kind in made}
        for kind, own in made.items():
            write_jsonl(files[kind], own)
            write_jsonl(few[kind], own[:4])
        timed(options, few, (), one=False)  # what is loaded once is loaded
        names = list(metrics(Words()))
        rows = {f"{name}, core": timed(options, files, [name], one=True) for name in names}
        slowest = [max(column) for column in zip(*rows.values(), strict=True)]
        profile = cProfile.Profile()
        if options.profile:
            profile.enable()
        rows["all, three defences"] = timed(options, files, (), one=False)
        profile.disable()
    print(f"{'run':28} {'seconds':>9} {'processor':>10}")
    for name, (clock, processor) in rows.items():
        print(f"{name:28} {clock:9.1f} {processor:10.1f}")
    ratios = [own / most for own, most in zip(rows["all, three defences"], slowest, strict=True)]
    print(f"{'times the slowest alone':28} {ratios[0]:9.2f} {ratios[1]:10.2f}   (aim: {AIM})")
    if options.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(70)


if __name__ == "__main__":
    run_command(main)
