"""Decoding of a longest supported subsequence that cannot be anything but one.

The T5 of 2308.12157 (sections 3 and 5) writes the LSS freely and may add words. Here the next token
is chosen among those that keep the text a beginning of some subsequence of the claim's words, for
greedy and beam search and for any fast tokenizer. What comes back are the indices of the words that
are kept, so the LSS is in the claim's own letters, whatever the tokenizer's normaliser makes of it.

A word is known by how the tokenizer *spells* it: the strings of its tokens, joined. A spelling does
not depend on where the tokenizer cuts, so every segmentation is allowed, and a token may reach
over several words ("),"). A word has three spellings: at the start of the text, after a space, and
touching the word before it. The automaton's states are (what is left of a word's spelling, which
word); it is nondeterministic, since a claim may have a word twice.
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
# Private-use characters: the start of a WordPiece word, and tokens that are no text themselves.
_WORD_START, _FIRST_ATOM = "\U0010fffd", 0xF0000
# Something to stand before a word, to see how the word is spelt after a space.
_CARRIER = "a"

State = tuple[str, int]  # what is left of a unit's spelling, and which unit; -1 at the start
Path = tuple[int, ...]  # units that were begun, ascending
_START: State = ("", -1)


class Spelling:
    """What each token of a vocabulary writes.

    A token writes its own string; a WordPiece that begins a word has a mark in front instead of
    ``##`` on the others. The unknown token, bytes (``<0xE2>``) and added tokens are one private
    character each. Special tokens write nothing and are never allowed.

    Args:
        tokenizer: a fast tokenizer.
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

    def of(self, texts: Sequence[str]) -> list[str]:
        """How texts are spelt; empty for a text that comes out as nothing or as a special token."""
        rows = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return [
            "".join(self._texts[index] for index in row) if all(map(self._knows, row)) else ""
            for row in rows
        ]

    def _knows(self, index: int) -> bool:
        return index in self._texts

    def writable(self, spelling: str) -> set[str]:
        """The ends of a spelling that the tokens can write, the empty one included."""
        found = {""}
        for start in range(len(spelling) - 1, -1, -1):
            stops = range(start + 1, min(start + self.longest, len(spelling)) + 1)
            if any(spelling[s:] in found and spelling[start:s] in self.tokens for s in stops):
                found.add(spelling[start:])
        return found


