"""Model inputs from text: pairs, tagged words, prompts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from jinja2 import TemplateError

from components.overlap import NEW_WORD_MARK, focus_premise, new_words
from components.words import Word
from records import UserError
from records.errors import first_line

if TYPE_CHECKING:  # takes seconds to import
    import torch
    from transformers import BatchEncoding, PreTrainedTokenizerBase

# Premise and hypothesis, or any two texts that a model reads together.
Pair = tuple[str, str]
# Pairs per tokenizer call, to limit its temporary memory (ten times the ids).
_PAIRS_PER_CALL = 4096


def encode_pairs(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int
) -> dict[str, list[list[int]]]:
    """Encode (premise, hypothesis) pairs without padding, each independently of the others.

    The premise is truncated to ``max_length`` tokens, including special tokens. If the hypothesis
    alone fills the input, tokens are removed from the longer of the two.

    Returns:
        ``input_ids``, ``attention_mask`` and further tokenizer outputs: one list per pair.
    """

    def encode(batch: Sequence[Pair], truncation: str = "only_first") -> BatchEncoding:
        premises, hypotheses = map(list, zip(*batch, strict=True))
        return tokenizer(premises, hypotheses, truncation=truncation, max_length=max_length)

    def encode_alone(pair: Pair) -> BatchEncoding:
        try:
            return encode([pair])
        except Exception:  # the type of tokenizer errors is not public
            return encode([pair], "longest_first")

    rows: dict[str, list[list[int]]] = defaultdict(list)
    for start in range(0, len(pairs), _PAIRS_PER_CALL):
        batch = pairs[start : start + _PAIRS_PER_CALL]
        try:
            parts = [encode(batch)]
        except Exception:  # a hypothesis fills the input
            parts = map(encode_alone, batch)
        for part in parts:
            for name, values in part.items():
                rows[name].extend(values)
    return dict(rows)


def row_features(encoding: Mapping[str, list], row: int) -> dict[str, list[int]]:
    """Return token ids and token types of one row; unpadded rows need no attention mask."""
    return {name: encoding[name][row] for name in encoding if name != "attention_mask"}


def encode_words(
    tokenizer: PreTrainedTokenizerBase,
    words: Sequence[Word],
    reference: str,
    max_length: int,
    focus_words: int | None = None,
    mark_new: bool = False,
) -> BatchEncoding:
    """Encode a claim's words and a reference for a keep/drop tagger; the claim comes first.

    Words of the claim are ``encoding.word_ids(0)`` with ``encoding.sequence_ids(0) == 0``. For
    ``focus_words`` and ``mark_new`` see ``components.windows.windows_of``.
    """
    texts = [word.text for word in words]
    extract = focus_premise(reference, " ".join(texts), focus_words)
    new = new_words(texts, reference) if mark_new else [False] * len(texts)
    marked = [
        text + NEW_WORD_MARK if is_new else text for text, is_new in zip(texts, new, strict=True)
    ]
    # With leading spaces: RoBERTa's tokenizer would read one long word; others ignore them.
    return tokenizer(
        [[f" {text}" for text in marked]],
        [[f" {word}" for word in extract.split()] or [""]],
        is_split_into_words=True,
        truncation="only_second",
        max_length=max_length,
    )


def first_tokens(encoding: BatchEncoding, row: int, count: int) -> list[int | None]:
    """Return the first token position of each of ``count`` claim words, ``None`` if truncated."""
    positions: list[int | None] = [None] * count
    sequences = encoding.sequence_ids(row)
    for position, word in enumerate(encoding.word_ids(row)):
        if word is not None and sequences[position] == 0 and positions[word] is None:
            positions[word] = position
    return positions


def fill_prompt(template: str, **fields: str) -> str:
    """Replace ``{name}`` by the fields in one pass; other braces are kept."""
    names = "|".join(map(re.escape, fields))
    return re.sub(rf"\{{({names})\}}", lambda match: fields[match[1]], template)


def encode_grounded(
    tokenizer: PreTrainedTokenizerBase, template: str, reference: str, claim: str, max_length: int
) -> list[int] | None:
    """Encode a prompt with ``{reference}`` and ``{claim}``, truncating only the reference.

    Returns at most ``max_length`` token ids, or ``None`` if claim and template exceed the length.
    """

    def encode(text: str) -> list[int]:
        prompt = fill_prompt(template, reference=text, claim=claim)
        return tokenizer(prompt, verbose=False)["input_ids"]

    ids = encode(reference)
    if len(ids) <= max_length:
        return ids
    pieces = tokenizer(
        reference, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )["offset_mapping"]
    kept_tokens = len(pieces)
    while kept_tokens and len(ids) > max_length:
        kept_tokens = max(0, kept_tokens - (len(ids) - max_length))
        ids = encode(reference[: pieces[kept_tokens - 1][1]] if kept_tokens else "")
    return ids if len(ids) <= max_length else None


def encode_completion(
    tokenizer: PreTrainedTokenizerBase, prompt: str, completion: str | None, chat: bool
) -> tuple[list[int], int]:
    """Return token ids of prompt, completion and end token, and the number of prompt tokens.

    Used for chat and plain models. With ``completion=None`` only the prompt is encoded.
    """
    if chat:
        try:
            head = tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
        except (TemplateError, ValueError) as error:
            raise UserError(
                f"{tokenizer.name_or_path}: its chat template rejects the prompt "
                f"({first_line(error)}); fix the template or set `chat` to false"
            ) from None
    else:
        head = tokenizer(prompt)["input_ids"]
    if completion is None:
        return list(head), len(head)
    body = tokenizer(completion, add_special_tokens=False)["input_ids"]
    return [*head, *body, tokenizer.eos_token_id], len(head)


def batches_by_length(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yield indices in batches of similar length, longest first.

    Batches depend on the lengths only. Longest first, so that running out of memory happens at
    once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def pad(rows: Sequence[Sequence[int]], value: int, left: bool = False) -> torch.Tensor:
    """Stack rows of ids into a tensor of shape (rows, longest)."""
    import torch

    width = max(len(row) for row in rows)
    gaps = [[value] * (width - len(row)) for row in rows]
    joined = [[*g, *r] if left else [*r, *g] for g, r in zip(gaps, rows, strict=True)]
    return torch.tensor(joined, dtype=torch.long)


def padded_prompts(
    rows: Sequence[Sequence[int]], value: int, device: torch.device
) -> dict[str, torch.Tensor]:
    """Return ids and attention mask for an encoder-decoder, shape (rows, longest) each."""
    inputs = {"input_ids": pad(rows, value), "attention_mask": pad([[1] * len(r) for r in rows], 0)}
    return {name: tensor.to(device) for name, tensor in inputs.items()}
