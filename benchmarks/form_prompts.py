"""Create FActScore prompts with correct answers, to train a small model on multi-claim prompts.

    python benchmarks/form_prompts.py --output data/forms \\
      --documents data/kb/generations_train.jsonl
    python -m train fit --config configs/train/laptop/adversary_info.yaml --name forms \\
      --export_to checkpoints/forms --model.prompt_template '{topic}' --model.max_length 1100 \\
      --model.lr 5e-4 --data.train data/forms/train.jsonl --data.dev data/forms/dev.jsonl
    python benchmarks/pipeline.py --documents data/kb/generations_test.jsonl --limit 40 \\
      --configs configs/eval/small/factscore.yaml --model checkpoints/forms

Each sentence of texts with labelled ``sentences`` is a claim. The prompts cover one claim (half of
them false) or the first five claims of a text. A record has the prompt as ``topic`` and the answer
as ``text``, the format for training an adversary.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from cli.command import run_command
from eval.pipeline import read_pipeline
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ClaimToJudge, select_passages
from eval.verify.several_claims import PROMPT
from records import Document, Generation, UserError, read_records, write_jsonl

CONFIG = Path(__file__).parents[1] / "configs/eval/small/factscore.yaml"
# Claims per prompt; one-claim prompts per label; multi-claim prompts with and without a false
# claim; dev rows.
SEVERAL, ALONE, MIXED, TRUE, DEV = 5, 130, 170, 60, 30


def prompts(texts: Sequence[Generation], config: Path, rng: random.Random) -> list[dict[str, str]]:
    """Records of prompts and answers in random order.

    Args:
        texts: texts with labelled ``sentences``; skipped if the pipeline splits them differently.
        config: configuration of a pipeline whose first verifier is FActScore.
    """
    documents = [Document(id=str(n), **text.model_dump()) for n, text in enumerate(texts)]
    pipeline, _ = read_pipeline(str(config))
    verifier = pipeline.verify[0]
    verifier.several.prompt = Prompt(PROMPT)
    claims, passages = pipeline.retrieve(documents, pipeline.claims(documents))
    single: list[tuple[str, bool]] = []
    several: list[tuple[str, list[bool]]] = []
    inputs_of_texts = zip(documents, texts, claims, passages, strict=True)
    for document, text, text_claims, text_passages in inputs_of_texts:
        labels = [sentence.true for sentence in text.sentences or ()]
        by_id = {passage.id: passage for passage in text_passages}
        inputs = [ClaimToJudge(0, document, c, select_passages(c, by_id)) for c in text_claims]
        if len(labels) != len(inputs) or any(isinstance(x.passages, str) for x in inputs):
            continue
        if len(inputs) > 1 and int(document.id) % 5:
            messages = verifier.several.messages(inputs[:SEVERAL])
            several.append((messages[0]["content"], labels[:SEVERAL]))
        prompt_texts = [verifier.messages(x)[0]["content"] for x in inputs]
        single += zip(prompt_texts, labels, strict=True)
    rng.shuffle(single)
    pairs = []
    for label in (True, False):
        pairs += [(text, str(true)) for text, true in single if true is label][:ALONE]
    for all_true, count in ((False, MIXED), (True, TRUE)):
        chosen = [(text, _answer(labels)) for text, labels in several if all(labels) is all_true]
        pairs += chosen[:count]
    rng.shuffle(pairs)
    return [{"topic": prompt, "text": answer} for prompt, answer in pairs]


def _answer(truth: Sequence[bool]) -> str:
    return "\n".join(f"{number}. [{true}]" for number, true in enumerate(truth, start=1))


def main(argv: Sequence[str] | None = None) -> None:
    """Write ``train.jsonl`` and ``dev.jsonl``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", required=True, help="texts with labelled sentences")
    parser.add_argument("--config", type=Path, default=CONFIG, help="pipeline with FActScore")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(argv)
    rng = random.Random(1)
    generations = read_records(options.documents, Generation)
    texts = [x for x in generations if x.kind == "normal" and len(x.sentences or ()) > 1]
    rng.shuffle(texts)
    records = prompts(texts, options.config, rng) if texts else []
    if len(records) <= DEV:
        raise UserError(f"{options.documents}: expected over {DEV} prompts, got {len(records)}")
    options.output.mkdir(parents=True, exist_ok=True)
    for name, rows in (("dev", records[:DEV]), ("train", records[DEV:])):
        write_jsonl(options.output / f"{name}.jsonl", rows)
        print(f"{options.output / name}.jsonl: {len(rows)} prompts")


if __name__ == "__main__":
    run_command(main)
