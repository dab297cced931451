"""Sentences, and decomposers that prompt a model: examples, windows, parses, failures, seeds."""

import os
import re
from pathlib import Path

import pytest

from components.sentences import split_sentences
from eval.decompose.by_sentence import Failed, Place
from eval.decompose.claim_lists import ask_for_claims
from eval.decompose.entity_check import check_entities
from eval.decompose.given import Given
from eval.decompose.prompted import METHODS, Prompted, window
from eval.decompose.sentences import Sentences
from eval.decompose.ud.tree import Token, Tree, join_words, read_conllu
from eval.models.chat import CUT, Answer
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.prompting.asker import Asker
from eval.run.parts import hash_prompts
from eval.stages import run_decomposer
from eval.verify.labels import Labels
from records import Claim, Document, UserError, iter_rows
from records.abstention import clean_document
from records.cleaning import clean
from tests.model_server import ModelServer

# Table 1 of 2403.11903; SAFE's and VeriScore's own.
COUNTS = {
    "factscore": (7, 1),
    "fs2": (1, 1),
    "wice": (6, 0),
    "chen": (7, 1),
    "conllu": (1, 1),
    "rnd": (7, 1),
    "safe": (7, 1),
    "veriscore": (7, 0),
}
TEXT = "Ada Roe won the Nobel Prize in Chemistry. She saw Peru."


class Model:
    """Plays a language model: a list of what the prompt's last sentence says, unless told not to.

    ``limit`` is the longest prompt in words; ``said`` maps a word of the sentence to an answer.
    """

    def __init__(self, limit=10**6, **canned):
        self.identity = {"model": "player"}
        self.limit, self.said = limit, canned
        self.calls = []

    def answer(self, prompts, *, n=1, temperature, top_p, max_new_tokens, seed):
        self.calls.append([messages[-1]["content"] for messages in prompts])
        self.options = (n, temperature, top_p, max_new_tokens, seed)
        return [[self.reply_to(prompt)] for prompt in self.calls[-1]]

    def reply_to(self, prompt):
        if len(prompt.split()) > self.limit:
            return Answer("", "prompt too long for the model")
        end = prompt.rsplit("independent facts", 1)[-1]
        for word, answer in self.said.items():
            if word in end:
                return answer
        return Answer("- Somebody did something.\n- It was good.")


class Words:
    """A parser that knows no syntax: every word hangs on the first; no tree without a full stop."""

    def __init__(self):
        self.identity = {"parser": "words"}

    def parse(self, sentences):
        return [self.tree(text) if text.endswith(".") else None for text in sentences]

    def tree(self, text):
        words = enumerate(re.findall(r"\w+|[^\w\s]", text), 1)
        rows = [
            Token(i, w, w, "X", "_", "_", int(i > 1), "dep" if i > 1 else "root", "_")
            for i, w in words
        ]
        return Tree(tuple(rows), text)


def document(text, **more):
    return Document(**{"id": "d", "topic": "Ada Roe", "text": text} | more)


def decomposer(method, model, **options):
    return Prompted(model, method, parser=Words() if method == "conllu" else None, **options)


def printed(prompt, bank):
    """Places in the bank of the sentences that a prompt shows, in the prompt's order."""
    results = {i: prompt.find(example.sentence) for i, example in enumerate(bank.examples)}
    return sorted((i for i, at in results.items() if at >= 0), key=results.get)


