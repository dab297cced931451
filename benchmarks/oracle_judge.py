"""Attacks on a judge that makes no mistakes: what remains is a fault of counting.

    python -m data_builders ladders --config configs/data/small/ladders.yaml
    python -m data_builders attacks --config configs/data/small/attacks.yaml
    python benchmarks/oracle_judge.py data/ladders/ladder.jsonl \\
        data/attacks/{few_facts,repeated,reworded,paraphrased,split,padded,alternatives}.jsonl --k 5

The oracle supports what is true, and removes a claim whose facts other claims have stated. The
score is F1@K, as in the stack, and removed claims count as unsupported. Prints the attack success
rate by kind of text.
"""

import argparse
from collections.abc import Sequence
from statistics import fmean

from cli.command import run_command
from components.gold import GOLD_K, credited_ids
from eval.experiments.robustness.robustness_cells import Text
from eval.experiments.robustness.robustness_verdicts import HonestLadders
from eval.metrics.document import f1_at_k
from records import Claim, Document, read_records


def distinct(claims: Sequence[Claim]) -> list[Claim]:
    """The claims without those that state nothing new; true claims without a fact are distinct."""
    stated: set[str] = set()
    texts: set[str] = set()
    kept = []
    for claim in claims:
        facts = credited_ids(claim) if claim.label == "S" else set()
        if claim.text not in texts and (not facts or facts - stated):
            kept.append(claim)
        stated |= facts
        texts.add(claim.text)
    return kept


def score(document: Document, k: int) -> float:
    """F1@K of a text whose claims are judged without mistakes."""
    claims = document.claims or []
    supported = sum(claim.label == "S" for claim in distinct(claims))
    return f1_at_k(supported / len(claims), supported, k) if claims else 0.0


def main(arguments: list[str] | None = None) -> None:
    """Print the success rate of each file of attacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ladder")
    parser.add_argument("attacks", nargs="+")
    parser.add_argument("--k", type=int, default=GOLD_K, help="facts of a complete answer")
    options = parser.parse_args(arguments)

    def scored(path: str) -> list[Text]:
        return [Text(d, score(d, options.k)) for d in read_records(path, Document) if d.gold]

    ladders = HonestLadders({"ladder": scored(options.ladder)}, seed=0)
    print(f"τ on the ladder: {fmean(ladders.orders('ladder').values()):.2f}")
    for path in options.attacks:
        outcomes = ladders.outcomes(scored(path)).values()
        rate = fmean(outcome.success for outcome in outcomes)
        print(f"{path}: success rate {rate:.2f}, n {len(outcomes)}")


if __name__ == "__main__":
    run_command(main)
