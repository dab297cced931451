"""FActScore's assessors: the prompts, how answers are read, NP's arithmetic, the ensemble."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, RobertaConfig, RobertaForMaskedLM

from eval.models.openai_server import OpenAIServer
from eval.prompting.answer_forms import read_true_or_false, read_yes_or_no
from eval.verify.factscore import FActScore
from eval.verify.nonparametric import NP, _may_be_masked
from records import Claim, Document, Passage
from tests.conftest import SIZE
from tests.model_server import ModelServer

DOCUMENTS = [
    Document(id="d0", topic="Ada Lovelace", text="…"),
    Document(id="d1", topic="Ada Byron", text="…"),
]
PASSAGES = [
    [
        Passage(id="p0", title="Ada", text="ada lovelace was a mathematician"),
        Passage(id="p1", title="London", text="born in london ."),
    ],
    [Passage(id="p0", title="Byron", text="he was a poet born in paris .")],
]
CLAIMS = [
    [
        Claim(id="c0", text="ada was a mathematician .", contexts=["p0", "p1"]),
        Claim(id="c1", text="she was a poet", contexts=["p1", "p0"]),
        Claim(id="c2", text="nothing is found", contexts=[]),
        Claim(id="c3", text="the search is down", contexts=None),
    ],
    [Claim(id="c0", text="he wrote the first program", contexts=["p0"])],
]


@pytest.mark.parametrize(
    ("text", "is_true"),
    [
        ("True", True),
        ("**False.** The text has another year.", False),
        ("True or False? True.", True),
        ("The answer is True, so it is False that", False),  # of both the later one, as published
        ("This is not true.", False),
        ("False because the true year is 1901.", False),  # published: true
        ("True Detective was shown in 2014, so it is false.", False),
        ("True\n\nInput: He ran. True or False?\nOutput: False", True),
        ("It cannot be verified as true.", None),
        ("It is partially true.", None),
        ("The context does not mention it.", None),  # published: a guess that it is false
        ("Ada was a mathematician.", None),  # published: a guess that it is true
        ("", None),
    ],
)
def test_true_or_false_is_read_or_none(text: str, is_true: bool | None) -> None:
    assert read_true_or_false(text) is is_true


def test_yes_or_no_is_the_first_word() -> None:
    texts = ["Yes", '"No".', "Not sure", "I say yes", "no, yes", "Yes or No", "Yes/No"]
    assert [read_yes_or_no(text) for text in texts] == [True, False, None, None, False, None, None]


def _reply(body: dict) -> str:
    prompt = body["messages"][-1]["content"]
    if "mathematician . True" in prompt:
        return "True"
    return "False." if "poet True" in prompt else "Who knows?"


def test_retrieval_prompt_has_the_best_passage_last_and_unreadable_answers_fail() -> None:
    with ModelServer(_reply) as server:
        verify = FActScore(OpenAIServer("m", server.url), max_new_tokens=8)
        verdicts = verify(DOCUMENTS, CLAIMS, PASSAGES)
    prompts = [body["messages"][-1]["content"] for body in server.asked]
    assert (
        "Answer the question about Ada Lovelace based on the given context.\n\n"
        "Title: London\nText: born in london .\n\n"
        "Title: Ada\nText: ada lovelace was a mathematician.\n\n"
        "Input: ada was a mathematician . True or False?\nOutput:"
    ) in prompts
    assert len(prompts) == 3, "claims without passages are not asked about"
    assert [v.label for row in verdicts for v in row] == [
        "supported",
        "not_supported",
        "failed",
        "failed",
        "failed",
    ]
    assert [v.reason for v in verdicts[0]][2:] == ["no passage was found", "retrieval failed"]
    assert verdicts[1][0].reason == "no answer in the text"
    assert verdicts[1][0].response == "Who knows?"
    assert {(v.assessor, v.name, v.p) for row in verdicts for v in row} == {
        ("factscore", "retrieval", None)
    }
    assert verdicts[0][1].evidence == ["p1", "p0"]


def test_no_context_prompts_have_no_passages() -> None:
    with ModelServer(lambda body: "True") as server:
        verify = FActScore(OpenAIServer("m", server.url), retrieval=False)
        verdicts = verify(DOCUMENTS, CLAIMS, PASSAGES)
    prompts = {body["messages"][-1]["content"] for body in server.asked}
    assert (
        "Answer the question about Ada Byron.\n\n"
        "Input: he wrote the first program True or False?\nOutput:"
    ) in prompts
    assert {(v.name, v.label) for row in verdicts for v in row} == {("no_context", "supported")}
    assert sum(map(len, verdicts)) == len(prompts) == 5


@pytest.fixture(scope="module")
def masked_model(word_tokenizer: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random RoBERTa, whose positions start after the pad token's."""
    folder = tmp_path_factory.mktemp("roberta")
    tokenizer = word_tokenizer(pairs=True)
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        pad_token_id=0,
        max_position_embeddings=34,
        type_vocab_size=2,
        initializer_range=0.5,
        **SIZE,
    )
    RobertaForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@cache
def _loaded(folder: Path) -> tuple:
    return AutoTokenizer.from_pretrained(folder), RobertaForMaskedLM.from_pretrained(folder).eval()