@pytest.mark.parametrize("method", METHODS)
def test_prompts_show_as_many_examples_as_table_1_says(method):
    model = Model()
    decompose = decomposer(method, model)
    static, retrieved = COUNTS[method]
    (claims,) = decompose([document(TEXT)])
    assert [c.text for c in claims] == ["Somebody did something.", "It was good."] * 2
    assert [(c.id, c.sentence) for c in claims] == [("c0", 0), ("c1", 0), ("c2", 1), ("c3", 1)]
    assert claims[0].source == "Ada Roe won the Nobel Prize in Chemistry."
    ((first, second),) = model.calls  # one call for all sentences
    for prompt, near in ((first, "Prize"), (second, "Peru")):
        group = printed(prompt, decompose.bank)
        assert group[:static] == list(range(static))
        assert len(group) == static + retrieved
        for place in group[static:]:
            assert near in decompose.bank.examples[place].sentence
        assert all(c in prompt for place in group for c in decompose.bank.examples[place].claims)
    if retrieved:
        assert printed(first, decompose.bank)[-1] != printed(second, decompose.bank)[-1]
    expected = {"safe": (0.1, 512), "veriscore": (0.0, 1000)}.get(method, (0.7, 512))
    assert model.options == (1, expected[0], 1.0, expected[1], 0)


@pytest.mark.parametrize("method", ["factscore", "wice", "conllu"])
@pytest.mark.parametrize("place", [0, 12])
def test_bank_sentence_is_excluded_from_its_examples(method, place):
    model = Model()
    decompose = decomposer(method, model)
    example = decompose.bank.examples[place]
    decompose([document(example.sentence)])
    (prompt,) = model.calls[0]
    # Only as the sentence that is asked about: once, or with CoNLL-U in the comment of its parse.
    assert prompt.count(example.sentence) == 1
    assert f"- {example.claims[0]}" not in prompt
    assert len(printed(prompt, decompose.bank)) == sum(COUNTS[method]) + 1


def test_banks_have_the_same_sentences_in_every_style():
    banks = {name: Prompted(Model(), name).bank for name in ("factscore", "wice", "rnd")}
    assert Prompted(Model(), "chen").bank.path == banks["factscore"].path
    sentences = {name: {e.sentence for e in bank.examples} for name, bank in banks.items()}
    assert all(len(group) >= 21 and group == sentences["rnd"] for group in sentences.values())
    assert all(e.claims for bank in banks.values() for e in bank.examples)
    sizes = {name: sum(len(e.claims) for e in bank.examples) for name, bank in banks.items()}
    assert sizes["rnd"] > sizes["factscore"] > sizes["wice"]
    for name, bank in banks.items():
        for example in bank.examples:
            assert split_sentences(example.sentence) == [example.sentence]
            assert len(set(example.claims)) == len(example.claims), (name, example.sentence)


# Table 1 of 2403.11903.
INSTRUCTIONS = {
    "factscore": "Please breakdown the following sentence into independent facts:",
    "fs2": "Please breakdown the following sentence into independent facts:",
    "wice": "Segment the following sentence into individual facts:",
    "chen": "Given the following sentence, tell me what claims they are making. Please split the "
    "sentence as much as possible, but do not include information not in the sentence:",
    "conllu": "The sentence below is given in CoNLL-U format. Word lines contain the annotation of "
    "a word/token/node in 10 fields separated by single tab characters. Sentences consist of one "
    "or more word lines. Please break down the following sentence given in CoNLL-U format into "
    "independent facts:",
    "rnd": "Please decompose the following sentence into individual facts:",
}


@pytest.mark.parametrize("method", INSTRUCTIONS)
def test_prompts_have_the_instruction_of_table_1(method):
    model = Model()
    decomposer(method, model)([document("She saw Peru.")])
    ((prompt,),) = model.calls
    times = 1 if method == "wice" else sum(COUNTS[method]) + 1
    assert prompt.count(INSTRUCTIONS[method]) == times
    assert "\n\n\n" not in prompt


def test_unusable_answers_fail_and_no_claims_is_an_empty_list():
    model = Model(
        Refused=Answer("I'm sorry, I cannot do that."),
        Down=Answer("", "empty"),
        Empty=Answer("No verifiable claim."),
        Prose=Answer("She sang. He danced."),
    )
    texts = ["Refused it. Fine it was.", "Down it went.", "Empty it is. Prose it is."]
    results = Prompted(model, "fs2")([document(t, id=t) for t in texts])
    assert len(model.calls) == 1
    assert [[(c.id, c.text, c.failed) for c in group] for group in results] == [
        [
            ("c0", "Refused it.", "the model refused"),
            ("c1", "Somebody did something.", None),
            ("c2", "It was good.", None),
        ],
        [("c0", "Down it went.", "empty")],
        [("c0", "Prose it is.", "no list of claims in the answer")],
    ]
    assert Prompted(model, "fs2")([document("I'm sorry, I do not know."), document("")]) == [[], []]
    assert len(model.calls) == 1


