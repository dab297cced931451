"""Sampling from a causal model: tokens per second of three ways, on the same prompts and threads.

    python benchmarks/sampling.py --checkpoint checkpoints/small/adversary_info \\
        --topics data/lead_pairs/texts_test.jsonl --per_topic 2 --max_new_tokens 64 --threads 2

- ``equal lengths``: ``generate`` of transformers, a batch per prompt length (no padding)
- ``generate``: ``generate`` of transformers, left-padded batches of ``--batch_size``
- ``engine``: ``CausalLM.write``, which `data_builders generations` and `preferences` use

Tokens include the end token. ``cpu_ms`` is processor time per token, less affected by other load.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import torch
from transformers import PreTrainedModel

from cli.command import run_command
from components.encoding import encode_completion, pad
from eval.models.causal import CausalLM
from eval.models.draws import text_draws
from records import Document, read_records, write_json

TEMPERATURE, TOP_P = 0.8, 0.95


def batches(prompts: list[list[int]], size: int, equal: bool) -> Iterator[list[list[int]]]:
    """Batches of prompts, shortest first; with ``equal`` of one length each."""
    for _, group in groupby(sorted(prompts, key=len), key=len if equal else bool):
        members = list(group)
        yield from (members[start : start + size] for start in range(0, len(members), size))


@torch.inference_mode()
def generate(
    model: PreTrainedModel, batch: Sequence[list[int]], ends: set[int], max_new_tokens: int
) -> int:
    """Sample one text per prompt by ``generate``; return the number of tokens."""
    ids = pad(batch, 0, left=True)
    output = model.generate(
        input_ids=ids,
        attention_mask=pad([[1] * len(row) for row in batch], 0, left=True),
        do_sample=True,
        temperature=TEMPERATURE,
        top_p=TOP_P,
        top_k=0,
        max_new_tokens=max_new_tokens,
        pad_token_id=min(ends),
    )
    count = 0
    for row in output[:, ids.shape[1] :].tolist():
        stop = next((at for at, token in enumerate(row) if token in ends), len(row) - 1)
        count += stop + 1
    return count


def main() -> None:
    """Time the three ways and print a row each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", default="checkpoints/small/adversary_info")
    parser.add_argument("--topics", type=Path, default=Path("data/lead_pairs/texts_test.jsonl"))
    parser.add_argument("--limit", type=int, default=26, help="topics")
    parser.add_argument("--per_topic", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--max_new_tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    documents = read_records(args.topics, Document)
    topics = sorted({document.topic for document in documents})
    topics = random.Random(0).sample(topics, min(args.limit, len(topics)))
    engine = CausalLM(args.checkpoint, batch_size=args.batch_size)
    prompts, draws = [], []
    for topic in topics:
        ids = encode_completion(engine._tokenizer, engine.prompt_for(topic), None, engine.chat)[0]
        prompts += [ids] * args.per_topic
        draws += [text_draws(0, topic, index) for index in range(args.per_topic)]
    plain = engine._load().eval().to(engine.dtype)

    def generated(equal: bool) -> int:
        parts = batches(prompts, args.batch_size, equal)
        return sum(generate(plain, part, engine._ends, args.max_new_tokens) for part in parts)

    def written() -> int:
        texts = engine.write(prompts, draws, TEMPERATURE, TOP_P, args.max_new_tokens)
        return sum(len(tokens) for _, tokens, _ in texts)

    next(engine.write(prompts[:1], draws[:1], 0, TOP_P, 2))  # loads the model
    rows = []
    for name, sample in (
        ("equal lengths", lambda: generated(equal=True)),
        ("generate", lambda: generated(equal=False)),
        ("engine", written),
    ):
        start, cpu = time.perf_counter(), time.process_time()
        tokens = sample()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        rows.append({"way": name, "tokens": tokens, "per_second": tokens / seconds})
        rows[-1] |= {"cpu_ms": 1000 * cpu / tokens, "dtype": str(engine.dtype)}
        print(json.dumps(rows[-1]), flush=True)
    if args.json:
        write_json(args.json, rows)


if __name__ == "__main__":
    run_command(main)
