"""FActScore's prompts with true answers, to teach a small model the form of several claims.

    python benchmarks/form_prompts.py --output data/forms \\
      --documents data/kb/generations_train.jsonl
    python -m train fit --config configs/train/laptop/adversary_info.yaml --name forms \\
      --export_to checkpoints/forms --model.prompt_template '{topic}' --model.max_length 1100 \\
      --model.lr 5e-4 --data.train data/forms/train.jsonl --data.dev data/forms/dev.jsonl
    python benchmarks/pipeline.py --documents data/kb/generations_test.jsonl --limit 40 \\
      --configs configs/eval/small/factscore.yaml --model checkpoints/forms

Of texts whose ``sentences`` say what is true, each sentence is a claim: prompts about one claim,
half of them false, and prompts about the first five of a text. A record has the prompt as ``topic``
and the answer as ``text``, so the adversary's trainer learns to give it.
"""

from __future__ import annotations

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
# Claims of a prompt; prompts about one claim of each label; prompts about several with a false one
# among them, and without; rows held back.
SEVERAL, ALONE, MIXED, TRUE, DEV = 5, 130, 170, 60, 30


def prompts(texts: Sequence[Generation], config: Path, rng: random.Random) -> list[dict[str, str]]:
    """Records of prompts and answers, in any order.

    Args:
        texts: with the truth of their ``sentences``; one that is cut otherwise is left out.
        config: of a pipeline whose first verifier is FActScore's.
    """
    documents = [Document(id=str(n), **one.model_dump()) for n, one in enumerate(texts)]
    pipeline, _ = read_pipeline(str(config))
    verifier = pipeline.verify[0]
    verifier.several.prompt = Prompt(PROMPT)
    claims, passages = pipeline.retrieve(documents, pipeline.claims(documents))
    alone: list[tuple[str, bool]] = []
    together: list[tuple[str, list[bool]]] = []
    for number, (text, own, found) in enumerate(zip(texts, claims, passages, strict=True)):
        truth = [one.true for one in text.sentences or ()]
        known = {passage.id: passage for passage in found}
        asked = [
            ClaimToJudge(0, documents[number], claim, select_passages(claim, known))
            for claim in own
        ]
        if len(truth) != len(own) or any(isinstance(one.passages, str) for one in asked):
            continue
        if len(own) > 1 and number % 5:
            first = verifier.several.messages(asked[:SEVERAL])
            together.append((first[0]["content"], truth[:SEVERAL]))
        alone += [
            (verifier.messages(a)[0]["content"], t) for a, t in zip(asked, truth, strict=True)
        ]
    rng.shuffle(alone)
    pairs = []
    for wanted in (True, False):
        pairs += [(text, str(true)) for text, true in alone if true is wanted][:ALONE]
    for whole, most in ((False, MIXED), (True, TRUE)):
        pairs += [(text, _answer(own)) for text, own in together if all(own) is whole][:most]
    rng.shuffle(pairs)
    return [{"topic": prompt, "text": answer} for prompt, answer in pairs]


def _answer(truth: Sequence[bool]) -> str:
    return "\n".join(f"{number}. [{true}]" for number, true in enumerate(truth, start=1))


def main(argv: Sequence[str] | None = None) -> None:
    """Write ``train.jsonl`` and ``dev.jsonl``.

    Raises:
        UserError: too few texts with known sentences.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", required=True, help="texts with sentences of known truth")
    parser.add_argument("--config", type=Path, default=CONFIG, help="FActScore's first verifier")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(argv)
    rng = random.Random(1)
    every = read_records(options.documents, Generation)
    texts = [one for one in every if one.kind == "normal" and len(one.sentences or ()) > 1]
    rng.shuffle(texts)
    found = prompts(texts, options.config, rng) if texts else []
    if len(found) <= DEV:
        raise UserError(f"{options.documents}: {len(found)} prompts; more than {DEV} are needed")
    options.output.mkdir(parents=True, exist_ok=True)
    for name, rows in (("dev", found[:DEV]), ("train", found[DEV:])):
        write_jsonl(options.output / f"{name}.jsonl", rows)
        print(f"{options.output / name}.jsonl: {len(rows)} prompts")


if __name__ == "__main__":
    run_command(main)