def test_too_long_conllu_prompt_drops_examples_then_backs_off():
    texts = ["Ada Roe sang.", "Ada Roe sang " + "la " * 44 + "on.", "Ada " + "la " * 99 + "on."]

    def sent_prompts(limit, *group, **options):
        model = Model(limit)
        decompose = Prompted(model, "conllu", parser=Words(), **options)
        return decompose, model, decompose([document(text) for text in group])

    def words(text, static, retrieved):
        _, model, _ = sent_prompts(10**6, text, static=static, retrieved=retrieved)
        return len(model.calls[0][0].split())

    # The first fits with one example, the second without any, the third never.
    limit = words(texts[1], 0, 0)
    assert words(texts[0], 0, 1) <= limit < words(texts[0], 1, 1)
    assert limit < min(words(texts[1], 0, 1), words(texts[2], 0, 0))
    decompose, tight, results = sent_prompts(limit, *texts, "Ada Roe")
    assert [len(call) for call in tight.calls] == [3, 3, 2]
    kept = [[printed(prompt, decompose.bank) for prompt in call] for call in tight.calls]
    assert kept[0][0][0] == 0
    assert kept[1] == [group[1:] for group in kept[0]], "the static one goes first"
    assert kept[2] == [[], []]
    zero = tight.calls[2][0]
    assert zero.count(INSTRUCTIONS["conllu"]) == 1
    assert "1\tAda\tAda" in zero
    for group in results[:2]:
        assert [c.text for c in group] == ["Somebody did something.", "It was good."]
    (claim,) = results[2]
    assert (claim.text, claim.failed) == (texts[2], None)
    assert claim.backed_off == "prompt too long for the model"
    assert [c.failed for c in results[3]] == ["no parse"]

    too_long = Model(limit=5)
    (group,) = Prompted(too_long, "factscore")([document("Ada Roe sang.")])
    assert [c.failed for c in group] == ["prompt too long for the model"]


def test_conllu_examples_use_the_bank_parses(tmp_path):
    class Strangers(Words):
        def parse(self, sentences):
            trees_by_text = super().parse(sentences)
            return [
                t if "Roe" in text else None
                for t, text in zip(trees_by_text, sentences, strict=True)
            ]

    model = Model()
    decompose = Prompted(model, "conllu", parser=Strangers())
    decompose([document("Ada Roe sang in Peru.")])
    (prompt,) = model.calls[0]
    assert len(printed(prompt, decompose.bank)) == 2
    assert prompt.count("# text = ") == 3
    assert "decompose/examples/factscore.conllu" in hash_prompts(decompose)
    (tmp_path / "own.txt").write_text("Ada sang.\n- Ada sang.\n\nBob sat.\n- Bob sat.\n")
    group = {"examples": tmp_path / "own.txt", "static": 1, "retrieved": 0}
    with pytest.raises(UserError, match=r"own\.txt: no parse of the example 'Ada sang.*own\.con"):
        Prompted(model, "conllu", parser=Strangers(), **group)([document("Ada Roe sang.")])


def test_each_bank_example_has_a_parse():
    bank = Prompted(Model(), "factscore").bank
    trees = list(read_conllu(bank.path.with_suffix(".conllu")))
    assert [tree.text for tree in trees] == [e.sentence for e in bank.examples]
    assert all(join_words(tree.tokens) == tree.text for tree in trees)


