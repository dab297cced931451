"""How text becomes model input: pairs, tagged words, prompts."""

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

if TYPE_CHECKING:  # seconds to import; whoever encodes has a tokenizer, and them imported
    import torch
    from transformers import BatchEncoding, PreTrainedTokenizerBase

# What is judged together: a premise and a hypothesis, or whatever two texts a model reads.
Pair = tuple[str, str]
# Pairs that the tokenizer gets together: beside the ids it makes ten times as much that goes again.
_AT_ONCE = 4096


def encode_pairs(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int
) -> dict[str, list[list[int]]]:
    """Encode (premise, hypothesis) pairs without padding, each as it would be encoded alone.

    The premise is cut. A hypothesis that fills the input by itself cannot be met that way: in such
    a row, and in no other, tokens go from whichever of the two is longer.

    Args:
        tokenizer: a fast tokenizer.
        pairs: (premise, hypothesis).
        max_length: length of an input in tokens, special tokens included.

    Returns:
        ``input_ids``, ``attention_mask`` and whatever else the tokenizer gives: one list of at most
        ``max_length`` integers a pair.
    """

    def encode(some: Sequence[Pair], truncation: str = "only_first") -> BatchEncoding:
        premises, hypotheses = map(list, zip(*some, strict=True))
        return tokenizer(premises, hypotheses, truncation=truncation, max_length=max_length)

    def encode_alone(pair: Pair) -> BatchEncoding:
        try:
            return encode([pair])
        except Exception:  # the tokenizer's own type is not public; any other comes again
            return encode([pair], "longest_first")

    rows: dict[str, list[list[int]]] = defaultdict(list)
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        try:
            parts = [encode(some)]
        except Exception:  # of a hypothesis that fills the input
            parts = map(encode_alone, some)
        for part in parts:
            for name, values in part.items():
                rows[name].extend(values)
    return dict(rows)


def row_features(encoding: Mapping[str, list], row: int) -> dict[str, list[int]]:
    """Token ids and token types of one row of an encoding without padding.

    No attention mask: where nothing is padded there is nothing to mask.
    """
    return {name: encoding[name][row] for name in encoding if name != "attention_mask"}


def encode_words(
    tokenizer: PreTrainedTokenizerBase,
    words: Sequence[Word],
    reference: str,
    max_length: int,
    focus_words: int | None = None,
    mark_new: bool = False,
) -> BatchEncoding:
    """Encode one claim's words and a reference for a keep/drop tagger; the claim is first, whole.

    ``encoding.word_ids(0)`` with ``encoding.sequence_ids(0) == 0`` leads back to the claim's words.

    Args:
        focus_words, mark_new: as in ``components.windows.windows_of``.
    """
    texts = [word.text for word in words]
    extract = focus_premise(reference, " ".join(texts), focus_words)
    new = new_words(texts, reference) if mark_new else [False] * len(texts)
    marked = [
        text + NEW_WORD_MARK if is_new else text for text, is_new in zip(texts, new, strict=True)
    ]
    # Behind a blank each: RoBERTa's tokenizer would read them as one long word, others drop it.
    return tokenizer(
        [[f" {text}" for text in marked]],
        [[f" {word}" for word in extract.split()] or [""]],
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
    """Put the fields into ``{name}`` places; other braces in the template stay as they are.

    In one pass, so that a field whose text has such a place is not filled itself.
    """
    places = "|".join(map(re.escape, fields))
    return re.sub(rf"\{{({places})\}}", lambda place: fields[place[1]], template)


def encode_grounded(
    tokenizer: PreTrainedTokenizerBase,
    template: str,
    reference: str,
    claim: str,
    max_length: int,
) -> list[int] | None:
    """Token ids of a prompt with ``{reference}`` and ``{claim}``; only the reference is cut.

    Args:
        tokenizer: a fast tokenizer.
        template: the prompt.
        reference, claim: what goes into it.
        max_length: length in tokens, special tokens included.

    Returns:
        The ids, or ``None`` when claim and template alone do not fit.
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
    left = len(pieces)
    while left and len(ids) > max_length:
        left = max(0, left - (len(ids) - max_length))
        ids = encode(reference[: pieces[left - 1][1]] if left else "")
    return ids if len(ids) <= max_length else None


def encode_completion(
    tokenizer: PreTrainedTokenizerBase, prompt: str, completion: str | None, chat: bool
) -> tuple[list[int], int]:
    """Token ids of prompt and completion with the end token, and how many belong to the prompt.

    One path for chat and plain models. With ``completion=None`` only the prompt is encoded.
    """
    if chat:
        try:
            head = tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
        except (TemplateError, ValueError) as error:  # it raises, or would leave its sandbox
            raise UserError(
                f"{tokenizer.name_or_path}: its chat template refuses the prompt "
                f"({first_line(error)}); mend the template, or leave `chat` false"
            ) from None
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


def pad(rows: Sequence[Sequence[int]], value: int, left: bool = False) -> torch.Tensor:
    """Stack rows of ids of different length into a tensor of shape (rows, longest)."""
    import torch

    width = max(len(row) for row in rows)
    gaps = [[value] * (width - len(row)) for row in rows]
    joined = [[*g, *r] if left else [*r, *g] for g, r in zip(gaps, rows, strict=True)]
    return torch.tensor(joined, dtype=torch.long)


def padded_prompts(
    rows: Sequence[Sequence[int]], value: int, device: torch.device
) -> dict[str, torch.Tensor]:
    """What an encoder-decoder reads: ids and attention mask, of shape (rows, longest) each."""
    found = {"input_ids": pad(rows, value), "attention_mask": pad([[1] * len(r) for r in rows], 0)}
    return {name: tensor.to(device) for name, tensor in found.items()}