class ClaimAutomaton:
    """The subsequences of one claim's words as a language over tokens.

    A combining mark or joiner belongs to the word it touches: nobody reads them apart, and
    normalisers compose or drop them. A word that the tokenizer drops cannot be written; one that it
    does not know is written as it reads it, with the unknown token. Every state that is reached can
    be completed, so at least one token is always allowed.

    Args:
        spelling: of the tokenizer.
        claim: the claim.
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
        touches = [self.words[a].start == self.words[a - 1].end for a, _ in self.units[1:]]
        joined = ["".join(pair) for pair in pairwise(texts)]
        spaced = [f"{_CARRIER} {text}" for text in texts]
        found = self.spelling.of([_CARRIER, *texts, *spaced, *joined])
        count = len(texts)
        carrier, self._first = found[0], found[1 : count + 1]
        self._spaced = [
            whole.removeprefix(carrier) if _extends(whole, carrier) else alone
            for whole, alone in zip(found[count + 1 : 2 * count + 1], self._first, strict=True)
        ]
        # A word may be spelt together with the one before it in a way that cannot be taken apart
        # (a composed accent, one unknown token for both); it is then spelt as after a space.
        self._glued = [""] + [
            (pair[len(before) :] if _extends(pair, before) else alone) if touching else ""
            for pair, before, alone, touching in zip(
                found[2 * count + 1 :], self._first[:-1], self._spaced[1:], touches, strict=True
            )
        ]
        spellings = {*self._first, *self._spaced, *self._glued}
        self._writable = set().union(*(self.spelling.writable(text) for text in spellings))

    def _later(self, unit: int) -> Iterator[tuple[str, int]]:
        for index in range(unit + 1, len(self.units)):
            if unit < 0:
                yield self._first[index], index
            elif index == unit + 1 and self._glued[index]:
                yield self._glued[index], index
            else:
                yield self._spaced[index], index

    def _walk(
        self, spelt: str, state: State, begun: Path, found: dict[int, list[tuple[State, Path]]]
    ) -> None:
        """Collect the tokens that go on from a state, and where each leads.

        Args:
            spelt: what the token has written on the way here.
            state: where that led.
            begun: units that it began.
            found: token → states and units begun; filled.
        """
        rest, unit = state
        for end in range(1, len(rest) + 1):
            text = spelt + rest[:end]
            if text not in self.spelling.beginnings:
                return
            if rest[end:] in self._writable:
                for token in self.spelling.tokens.get(text, ()):
                    found[token].append(((rest[end:], unit), begun))
        for text, later in self._later(unit):
            if text:
                self._walk(spelt + rest, (text, later), (*begun, later), found)

    def moves(self, state: State) -> dict[int, list[tuple[State, Path]]]:
        """Token → the states that it leads to, each with the units begun on the way."""
        if state not in self._moves:
            found: dict[int, list[tuple[State, Path]]] = defaultdict(list)
            self._walk("", state, (), found)
            self._moves[state] = dict(found)
        return self._moves[state]

    def reached(self, ids: Sequence[int]) -> Mapping[State, Path]:
        """The states after some tokens, each with the best reading that leads there.

        Args:
            ids: token ids of the text so far, without start and end tokens.

        Returns:
            Nothing when no subsequence begins like this.
        """
        ids = tuple(ids)
        known = len(ids)
        while ids[:known] not in self._reached:
            known -= 1
        states = self._reached[ids[:known]]
        for place in range(known, len(ids)):
            after: dict[State, Path] = {}
            for state, path in states.items():
                for later, begun in self.moves(state).get(ids[place], ()):
                    whole = path + begun
                    after[later] = min(whole, after.get(later, whole), key=self._rank)
            states = self._reached[ids[: place + 1]] = after
        return states

    def allowed(self, ids: Sequence[int]) -> tuple[list[int], bool]:
        """The tokens that may follow, ascending, and whether the text may end here."""
        states = self.reached(ids)
        tokens = {token for state in states for token in self.moves(state)}
        return sorted(tokens), any(not rest for rest, _ in states)

    def _rank(self, path: Path) -> tuple[int, int, Path]:
        """Which of several readings is meant, the least: "dog." before "dog .", neighbours, early.

        A claim may have a word twice, and a WordPiece text does not say which words touch.
        """
        neighbours = [b for a, b in pairwise(path) if b == a + 1]
        return -sum(bool(self._glued[unit]) for unit in neighbours), -len(neighbours), path

    def keep(self, ids: Sequence[int]) -> list[bool]:
        """Which words the tokens write; of a text that was broken off, its whole words."""
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
    """Leaves each row the tokens that its claim's automaton allows.

    Args:
        automata: one a claim, in the batch's order.
        num_beams: rows of each claim.
        eos_token_id: ends a text; where it may end, this is allowed.
        pad_token_id: follows the end.
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

        Args:
            input_ids: the start token and the tokens so far, of shape (claims * beams, length).
            scores: logits or log-probabilities of shape (claims * beams, vocabulary).
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
        # Beam search fills beams with tokens of probability 0 where it has no others: such a row
        # cannot win and only needs something to go on with.
        return [*tokens, self.eos] if may_end or not tokens else tokens


class LssDecoder:
    """Writes the LSS of claims with a sequence-to-sequence model; ``train`` and ``eval`` share it.

    Args:
        tokenizer: the model's fast tokenizer, with end and pad tokens.
        num_beams: beams; 1 is greedy search.
        max_new_tokens: longest output in tokens.
        constrained: only subsequences of the claim's words (LSS); false for LSS*, which is free.
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
        """The best output of each claim by greedy or beam search.

        Args:
            model: in evaluation mode.
            inputs: ``input_ids`` and ``attention_mask`` of shape (claims, longest).
            claims: the claims.

        Returns:
            Token ids of each output without start token and padding, but one of an output that is
            nothing else; the end token is the last one unless the output was broken off at
            ``max_new_tokens``.
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
        # Whatever a base model's own settings add (least lengths, forced or forbidden tokens) would
        # work against the constraint; generate() merges them in, so they step aside.
        theirs, model.generation_config = model.generation_config, settings
        try:
            rows = model.generate(**inputs, logits_processor=processors).tolist()
        finally:
            model.generation_config = theirs
        return [_until(row[1:], eos, pad) for row in rows]

    def read(self, claim: str, ids: Sequence[int]) -> tuple[list[bool] | None, str]:
        """An output as text, with the claim's words that it keeps.

        Returns:
            One bool a word of the claim, and the LSS. The LSS* is whatever the model wrote; its
            words are ``None`` where it is no subsequence of the claim.
        """
        words = split_words(claim)
        if self.spelling is None:
            text = self.tokenizer.decode(list(ids), skip_special_tokens=True).strip()
            return align(text, words, strict=True), text
        ids = [index for index in ids if index != self.tokenizer.eos_token_id]
        keep = ClaimAutomaton(self.spelling, claim).keep(ids)
        return keep, join_words(claim, words, keep)


def _until(row: list[int], eos: int, pad: int) -> list[int]:
    """A row up to its end token; a shorter row that never ended has padding alone behind it.

    One token stays: no ids at all are for whoever reads them no output.
    """
    if eos in row:
        return row[: row.index(eos) + 1]
    while len(row) > 1 and row[-1] == pad:
        row = row[:-1]
    return row
