"""Constrained decoding over real tokenizers of every kind: the output is always a subsequence."""

from __future__ import annotations

import json
import random
from itertools import product

import pytest
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from components.encoding import pad
from components.subsequence import (
    ClaimAutomaton,
    LssDecoder,
    OnlySubsequences,
    Spelling,
    _trim,
)
from components.words import align, is_subsequence, join_words, split_words

CORPUS = [
    "Ada Lovelace (1815-1852) was a mathematician, and the first programmer of the world.",
    "The U.S. don't know what (if anything) Lovelace's notes were worth: $5, or 5.5 %?",
    "The cat saw the dog; the dog saw the cat. “Really”, she said in London and Paris.",
    "She wrote the first program for a machine that was never built (1843), in her notes.",
] * 5
SPECIAL = ["<pad>", "</s>", "<unk>"]
KINDS = ["wordpiece", "unigram", "bytes", "bytefallback"]


def trained(kind: str) -> Tokenizer:
    """Small vocabularies, so that words have several pieces and some characters are unknown."""
    limits = {"vocab_size": 420, "special_tokens": SPECIAL, "show_progress": False}
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(**limits)
    elif kind == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.NFKC()
        # Pieces like "▁(1" or ")," reach over several of our words.
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(unk_token="<unk>", **limits)
    elif kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(initial_alphabet=alphabet, **limits)
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(**limits)
    tokenizer.train_from_iterator(CORPUS, trainer)
    if kind == "bytefallback":
        state = json.loads(tokenizer.to_str())
        first = len(state["model"]["vocab"])
        state["model"]["vocab"] |= {f"<0x{byte:02X}>": first + byte for byte in range(256)}
        tokenizer = Tokenizer.from_str(json.dumps(state))
    return tokenizer


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    return make(request.param)


def make(kind: str) -> PreTrainedTokenizerFast:
    tokenizer = trained(kind)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def t5(size: int, seed: int = 0) -> T5ForConditionalGeneration:
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=size, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, initializer_factor=3.0,
    )  # fmt: skip
    return T5ForConditionalGeneration(config).eval()


VOCABULARY = [
    "the",
    "cat",
    "dog",
    "Lovelace",
    "'s",
    "don't",
    "U",
    ".",
    "S",
    ".",
    "(",
    "1990",
    ")",
    ",",
    ",",
    ";",
    "was",
    "1990",
    "naïve",
    "Zoë",
    "日本",
    "😀",
    "👩\u200d💻",
    "½",
    "ﬁne",
    "…",
    "<",
    "/",
    "s",
    ">",
    "</s>",
    "<unk>",
    "[UNK]",
    "é",
    "हिन्दी",
    "1,234.5",
    "supercalifragilistic",
]


def random_claim(generator: random.Random) -> str:
    parts = generator.choices(VOCABULARY, k=generator.randint(1, 14))
    return "".join(part + generator.choice([" ", " ", ""]) for part in parts).strip()


def generated(decoder: LssDecoder, model: T5ForConditionalGeneration, claims: list[str]) -> list:
    rows = decoder.tokenizer(claims)["input_ids"]
    inputs = {"input_ids": pad(rows, 0), "attention_mask": pad([[1] * len(r) for r in rows], 0)}
    return decoder.generate(model, inputs, claims)


@pytest.mark.parametrize("num_beams", [1, 4])
def test_every_output_is_a_subsequence(tokenizer: PreTrainedTokenizerFast, num_beams: int) -> None:
    generator = random.Random(num_beams)
    claims = [random_claim(generator) for _ in range(80)]
    decoder = LssDecoder(tokenizer, num_beams, max_new_tokens=20, constrained=True)
    model = t5(len(tokenizer), seed=num_beams)
    kept = 0
    for start in range(0, len(claims), 40):
        batch = claims[start : start + 40]
        for claim, ids in zip(batch, generated(decoder, model, batch), strict=True):
            keep, text = decoder.read(claim, ids)
            assert is_subsequence(text, claim), (claim, text)
            assert text == join_words(claim, split_words(claim), keep)
            kept += sum(keep)
    assert kept > 40  # it does write


@pytest.mark.parametrize("claim", [
    "The cat saw the dog, the dog.",
    "Ada (1815-1852), she wrote.",
    "“Really” don't",
])  # fmt: skip
def test_the_tokens_of_every_subsequence_are_allowed_and_read_back(
    tokenizer: PreTrainedTokenizerFast, claim: str
) -> None:
    automaton = ClaimAutomaton(Spelling(tokenizer), claim)
    words = split_words(claim)
    for keep in product([False, True], repeat=len(words)):
        text = join_words(claim, words, list(keep))
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        for end in range(len(ids)):
            assert ids[end] in automaton.allowed(ids[:end])[0], (text, ids, end)
        assert automaton.allowed(ids)[1], text
        result = join_words(claim, words, automaton.keep(ids))
        # A word that stands there twice may be read as either, whose case or gaps differ.
        assert result.lower().replace(" ", "") == text.lower().replace(" ", "")