def test_sampling_depends_on_the_seed_alone():
    with ModelServer(lambda body: f"- The seed was {body['seed']}, it is said.") as server:

        def claims(seed, *texts):
            writer = OpenAIServer("tiny", server.url)
            results = Prompted(writer, "fs2", seed=seed)([document(t, id=t) for t in texts])
            return [c.text for group in results for c in group]

        reply_to = claims(1, "Ada sang.")
        assert claims(1, "Bob sang.", "Ada sang.")[1:] == reply_to
        assert claims(2, "Ada sang.") != reply_to
        assert server.asked[0]["temperature"] == 0.7


def test_answer_is_cut_at_an_invented_example():
    def goes_on(body):
        assert body["prompt"].endswith("Ada sang and danced.")
        more = "Please breakdown the following sentence into independent facts: Bob ate."
        return f"\n- Ada sang.\n- Ada danced.\n\n{more}\n- Bob ate."

    with ModelServer(goes_on) as server:
        writer = OpenAIServer("gpt-3.5-turbo-instruct", server.url, endpoint="completions")
        (claims,) = Prompted(writer, "factscore")([document("Ada sang and danced.")])
    assert [(c.text, c.failed) for c in claims] == [("Ada sang.", None), ("Ada danced.", None)]
    assert server.paths == ["/v1/completions"]


def test_windows_show_neighbours_and_the_question():
    text = [f"S{i}." for i in range(7)]

    def at(index, **more):
        return window(Place(document("x", **more), text, index))

    assert at(0) == "Text: <SOS>S0.<EOS> S1."
    assert at(3) == "Text: S0. S1. S2. <SOS>S3.<EOS> S4."
    assert at(6) == "Text: S0. S3. S4. S5. <SOS>S6.<EOS>"
    sent_prompts = "Question: Who?\nResponse: S3. S4. S5. <SOS>S6.<EOS>"
    assert at(6, topic="Who?") == at(6, question="Who?") == sent_prompts

    model = Model()
    Prompted(model, "veriscore")([document("Ada sang. She left.", topic="Who sang?")])
    end = "Response: Ada sang. <SOS>She left.<EOS>\nSentence to be focused on: She left.\nFacts:"
    assert model.calls[0][1].endswith(end)
    assert "Facts:\nNo verifiable claim.\n" in model.calls[0][0]


SPLITS = [
    ["He weighs 220 lbs.", "Memović plays forward."],
    ["He was born in Centerville, Iowa.", "His father was a miner."],
    ["J. R. Smith met Lt. Col. John F. Kennedy Jr. in the U.S.", "He left."],
    ["He sang for Gen. He Long, feat. Bob Ray.", "It peaked at No. 5 in the U.K. charts."],
    ["It came out as vol. Two of a set.", "She drew capt. Ray."],
    ["Hello, Dolly! was a success.", "He said “Go.”", "Then he left."],
    ["1. FSV Mainz 05 won.", "Bo Ray joined 1. FC Union Berlin in 2001."],
    ["3. Liga has 20 clubs.", "He was the 5. Earl of Kent.", "Am 3. Mai kam er."],
    ["She was ranked 12.", "Ada Roe won.", "It has a population of 12.", "The town is old."],
    ["“Who goes there?” Mrs. Roe asked.", '"Stop it now!" Bo Ray shouted at Ada.', "She left."],
    ['She asked, "Who are you?"', "Bo Ray replied that he was Bo."],
    ["She read earlier sources, esp. English ones (trans. Bo Ray, cf. The Ferns)."],
    ["She served as Asst. Secretary and met St. Clair, b. Lima, in 1910."],
    ["The panel, ca. 1480, hangs in Siena.", "Ada Roe, née Ray, painted it."],
    ["It appeared (ed. Bo Ray) at No. 5 as Roe v. Wade vs. The State.", "It sold."],
    ["She was the child of Bo Ray Jr.", "Her mother sang."],
    ["The talk ended at 5 p.m.", "Everyone went home."],
    ["The train left at 8 a.m. Monday and came at 9 p.m. Eastern Time."],
    ["She died at the age of 50.", "Ada Roe was famous."],
    ["Her novel Der Farn (orig. The Fern) sold well.", "She left."],
    ["He wrote in J. Phys. Chem. and J. Appl. Math. 12.", "He died in Lima."],
    ["She led Yahoo! Japan for a year.", "Bo Ray hosted Jeopardy! Masters.", "It ended."],
    ["She sang in Wham!", "She left."],
    ["वह लीमा में जन्मी थीं।", "वह गायिका थीं।"],
    ["هل ولدت في ليما؟", "كانت عالمة نبات."],
    ["وہ لیما میں پیدا ہوئیں۔", "وہ ماہر تھیں۔"],
]
# Sentences without a blank between them.
UNSPACED = {
    "She died in 1934.She was old.Bo left.": ["She died in 1934.", "She was old.", "Bo left."],
    "She moved to Lima.In 1950 she left.": ["She moved to Lima.", "In 1950 she left."],
    "She uses Node.js, Will.I.Am and J.R.Smith do not.": None,
    "她生于利马。她是植物学家！": ["她生于利马。", "她是植物学家！"],
    "彼女は「なぜ？」と聞いた。科学者だ．": ["彼女は「なぜ？」と聞いた。", "科学者だ．"],
}


