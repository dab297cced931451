"""Constrained decoding of longest supported subsequences.

The T5 of 2308.12157 (sections 3 and 5) generates freely and may add words. Here each next token is
restricted so that the text stays a prefix of some subsequence of the claim's words, for greedy and
beam search and any fast tokenizer. The output are indices of kept words, so the LSS has the claim's
own characters regardless of tokenizer normalisation.

A word is matched by its *spelling*: the joined strings of its tokens. The spelling does not depend
on segmentation, so all segmentations are allowed, and a token may span several words ("),"). A word
has three spellings: at the start of the text, after a space, and adjacent to the previous word. The
automaton's states are (rest of a word's spelling, word); it is nondeterministic, since words may
repeat.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from components.words import Word, align, join_words, split_words

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
# Private-use characters: start of a WordPiece word, and tokens without text.
_WORD_START, _FIRST_ATOM = "\U0010fffd", 0xF0000
# Placed before a word to get its spelling after a space.
_CARRIER = "a"

State = tuple[str, int]  # rest of a unit's spelling, unit index; -1 at the start
Path = tuple[int, ...]  # started units, ascending
_START: State = ("", -1)


class Spelling:
    """The string of each token of a fast tokenizer's vocabulary.

    WordPiece tokens that start a word get a prefix mark, instead of ``##`` on the others. The
    unknown token, bytes (``<0xE2>``) and added tokens are one private-use character each. Special
    tokens have no string and are never allowed.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.tokenizer = tokenizer
        special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        added = set(tokenizer.added_tokens_decoder) | {tokenizer.unk_token_id}
        glue = getattr(tokenizer.backend_tokenizer.model, "continuing_subword_prefix", None)
        self._texts: dict[int, str] = {}
        atoms = 0
        for token, index in sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1]):
            if index in special:
                continue
            if index in added or _BYTE.fullmatch(token):
                text, atoms = chr(_FIRST_ATOM + atoms), atoms + 1
            elif glue:
                continues = token.startswith(glue)
                text = token.removeprefix(glue) if continues else _WORD_START + token
            else:
                text = token
            if text:
                self._texts[index] = text
        self.tokens: dict[str, list[int]] = defaultdict(list)
        for index, text in self._texts.items():
            self.tokens[text].append(index)
        self.beginnings = {text[:end] for text in self.tokens for end in range(1, len(text) + 1)}
        self.longest = max(map(len, self.tokens), default=0)

    def spell(self, texts: Sequence[str]) -> list[str]:
        """Return the spellings of texts; empty for no tokens or a special token."""
        rows = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return [
            "".join(self._texts[index] for index in row) if self._texts.keys() >= {*row} else ""
            for row in rows
        ]

    def writable(self, spelling: str) -> set[str]:
        """Return the suffixes of a spelling that can be segmented into tokens, including ""."""
        suffixes = {""}
        for start in range(len(spelling) - 1, -1, -1):
            stops = range(start + 1, min(start + self.longest, len(spelling)) + 1)
            if any(spelling[s:] in suffixes and spelling[start:s] in self.tokens for s in stops):
                suffixes.add(spelling[start:])
        return suffixes


