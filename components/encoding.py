"""How text becomes model input: pairs, chunks of long premises, tagged words, prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from transformers import BatchEncoding, PreTrainedTokenizerBase

from components.words import Word

Pair = tuple[str, str]


def encode_pairs(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int
) -> BatchEncoding:
    """Encode (premise, hypothesis) pairs without padding, cutting the premise first."""
    try:
        return tokenizer(
            [premise for premise, _ in pairs],
            [hypothesis for _, hypothesis in pairs],
            truncation="only_first",
            max_length=max_length,
        )
    except Exception:
        # A hypothesis longer than the whole input cannot be met by cutting the premise alone.
        return tokenizer(
            [premise for premise, _ in pairs],
            [hypothesis for _, hypothesis in pairs],
            truncation="longest_first",
            max_length=max_length,
        )


def chunk_premise(premise: str, chunk_words: int | None) -> list[str]:
    """Cut a long premise into windows of ``chunk_words`` words, each overlapping half the last.

    A premise that fits, or ``chunk_words=None``, is one chunk. FactReasoner and WiCE judge a claim
    against the window that supports it best.
    """
    words = premise.split()
    if chunk_words is None or len(words) <= chunk_words:
        return [premise]
    step = max(1, chunk_words // 2)
    starts = range(0, len(words) - chunk_words + step, step)
    return [" ".join(words[start : start + chunk_words]) for start in starts]


def encode_words(
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[tuple[list[Word], str]],
    max_length: int,
) -> BatchEncoding:
    """Encode (claim words, reference) for a keep/drop tagger; the claim comes first, whole.

    ``encoding.word_ids(i)`` with ``encoding.sequence_ids(i) == 0`` leads back to the claim's words.
    """
    return tokenizer(
        [[word.text for word in words] for words, _ in examples],
        [reference.split() or [""] for _, reference in examples],
        is_split_into_words=True,
        truncation="only_second",
        max_length=max_length,
    )


def first_tokens(encoding: BatchEncoding, row: int, count: int) -> list[int | None]:
    """Position of the first token of each of the claim's ``count`` words, ``None`` if cut off."""
    places: list[int | None] = [None] * count
    sequences = encoding.sequence_ids(row)
    for position, word in enumerate(encoding.word_ids(row)):
        if word is not None and sequences[position] == 0 and places[word] is None:
            places[word] = position
    return places


def fill_prompt(template: str, **fields: str) -> str:
    """Put the fields into ``{name}`` places; other braces in the template stay as they are."""
    for name, value in fields.items():
        template = template.replace("{" + name + "}", value)
    return template


def encode_completion(
    tokenizer: PreTrainedTokenizerBase, prompt: str, completion: str | None, chat: bool
) -> tuple[list[int], int]:
    """Token ids of prompt and completion with the end token, and how many belong to the prompt.

    One path for chat and plain models. With ``completion=None`` only the prompt is encoded.
    """
    if chat:
        head = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
        )
    else:
        head = tokenizer(prompt)["input_ids"]
    if completion is None:
        return list(head), len(head)
    body = tokenizer(completion, add_special_tokens=False)["input_ids"]
    return [*head, *body, tokenizer.eos_token_id], len(head)


def batches_by_length(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Indices in fixed batches of similar length, longest first.

    The order depends on the lengths alone, so the same input makes the same batches. Longest
    first, so that running out of memory happens at once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def pad(
    rows: Sequence[Sequence[int]], value: int, left: bool = False, to_multiple: int = 1
) -> torch.Tensor:
    """Stack rows of ids of different length into a tensor of shape (rows, longest)."""
    width = max(len(row) for row in rows)
    width = -(-width // to_multiple) * to_multiple
    gaps = [[value] * (width - len(row)) for row in rows]
    joined = [[*g, *r] if left else [*r, *g] for g, r in zip(gaps, rows, strict=True)]
    return torch.tensor(joined, dtype=torch.long)