@pytest.mark.parametrize("sentences", SPLITS, ids=lambda sentences: sentences[0])
def test_text_is_split_into_its_sentences(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(("text", "sentences"), UNSPACED.items())
def test_sentences_without_a_blank_between_them_are_split(text, sentences):
    assert split_sentences(text) == (sentences or [text])


def test_lines_end_sentences_and_list_marks_are_removed():
    text = "Early life\n\n- Ada sang.\n2. She left. Twice.\n3. …\n\n* Yes. She did."
    assert split_sentences(text) == ["Early life", "Ada sang.", "She left. Twice.", "Yes. She did."]


def claims_of(text):
    return [
        claim.text for claim in run_decomposer(Sentences(), [clean_document(document(text))])[0]
    ]


def test_headings_and_code_are_not_claims_but_kept_in_evidence():
    text = "# Ada Roe\n\n### Early life\nAda sang.\n```python\nx = 1\n```\n#1 in Peru was her song."
    assert claims_of(text) == ["Ada sang.", "#1 in Peru was her song."]
    evidence = ["# Ada Roe", "### Early life", "Ada sang."]
    assert split_sentences(text)[:3] == evidence
    assert claims_of("### 2. Her later life?\nShe left.") == ["She left."]


def test_tables_bold_headings_and_marks_of_chat_answers_are_not_claims():
    text = (
        "***Early life***\nAda sang【7:1†file.pdf】.[^2] She *left* **soon**.[b]\n**Songs:**\n"
        "| Year | Song |\n|---|---|\n| 1990 | Tide |\n__Later__\nOld age\n-------\n"
        "Ada saw [Bo](https://bo.example/x)[[3]](https://a.example).\n[^2]: Lists, 1990.\n"
        '**She had 2 * 3 songs.** Bo "[a] ray" sang a|b \ue200cite\ue202turn0\ue201.[Source 4]'
    )
    claims = ["Ada sang.", "She left soon.", "Ada saw Bo.", "She had 2 * 3 songs."]
    assert claims_of(text) == [*claims, 'Bo "[a] ray" sang a|b.']


def test_a_text_whose_lines_were_joined_is_not_a_heading():
    assert claims_of("# Ada Roe Ada sang. She left.") == ["Ada Roe Ada sang.", "She left."]
    assert claims_of("```Ada sang. She left.```") == ["```Ada sang.", "She left.```"]


def test_citations_are_not_part_of_a_sentence():
    text = "Ada sang[1][2]. She left [3, 4-6]. In [1990] she died[citation needed]."
    assert claims_of(text) == ["Ada sang.", "She left.", "In [1990] she died."]
    assert claims_of("Facts\n[1] Ada sang\r\n[2] Ada left") == ["Facts", "Ada sang", "Ada left"]


def test_decomposers_read_the_cleaned_text_and_the_stored_text_is_unchanged():
    model = Model()
    text = "<think>He sat.</think>Ada sang. Would you like more?"
    (scored,) = Pipeline(Prompted(model, "fs2"), [Labels()]).score([document(text)])
    assert len(model.calls[0]) == 1
    assert model.calls[0][0].endswith("Ada sang.")
    assert scored.document.text == text
    assert {claim.source for claim in scored.claims} == {"Ada sang."}
    assert scored.removed == {"reasoning": 1, "questions": 4}


@pytest.mark.parametrize(
    ("generator", "number", "share"), [("InstructGPT", 1123, 0.997), ("PerplexityAI", 1625, 0.987)]
)
def test_annotated_sentences_of_the_labelled_biographies_are_returned(generator, number, share):
    data = os.environ.get("FACTFOUNDRY_DATA")
    if not data:
        pytest.skip("FACTFOUNDRY_DATA is not set: FActScore's labelled biographies are elsewhere")
    equal = []
    for row in iter_rows(Path(data) / f"factscore_labeled/{generator}.jsonl"):
        sentences = split_sentences(clean(row[1]["output"]).text)
        annotated = [annotation["text"] for annotation in row[1]["annotations"] or []]
        equal += [text in sentences or clean(text).text in sentences for text in annotated]
    assert len(equal) == number
    assert sum(equal) / number >= share


# Claims that came with the documents


def test_claim_without_source_gets_the_most_similar_sentence():
    text = "Ada Roe painted ships. Ada Roe sang in Peru [1]. Ada slept."
    claims = [
        Claim(id="a", text="Roe has sung in Peru."),
        Claim(id="b", text="Bob ate."),
        Claim(id="c", text="Ada sang in Peru.", source="Her own words."),
    ]
    (results,) = run_decomposer(Given(align=True), [clean_document(document(text, claims=claims))])
    assert [(c.source, c.sentence) for c in results] == [
        ("Ada Roe sang in Peru.", 1),
        (None, claims[1].sentence),
        ("Her own words.", claims[2].sentence),
    ]
    assert Given()([document(text, claims=claims)]) == [claims]


@pytest.mark.parametrize(
    ("text", "cut", "claims"),
    [
        ("- Ada sang.\n- Ada left.", False, ["Ada sang.", "Ada left."]),
        ("So:\n- Ada sang.\n- Ada left.", True, CUT),
        ('["Ada sang.", "Ada left."', True, "no list of claims in the answer"),
        ("- Ada sang.\n\nSentence: Bo ran.\n- Bo ran.", True, ["Ada sang."]),
    ],
)
def test_cut_list_of_claims_fails(text, cut, claims):
    class Cut:
        def answer(self, prompts, **settings):
            return [[Answer(text, cut=cut)] for _ in prompts]

    example = {"role": "user", "content": "Sentence: A.\n- A b.\n\nSentence: Ada sang and left."}
    asker = Asker(Cut(), 0.0, 9, 0, 0)
    (answer,) = ask_for_claims(asker, [[example]], ["Ada sang and left."])
    assert answer == (Failed(claims) if isinstance(claims, str) else claims)


@pytest.mark.parametrize(
    ("sentence", "claims", "kept"),
    [
        # A number that the sentence lacks.
        (
            "Ann was born on 3 May 1950.",
            ["Ann was born on 3 May 1950.", "Ann was born in 1951."],
            1,
        ),
        # The sentence's date is not stated: all stay.
        ("Ann sang in 1950.", ["Ann sang.", "Ann sang in 1960."], 2),
        # A beginning of another subclaim.
        ("Ann was born in Rome.", ["Ann was born.", "Ann was born in Rome."], 1),
        ("Ann sang.", ["Ann sang.", "Ann sang."], 1),
    ],
)
def test_entity_check_keeps_subclaims_of_the_sentences_dates_and_numbers(sentence, claims, kept):
    assert len(check_entities(sentence, claims)) == kept


def test_entity_check_completes_the_beginning_of_a_date():
    claims = ["Ann was born on 3 May."]
    assert check_entities("Ann was born on 3 May 1950.", claims) == ["Ann was born on 3 May 1950."]
