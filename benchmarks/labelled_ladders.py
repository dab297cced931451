"""Ladders of sentences that a model wrote and people labelled, for the robustness experiment.

    python benchmarks/labelled_ladders.py downloads/wikibio_gpt3/wikibio.json
    python -m data_builders attacks --config configs/data/small/attacks_labelled.yaml
    python -m eval experiment robustness --output runs/labelled_ladders \\
        --config configs/experiments/small/robustness_labelled.yaml

Of each person with K true and K false sentences, ``ladder.jsonl`` has K + 1 texts of K sentences,
of which 0 to K are true; gold F1 is that share. ``complete.jsonl`` has the true texts, for attacks,
and ``minor.jsonl`` texts of K sentences that people call slightly inaccurate.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from labelled_texts import read_texts

from cli.command import run_command
from data_builders.written.claims.validity import SentenceClaim, join_sentences
from records import Claim, Document, gold_scores, write_jsonl

K = 3  # sentences of a text


def text_of(person: Document, kind: str, claims: Sequence[Claim]) -> Document:
    """A text of labelled sentences; a complete answer has as many facts as it has sentences."""
    sentences = [
        SentenceClaim(claim.text, claim.label, (claim.text,) if claim.label == "S" else ())
        for claim in claims
    ]
    joined = join_sentences(sentences)
    gold = gold_scores([sentence.rests_on for sentence in sentences], K, "labels")
    fields = {"id": f"{person.id} {kind} {gold.f1:.2f}", "kind": kind, "rung": gold.f1}
    fields |= {"text": joined.text, "claims": joined.claims, "gold": gold}
    return person.model_copy(update=fields)


def main(arguments: list[str] | None = None) -> None:
    """Write the texts and print how many there are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sentences", nargs="+", help="sentences with labels and evidence")
    parser.add_argument("--output", type=Path, default=Path("data/labelled_ladders"))
    options = parser.parse_args(arguments)
    files: dict[str, list[Document]] = {"ladder": [], "complete": [], "minor": []}
    for person in read_texts(options.sentences):
        distinct = list({claim.text: claim for claim in person.claims}.values())
        claims = random.Random(person.id).sample(distinct, len(distinct))
        true = [claim for claim in claims if claim.label == "S"][:K]
        false = [claim for claim in claims if claim.label == "NS"][:K]
        minor = [claim for claim in claims if claim.finer == "partially_supported"][:K]
        if len(true) < K or len(false) < K:
            continue
        rungs = [true[:number] + false[number:] for number in range(K + 1)]
        files["ladder"] += [text_of(person, "ladder", rung) for rung in rungs]
        files["complete"].append(text_of(person, "complete", true))
        if len(minor) == K:
            files["minor"].append(text_of(person, "minor", minor))
    for name, texts in files.items():
        write_jsonl(options.output / f"{name}.jsonl", texts)
        print(f"{name}: {len(texts)} texts")


if __name__ == "__main__":
    run_command(main)
