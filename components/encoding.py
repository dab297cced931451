"""Model inputs from text: pairs, tagged words, prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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


# A text that is read in windows gets at least this share of the input's tokens.
_LEAST_SHARE = 1 / 8

# Model inputs by name, e.g. ``input_ids``.
Features = dict[str, list[int]]


def window_starts(length: int, size: int) -> range:
    """Return the starts of windows of ``size`` items that overlap by half and cover a list."""
    step = max(1, size // 2)
    return range(0, max(0, length - size) + step, step)


def encode_pairs(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int
) -> list[list[Features]]:
    """Encode (premise, hypothesis) pairs without padding, each independently of the others.

    Returns:
        The inputs of each pair: one, or several windows of a premise that does not fit into
        ``max_length`` tokens next to the hypothesis and special tokens. Empty if the hypothesis
        leaves too little room.
    """
    rows: list[list[Features]] = []
    for start in range(0, len(pairs), _PAIRS_PER_CALL):
        premises, hypotheses = map(list, zip(*pairs[start : start + _PAIRS_PER_CALL], strict=True))
        encoding = tokenizer(premises, hypotheses, verbose=False)
        rows += [token_windows(encoding, row, max_length, 0) for row in range(len(premises))]
    return rows


def token_windows(encoding: BatchEncoding, row: int, max_length: int, side: int) -> list[Features]:
    """Return the inputs of a pair of which text ``side`` (0 or 1) is read in windows.

    Unpadded inputs need no attention mask. Windows overlap by half. The result is empty if the
    other text leaves too little room.
    """
    features = {name: encoding[name][row] for name in encoding if name != "attention_mask"}
    length = len(features["input_ids"])
    if length <= max_length:
        return [features]
    places = [place for place, text in enumerate(encoding.sequence_ids(row)) if text == side]
    room = max_length - (length - len(places))
    if room < max_length * _LEAST_SHARE:
        return []
    head, tail = places[0], places[-1] + 1
    return [
        {
            name: [*ids[:head], *ids[head:tail][first : first + room], *ids[tail:]]
            for name, ids in features.items()
        }
        for first in window_starts(len(places), room)
    ]


def text_windows(
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    encode: Callable[[str], Features],
    max_length: int,
) -> Iterator[Features]:
    """Yield inputs of at most ``max_length`` tokens with half overlapping windows of a text.

    Args:
        encode: returns the input with a window of the text.

    A text that fits is one window. There is none if the rest of the input leaves too little room.
    """
    features = encode(text)
    excess = len(features["input_ids"]) - max_length
    if excess <= 0:
        yield features
        return
    spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)[
        "offset_mapping"
    ]
    room = len(spans) - excess
    start = end = 0
    while room >= max_length * _LEAST_SHARE and end < len(spans):
        end = min(start + room, len(spans))
        while end > start:
            features = encode(text[spans[start][0] if start else 0 : spans[end - 1][1]])
            excess = len(features["input_ids"]) - max_length
            if excess <= 0:
                yield features
                break
            end -= excess
        start += max(1, (end - start) // 2)


def encode_words(
    tokenizer: PreTrainedTokenizerBase,
    words: Sequence[Word],
    reference: str,
    focus_words: int | None = None,
    mark_new: bool = False,
) -> BatchEncoding:
    """Encode a claim's words and a reference for a keep/drop tagger; the claim comes first.

    Nothing is truncated; see ``token_windows`` (side 1).

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
        verbose=False,
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


def grounded_windows(
    tokenizer: PreTrainedTokenizerBase, template: str, reference: str, claim: str, max_length: int
) -> Iterator[list[int]]:
    """Yield token ids of a prompt with ``{reference}`` and ``{claim}`` per window of a reference.

    See :func:`text_windows`. There are none if claim and template leave too little room.
    """

    def encode(text: str) -> Features:
        prompt = fill_prompt(template, reference=text, claim=claim)
        return {"input_ids": tokenizer(prompt, verbose=False)["input_ids"]}

    windows = text_windows(tokenizer, reference, encode, max_length)
    return (window["input_ids"] for window in windows)


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