class ClaimAutomaton:
    """The subsequences of a claim's words as a language over tokens.

    Combining marks and joiners belong to the adjacent word, since normalisers compose or drop them.
    Words that the tokenizer drops cannot be generated; unknown words are matched by the unknown
    token. Every reached state can be completed, so at least one token is always allowed.
    """

    def __init__(self, spelling: Spelling, claim: str):
        self.spelling = spelling
        self.words = split_words(claim)
        self.units = _units(self.words)
        self._spell(claim)
        self._moves: dict[State, dict[int, list[tuple[State, Path]]]] = {}
        self._reached: dict[tuple[int, ...], dict[State, Path]] = {(): {_START: ()}}

    def _spell(self, claim: str) -> None:
        texts = [claim[self.words[a].start : self.words[b - 1].end] for a, b in self.units]
        adjacent = [self.words[a].start == self.words[a - 1].end for a, _ in self.units[1:]]
        joined = ["".join(joint) for joint in pairwise(texts)]
        spaced = [f"{_CARRIER} {text}" for text in texts]
        spelt = self.spelling.spell([_CARRIER, *texts, *spaced, *joined])
        count = len(texts)
        carrier, self._first = spelt[0], spelt[1 : count + 1]
        self._spaced = [
            spaced_text.removeprefix(carrier) if _extends(spaced_text, carrier) else single
            for spaced_text, single in zip(
                spelt[count + 1 : 2 * count + 1], self._first, strict=True
            )
        ]
        # The joint spelling of adjacent words may be inseparable (a composed accent, one unknown
        # token); then the spelling after a space is used.
        self._glued = [""] + [
            (joint[len(previous) :] if _extends(joint, previous) else single) if is_adjacent else ""
            for joint, previous, single, is_adjacent in zip(
                spelt[2 * count + 1 :], self._first[:-1], self._spaced[1:], adjacent, strict=True
            )
        ]
        spellings = {*self._first, *self._spaced, *self._glued}
        self._writable = set().union(*(self.spelling.writable(text) for text in spellings))

    def _next_units(self, unit: int) -> Iterator[tuple[str, int]]:
        for index in range(unit + 1, len(self.units)):
            if unit < 0:
                yield self._first[index], index
            elif index == unit + 1 and self._glued[index]:
                yield self._glued[index], index
            else:
                yield self._spaced[index], index

    def _walk(
        self,
        spelt: str,
        state: State,
        started: Path,
        transitions: dict[int, list[tuple[State, Path]]],
    ) -> None:
        """Add the tokens that are possible from a state, and their target states, to
        ``transitions``.

        ``spelt`` is the string of the token so far, ``started`` the units that it started.
        """
        rest, unit = state
        for end in range(1, len(rest) + 1):
            text = spelt + rest[:end]
            if text not in self.spelling.beginnings:
                return
            if rest[end:] in self._writable:
                for token in self.spelling.tokens.get(text, ()):
                    transitions[token].append(((rest[end:], unit), started))
        for text, later in self._next_units(unit):
            if text:
                self._walk(spelt + rest, (text, later), (*started, later), transitions)

    def moves(self, state: State) -> dict[int, list[tuple[State, Path]]]:
        """Return token → target states, each with the units started on the way."""
        if state not in self._moves:
            transitions: dict[int, list[tuple[State, Path]]] = defaultdict(list)
            self._walk("", state, (), transitions)
            self._moves[state] = dict(transitions)
        return self._moves[state]

    def reached(self, ids: Sequence[int]) -> Mapping[State, Path]:
        """Return the states after some tokens, each with its best path; empty if impossible.

        ``ids`` has no start and end tokens.
        """
        ids = tuple(ids)
        cached = len(ids)
        while ids[:cached] not in self._reached:
            cached -= 1
        states = self._reached[ids[:cached]]
        for position in range(cached, len(ids)):
            after: dict[State, Path] = {}
            for state, path in states.items():
                for later, started in self.moves(state).get(ids[position], ()):
                    extended = path + started
                    after[later] = min(extended, after.get(later, extended), key=self._rank)
            states = self._reached[ids[: position + 1]] = after
        return states

    def allowed(self, ids: Sequence[int]) -> tuple[list[int], bool]:
        """Return the allowed next tokens, ascending, and whether the text may end here."""
        states = self.reached(ids)
        tokens = {token for state in states for token in self.moves(state)}
        return sorted(tokens), any(not rest for rest, _ in states)

    def _rank(self, path: Path) -> tuple[int, int, Path]:
        """Rank of a path, lower is better: adjacent spelling, neighbouring words, early words.

        Needed for repeated words, and because WordPiece does not show which words are adjacent.
        """
        neighbours = [b for a, b in pairwise(path) if b == a + 1]
        return -sum(bool(self._glued[unit]) for unit in neighbours), -len(neighbours), path

    def keep(self, ids: Sequence[int]) -> list[bool]:
        """Return which words the tokens contain; incomplete last words are dropped."""
        ends = [
            [path for (rest, _), path in self.reached(ids[:end]).items() if not rest]
            for end in range(len(ids) + 1)
        ]
        units = min(next(paths for paths in reversed(ends) if paths), key=self._rank)
        kept = {word for unit in units for word in range(*self.units[unit])}
        return [index in kept for index in range(len(self.words))]


def _units(words: Sequence[Word]) -> list[tuple[int, int]]:
    units: list[tuple[int, int]] = []
    for index, word in enumerate(words):
        mark = unicodedata.category(word.text[0])[0] == "M" or (
            unicodedata.category(word.text[0]) == "Cf"
        )
        if mark and units and words[index - 1].end == word.start:
            units[-1] = (units[-1][0], index + 1)
        else:
            units.append((index, index + 1))
    return units


