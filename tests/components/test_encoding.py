"""Pairs, batches and prompts."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from components.encoding import (
    batches_by_length,
    encode_completion,
    encode_pairs,
    encode_words,
    fill_prompt,
    first_tokens,
    pad,
)
from components.words import split_words
from records import UserError

LONG = "she was a poet she was a poet she was a poet"
PAIRS = [
    ("ada was a poet born in london paris .", "she wrote the program ."),  # the premise is cut
    ("ada was a poet", LONG),  # the hypothesis alone is longer than the input
    ("ada", "she wrote ."),  # fits
    ("she", "ada was a mathematician poet born in london ."),  # nine: as long as the room
    ("ada was born in london", "ada was a mathematician poet born in ."),  # one token less
]


def test_long_premise_is_read_in_windows_and_a_hypothesis_without_room_has_none(word_tokenizer):
    tokenizer = word_tokenizer(pairs=True)
    together = encode_pairs(tokenizer, PAIRS, 12)  # nine words beside [CLS] and two [SEP]
    parts = [
        [
            " ".join(tokenizer.convert_ids_to_tokens(window["input_ids"])[1:-1]).split(" [SEP] ")
            for window in windows
        ]
        for windows in together
    ]
    hypothesis = "she wrote the program ."
    premises = ["ada was a poet", "a poet born in", "born in london paris", "london paris ."]
    assert parts[0] == [[premise, hypothesis] for premise in premises]
    assert [parts[1], parts[3]] == [[], []]
    assert parts[2] == [["ada", "she wrote ."]]
    assert parts[4] == []  # room for one token of twelve


@pytest.mark.parametrize("pairs", [PAIRS, PAIRS[::-1], PAIRS[1:2], PAIRS[::2]])
def test_a_pair_is_encoded_as_if_it_were_alone(word_tokenizer, pairs):
    tokenizer = word_tokenizer(pairs=True)
    together = encode_pairs(tokenizer, pairs, 12)
    assert together == [encode_pairs(tokenizer, [pair], 12)[0] for pair in pairs]


def test_words_stay_apart_where_blanks_belong_to_tokens(word_tokenizer):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([LONG] * 5, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    roberta = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>")
    words = split_words("she was a poet")
    for each_tokenizer, blank in ((roberta, "Ġ"), (word_tokenizer(pairs=True), "")):
        encoding = encode_words(each_tokenizer, words, LONG)
        tokens = each_tokenizer.convert_ids_to_tokens(encoding["input_ids"][0])
        read = [tokens[place] for place in first_tokens(encoding, 0, len(words))]
        assert read == [f"{blank}{word.text}" for word in words]


def test_batches_hold_every_index_once_with_like_lengths():
    lengths = [5, 1, 9, 9, 3]
    batches = list(batches_by_length(lengths, 2))
    assert batches == [[2, 3], [0, 4], [1]]


def test_prompts_fill_names_and_leave_other_braces():
    assert fill_prompt("{topic}: {x}", topic="{Ann}") == "{Ann}: {x}"
    assert fill_prompt("{a} {b}", a="{b}", b="x") == "{b} x"  # a field is not filled itself


def test_padding_left_and_right():
    assert pad([[1], [2, 3]], 0).tolist() == [[1, 0], [2, 3]]
    assert pad([[1], [2, 3]], 0, left=True).tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("template", ["{{ raise_exception('no') }}", "{{ ''.__class__.mro() }}"])
def test_a_chat_template_that_refuses_or_leaves_its_sandbox_is_one_line(word_tokenizer, template):
    tokenizer = word_tokenizer(pairs=False)
    tokenizer.chat_template = template
    with pytest.raises(UserError, match="its chat template rejects the prompt"):
        encode_completion(tokenizer, "Ada", None, chat=True)