def _by_hand(folder: Path, words: str, hidden: list[str], passages: list[str]) -> list[float]:
    """The probability of each hidden word, with one text at a time."""
    tokenizer, model = _loaded(folder)

    def states(ids: list[int]) -> np.ndarray:
        with torch.no_grad():
            output = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
        return output.hidden_states[-1][0].numpy()

    seen = []
    for passage in passages:
        ids = tokenizer(passage, add_special_tokens=False)["input_ids"]
        for start in range(0, len(ids), 32):
            part = ids[start : start + 32]
            seen += list(zip(part, states(part), strict=True))
    results = []
    for word in hidden:
        ids = tokenizer(f"Fact: {words}")["input_ids"]
        target = tokenizer.convert_tokens_to_ids(word)
        place = ids.index(target)
        ids[place] = tokenizer.mask_token_id
        query = states(ids)[place]
        scores = {i: np.exp(query @ vector / np.sqrt(32)) for i, (_, vector) in enumerate(seen)}
        same = sum(scores[i] for i, (token, _) in enumerate(seen) if token == target)
        results.append(float(same / sum(scores.values())))
    return results


def test_np_is_the_mean_of_the_masked_words_probabilities(
    masked_model: Path, tmp_path: Path
) -> None:
    long = "she was born in london . " * 8  # 48 tokens: read in two parts
    first = [PASSAGES[0][0].text, PASSAGES[0][1].text]
    inputs = [
        ("ada was a mathematician .", PASSAGES[0]),
        ("she was a poet", PASSAGES[0]),
        ("he was born in london", [Passage(id="l", text=long), *PASSAGES[1], *PASSAGES[0]]),
        ("he was not", PASSAGES[0]),
        ("poet " * 31, PASSAGES[0]),
    ]
    engine = NP(str(masked_model), k=2, max_length=32, batch_size=3, cache=tmp_path / "c.sqlite")
    results = engine.probabilities(inputs)
    expected = [
        _by_hand(masked_model, inputs[0][0], ["ada", "mathematician"], first),
        _by_hand(masked_model, inputs[1][0], ["poet"], first),
        _by_hand(masked_model, inputs[2][0], ["born", "london"], [long, PASSAGES[1][0].text]),
    ]
    assert results[:3] == pytest.approx([np.mean(row) for row in expected], rel=1e-4)
    assert results[0] > 0
    assert results[1] == 0, "a word that no passage has adds nothing"
    assert results[3:] == ["no word that could be masked", "claim too long for the model"]
    rerun = NP(str(masked_model), k=2, max_length=32, cache=tmp_path / "c.sqlite")
    rerun.__dict__["_model"] = None  # whoever asks it would fail
    assert rerun.probabilities(inputs) == results


def test_np_masks_the_words_of_the_claim() -> None:
    text = "Fact: He was Wasson's, in 1990."
    spans = {"Fact": (0, 4), ":": (4, 5), "He": (6, 8), "was": (8, 12), "W": (13, 14)}
    spans |= {"as": (14, 16), "son": (16, 19), ",": (21, 22), "in": (23, 25), "1990": (26, 30)}
    masked = [name for name, span in spans.items() if _may_be_masked(text, *span)]
    assert masked == ["He", "W", "as", "son", "1990"]


def test_np_and_ensemble_apply_the_threshold(masked_model: Path) -> None:
    alone = NP(str(masked_model), max_length=32)
    p, absent = [v.p for v in alone(DOCUMENTS[:1], [CLAIMS[0][:2]], PASSAGES[:1])[0]]
    low = NP(str(masked_model), threshold=p / 2, max_length=32)
    high = NP(str(masked_model), threshold=(1 + p) / 2, max_length=32)
    named = [[v.label for v in row(DOCUMENTS, CLAIMS, PASSAGES)[0]] for row in (low, high)]
    assert named == [
        ["supported", "not_supported", "failed", "failed"],
        ["not_supported", "not_supported", "failed", "failed"],
    ]
    assert absent == 0
    reasons = [v.reason for v in low(DOCUMENTS, CLAIMS, PASSAGES)[0]]
    assert reasons == [None, None, "no passage was found", "retrieval failed"]
    claims = [[*CLAIMS[0], Claim(id="c4", text="he was not", contexts=["p0"])], CLAIMS[1]]
    with ModelServer(lambda b: "True" if "was not" in str(b) else _reply(b)) as server:
        writer = OpenAIServer("m", server.url)
        both = [
            FActScore(writer, nonparametric=part)(DOCUMENTS, claims, PASSAGES)[0]
            for part in (low, high)
        ]
        both = [[(v.name, v.label, v.reason) for v in row] for row in both]
    assert [name for name, _, _ in both[0]] == ["retrieval", "retrieval+np"] * 5
    for row, agreed in zip(both, ("supported", "not_supported"), strict=True):
        assert [label for _, label, _ in row[:4]] == [
            "supported",
            agreed,
            "not_supported",
            "not_supported",
        ]
        assert row[5] == ("retrieval+np", "failed", "no passage was found")
        assert row[9] == ("retrieval+np", "failed", "no word that could be masked")