def _extends(whole: str, start: str) -> bool:
    return whole.startswith(start) and len(whole) > len(start)


class OnlySubsequences(LogitsProcessor):
    """Restricts each row to the tokens that its claim's automaton allows.

    ``automata`` has one entry per claim, in batch order, with ``num_beams`` rows each.
    """

    def __init__(
        self,
        automata: Sequence[ClaimAutomaton],
        num_beams: int,
        eos_token_id: int,
        pad_token_id: int,
    ):
        self.automata, self.num_beams = automata, num_beams
        self.eos, self.pad = eos_token_id, pad_token_id

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Set the scores of all other tokens to minus infinity.

        ``input_ids`` of shape (claims * beams, length) have a start token; ``scores`` are logits or
        log-probabilities of shape (claims * beams, vocabulary).
        """
        masked = torch.full_like(scores, -torch.inf)
        for row, ids in enumerate(input_ids[:, 1:].tolist()):
            tokens = self._allowed(self.automata[row // self.num_beams], ids)
            masked[row, tokens] = scores[row, tokens]
        return masked

    def _allowed(self, automaton: ClaimAutomaton, ids: list[int]) -> list[int]:
        if self.eos in ids:
            return [self.pad]
        tokens, may_end = automaton.allowed(ids)
        # Beam search also continues beams of probability 0; they need any token and cannot win.
        return [*tokens, self.eos] if may_end or not tokens else tokens


class LssDecoder:
    """Generates the LSS of claims with a sequence-to-sequence model, in ``train`` and ``eval``.

    Args:
        tokenizer: the model's fast tokenizer, with end and pad tokens.
        num_beams: number of beams; 1 is greedy search.
        max_new_tokens: maximum output length in tokens.
        constrained: only subsequences of the claim's words (LSS); false for LSS*.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        num_beams: int,
        max_new_tokens: int,
        constrained: bool,
    ):
        self.tokenizer = tokenizer
        self.num_beams, self.max_new_tokens = num_beams, max_new_tokens
        self.spelling = Spelling(tokenizer) if constrained else None

    @torch.inference_mode()
    def generate(
        self, model: PreTrainedModel, inputs: Mapping[str, Tensor], claims: Sequence[str]
    ) -> list[list[int]]:
        """Return the best output of each claim by greedy or beam search.

        ``inputs`` are ``input_ids`` and ``attention_mask`` of shape (claims, longest). The returned
        token ids have no start token and padding (at least one token); the last one is the end
        token unless the output was cut at ``max_new_tokens``.
        """
        eos, pad = self.tokenizer.eos_token_id, self.tokenizer.pad_token_id
        processors = LogitsProcessorList()
        if self.spelling is not None:
            automata = [ClaimAutomaton(self.spelling, claim) for claim in claims]
            processors.append(OnlySubsequences(automata, self.num_beams, eos, pad))
        settings = GenerationConfig(
            num_beams=self.num_beams,
            max_new_tokens=self.max_new_tokens,
            do_sample=False,
            decoder_start_token_id=model.config.decoder_start_token_id,
            eos_token_id=eos,
            pad_token_id=pad,
        )
        # generate() merges in the model's own settings (minimum lengths, forced or forbidden
        # tokens), which could violate the constraint, so they are replaced meanwhile.
        original, model.generation_config = model.generation_config, settings
        try:
            rows = model.generate(**inputs, logits_processor=processors).tolist()
        finally:
            model.generation_config = original
        return [_trim(row[1:], eos, pad) for row in rows]

    def read(self, claim: str, ids: Sequence[int]) -> tuple[list[bool] | None, str]:
        """Return which claim words an output keeps, and its text.

        An LSS* is the decoded text; the bools are ``None`` if it is not a subsequence of the claim.
        """
        words = split_words(claim)
        if self.spelling is None:
            text = self.tokenizer.decode(list(ids), skip_special_tokens=True).strip()
            return align(text, words, strict=True), text
        ids = [index for index in ids if index != self.tokenizer.eos_token_id]
        keep = ClaimAutomaton(self.spelling, claim).keep(ids)
        return keep, join_words(claim, words, keep)


def _trim(row: list[int], eos: int, pad: int) -> list[int]:
    """Cut a row after its end token, or remove the padding of a row without one.

    Keeps at least one token, because readers treat empty ids as no output.
    """
    if eos in row:
        return row[: row.index(eos) + 1]
    while len(row) > 1 and row[-1] == pad:
        row = row[:-1]
    return row