def test_nothing_else_is_allowed(tokenizer: PreTrainedTokenizerFast) -> None:
    claim = "Ada saw the cat"
    automaton = ClaimAutomaton(Spelling(tokenizer), claim)
    for text in ("cat the", "Ada Ada", "Ada was", "Adasaw", "sawn", "dog"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert not any(not rest for rest, _ in automaton.reached(ids)), text
    assert not automaton.reached(tokenizer("Ada", add_special_tokens=True)["input_ids"])


def test_unknown_words_come_back_in_the_claims_own_letters() -> None:
    wordpiece = make("wordpiece")
    claim = "Ada saw 日本 and THE Dog"
    (unknown,) = wordpiece("日本", add_special_tokens=False)["input_ids"][:1]
    assert unknown == wordpiece.unk_token_id
    decoder = LssDecoder(wordpiece, 1, 10, constrained=True)
    ids = wordpiece("ada 日本 the dog")["input_ids"]
    assert decoder.read(claim, ids)[1] == "Ada 日本 THE Dog"


def test_marks_and_joiners_stay_with_what_they_touch() -> None:
    wordpiece = make("wordpiece")
    claim = "the cafe\u0301 was naïve"
    decoder = LssDecoder(wordpiece, 1, 10, constrained=True)
    ids = wordpiece("café naïve")["input_ids"]
    assert decoder.read(claim, ids)[1] == "cafe\u0301 naïve"


def test_a_text_that_is_broken_off_keeps_its_whole_words(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    claim = "Lovelace mathematician programmer"
    decoder = LssDecoder(tokenizer, 1, 3, constrained=True)
    ids = tokenizer(claim, add_special_tokens=False)["input_ids"]
    texts = [decoder.read(claim, ids[:end])[1] for end in range(len(ids) + 1)]
    assert (texts[0], texts[-1]) == ("", claim)
    assert set(texts) == {"", "Lovelace", "Lovelace mathematician", claim}
    (out,) = generated(decoder, t5(len(tokenizer)), [claim])
    assert len(out) <= 3


def test_an_empty_lss_ends_at_once(tokenizer: PreTrainedTokenizerFast) -> None:
    decoder = LssDecoder(tokenizer, 1, 8, constrained=True)
    model = t5(len(tokenizer))
    with torch.no_grad():
        model.shared.weight.zero_()  # all logits equal: the first allowed token wins
    claims = ["the cat", "?"]
    automaton = ClaimAutomaton(decoder.spelling, claims[0])
    assert automaton.allowed([])[1]
    (out, _) = generated(decoder, model, claims)
    assert out == [tokenizer.eos_token_id]
    assert decoder.read("the cat", out) == ([False, False], "")


def test_rows_of_other_claims_and_finished_rows() -> None:
    wordpiece = make("wordpiece")
    automata = [ClaimAutomaton(Spelling(wordpiece), claim) for claim in ("cat", "dog saw")]
    processor = OnlySubsequences(automata, 2, 1, 0)
    (dog, saw) = wordpiece("dog saw", add_special_tokens=False)["input_ids"]
    rows = torch.tensor([[0, 1], [0, saw], [0, dog], [0, saw]])
    result = processor(rows, torch.zeros(4, len(wordpiece)))
    allowed = [torch.where(row == 0)[0].tolist() for row in result]
    # Ended; impossible; ends or goes on; ends.
    assert allowed == [[0], [1], [1, *_starting(wordpiece, "saw")], [1]]


def _starting(tokenizer: PreTrainedTokenizerFast, word: str) -> list[int]:
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary[word[:n]] for n in range(1, len(word) + 1) if word[:n] in vocabulary)


def test_free_text_is_left_as_it_is(tokenizer: PreTrainedTokenizerFast) -> None:
    decoder = LssDecoder(tokenizer, 1, 8, constrained=False)
    ids = tokenizer("the dog was in london")["input_ids"]
    keep, text = decoder.read("the dog was", ids)
    assert (keep, text) == (None, "the dog was in london")
    keep, text = decoder.read("the dog was old", tokenizer("the dog")["input_ids"])
    assert (keep, text) == (align("the dog", split_words("the dog was old")), "the dog")


def test_nothing_but_padding_is_an_empty_text(tokenizer: PreTrainedTokenizerFast) -> None:
    eos, pad_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    ids = _trim([pad_id] * 5, eos, pad_id)
    assert ids == [pad_id]  # no ids at all would be a claim that was not read
    assert LssDecoder(tokenizer, 1, 8, constrained=False).read("the dog", ids)[1] == ""
    assert _trim([7, 8, pad_id, pad_id], eos, pad_id) == [7, 8]
    assert _trim([7, eos, pad_id], eos, pad_id) == [7, eos]
