"""PredPatt: each rule on small trees, sentences by rule and by a model, the stage.

What is extracted here was compared with the original's output for the same trees.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from eval.decompose.by_sentence import Failed, Place
from eval.decompose.predpatt.extract import extract
from eval.decompose.predpatt.realise import realise
from eval.decompose.predpatt.show import format_inline, format_pattern, format_predicates
from eval.decompose.predpatt.stage import PredPatt
from eval.decompose.ud.tree import Token, Tree, check_ud, join_words, read_conllu
from eval.models.chat import Answer
from eval.run.parts import hash_prompts
from records import Document

GOLD = Path(__file__).parent / "ud_gold.conllu"
V1 = {"obj": "dobj", "nsubj:pass": "nsubjpass", "aux:pass": "auxpass", "obl": "nmod"}

# form/part of speech/head/relation; the small letter is the last of the tag (VBD, NNS).
TREES = {
    "active": "Nora/PROPN/2/nsubj sold/VERBd/0/root the/DET/6/det dark/ADJ/5/amod red/ADJ/6/amod "
    "boat/NOUN/2/obj to/ADP/8/case Ivo/PROPN/2/obl ./PUNCT/2/punct",
    "passive": "The/DET/2/det mill/NOUN/4/nsubj:pass was/AUXd/4/aux:pass built/VERBn/0/root "
    "by/ADP/7/case two/NUM/7/nummod brothers/NOUNs/4/obl ./PUNCT/4/punct",
    "copula": "Ivo/PROPN/5/nsubj is/AUXz/5/cop a/DET/5/det good/ADJ/5/amod painter/NOUN/0/root "
    "and/CCONJ/7/cc poet/NOUN/5/conj ./PUNCT/5/punct",
    "of_predicate": "Ivo/PROPN/4/nsubj is/AUXz/4/cop a/DET/4/det painter/NOUN/0/root "
    "living/VERBg/4/acl here/ADV/5/advmod ,/PUNCT/9/punct a/DET/9/det genius/NOUN/4/appos "
    "./PUNCT/4/punct",
    "arguments": "Nora/PROPN/4/nsubj and/CCONJ/3/cc Ivo/PROPN/1/conj buy/VERBp/0/root "
    "lamps/NOUNs/4/obj and/CCONJ/7/cc maps/NOUNs/5/conj ./PUNCT/4/punct",
    "predicates": "Nora/PROPN/2/nsubj came/VERBd/0/root home/ADV/2/advmod ,/PUNCT/6/punct "
    "and/CCONJ/6/cc cooked/VERBd/2/conj soup/NOUN/6/obj ,/PUNCT/10/punct no/DET/10/det "
    "joke/NOUN/2/conj ./PUNCT/2/punct",
    "neg": "Ivo/PROPN/4/nsubj did/AUXd/4/aux not/PART/4/neg sing/VERB/0/root or/CONJ/4/cc "
    "dance/VERB/4/conj ./PUNCT/4/punct",
    "neg_of_two": "Nora/PROPN/6/nsubj and/CONJ/1/cc Ivo/PROPN/1/conj did/AUXd/6/aux not/PART/6/neg "
    "sing/VERB/0/root or/CONJ/6/cc dance/VERB/6/conj ./PUNCT/6/punct",
    "subject_relcl": "The/DET/2/det painter/NOUN/6/nsubj who/PRON/4/nsubj left/VERBd/2/acl:relcl "
    "us/PRON/4/obj sold/VERBd/0/root the/DET/8/det mill/NOUN/6/obj ./PUNCT/6/punct",
    "object_relcl": "Nora/PROPN/2/nsubj kept/VERBd/0/root the/DET/4/det map/NOUN/2/obj "
    "that/PRON/7/obj Ivo/PROPN/7/nsubj drew/VERBd/4/acl:relcl there/ADV/7/advmod ./PUNCT/2/punct",
    "oblique_relcl": "The/DET/2/det town/NOUN/8/nsubj in/ADP/4/case which/PRON/6/obl "
    "Ivo/PROPN/6/nsubj lives/VERBz/2/acl:relcl is/AUXz/8/cop quiet/ADJ/0/root ./PUNCT/8/punct",
    "whose": "A/DET/2/det poet/NOUN/6/nsubj whose/PRON/4/nmod:poss son/NOUN/5/nsubj "
    "sings/VERBz/2/acl:relcl arrived/VERBd/0/root ./PUNCT/6/punct",
    "acl": "The/DET/2/det boats/NOUNs/7/nsubj painted/VERBn/2/acl by/ADP/5/case Nora/PROPN/3/obl "
    "are/AUXp/7/cop slow/ADJ/0/root ./PUNCT/7/punct",
    "content": "The/DET/2/det hope/NOUN/6/nsubj that/SCONJ/5/mark Ivo/PROPN/5/nsubj "
    "sings/VERBz/2/ccomp died/VERBd/0/root ./PUNCT/6/punct",
    "news": "News/NOUN/5/nsubj that/SCONJ/4/mark Ivo/PROPN/4/nsubj sings/VERBz/1/acl "
    "spread/VERBd/0/root ./PUNCT/5/punct",
    "appos": "Ivo/PROPN/10/nsubj ,/PUNCT/4/punct a/DET/4/det painter/NOUN/1/appos from/ADP/6/case "
    "Oslo/PROPN/4/nmod ,/PUNCT/4/punct has/AUXz/10/aux often/ADV/10/advmod slept/VERBn/0/root "
    "./PUNCT/10/punct",
    "poss": "His/PRON/2/nmod:poss sister/NOUN/3/nsubj likes/VERBz/0/root Ivo/PROPN/6/nmod:poss "
    "'s/PART/4/case boats/NOUNs/3/obj ./PUNCT/3/punct",
    "xcomp": "Nora/PROPN/2/nsubj wants/VERBz/0/root to/PART/4/mark go/VERB/2/xcomp to/ADP/6/case "
    "Oslo/PROPN/4/obl and/CCONJ/8/cc sell/VERB/4/conj boats/NOUNs/8/obj ./PUNCT/2/punct",
    "control": "Nora/PROPN/2/nsubj made/VERBd/0/root Ivo/PROPN/2/obj a/DET/5/det poet/NOUN/2/xcomp "
    "of/ADP/7/case war/NOUN/5/nmod ./PUNCT/2/punct",
    "shown": "Boats/NOUNs/5/nsubj shown/VERBn/1/acl to/PART/4/mark float/VERB/2/xcomp "
    "sell/VERBp/0/root ./PUNCT/5/punct",
    "ccomp": "Ivo/PROPN/2/nsubj sings/VERBz/5/ccomp ,/PUNCT/2/punct Nora/PROPN/5/nsubj "
    "said/VERBd/0/root ./PUNCT/5/punct",
    "that": "Nora/PROPN/2/nsubj said/VERBd/0/root that/SCONJ/5/mark Ivo/PROPN/5/nsubj "
    "sings/VERBz/2/ccomp and/CCONJ/7/cc dances/VERBz/5/conj ./PUNCT/2/punct",
    "csubj": "Singing/VERBg/4/csubj songs/NOUNs/1/obj is/AUXz/4/cop fun/ADJ/0/root ./PUNCT/4/punct",
    "advcl": "Born/VERBn/6/advcl in/ADP/3/case Oslo/PROPN/1/obl ,/PUNCT/1/punct she/PRON/6/nsubj "
    "moved/VERBd/0/root far/ADV/6/advmod from/ADP/9/case home/NOUN/7/obl ./PUNCT/6/punct",
    "from": "Rain/NOUN/2/nsubj kept/VERBd/0/root her/PRON/2/obj from/SCONJ/5/mark "
    "sailing/VERBg/2/advcl boats/NOUNs/5/obj ./PUNCT/2/punct",
    "orders": "Take/VERB/0/root the/DET/3/det map/NOUN/1/obj and/CCONJ/5/cc fold/VERB/1/conj "
    "!/PUNCT/1/punct",
    "unknown": "Nora/PROPN/2/nsubj left/VERBd/0/root town/NOUN/2/obj I/PRON/5/nsubj "
    "mean/VERBp/3/dep ,/PUNCT/7/punct see/VERB/2/parataxis !/PUNCT/2/ccomp",
}

EXTRACTED = {
    "active": [
        "?a sold ?b to ?c: Nora; the dark red boat; Ivo",
        "?a is/are dark red: the boat",
    ],
    "passive": [
        "?a was built by ?b: The mill; two brothers",
    ],
    "copula": [
        "?a is/are good: a painter",
        "?a is a good painter: Ivo",
        "?a poet: Ivo",
    ],
    "of_predicate": [
        "?a is a painter: Ivo",
        "?a living here: a painter",
        "?a is/are a genius: a painter living here",
    ],
    "arguments": [
        "?a buy ?b: Nora; lamps",
        "?a buy ?b: Ivo; lamps",
        "?a buy ?b: Nora; maps",
        "?a buy ?b: Ivo; maps",
    ],
    "predicates": [
        "?a came home: Nora",
        "?a cooked ?b: Nora; soup",
    ],
    "neg": [
        "?a did not sing: Ivo",
        "?a not dance: Ivo",
    ],
    # The negation is lost where the shared subject is one of several, as in the original.
    "neg_of_two": [
        "?a did not sing: Nora",
        "?a did not sing: Ivo",
        "?a dance: Nora",
        "?a dance: Ivo",
    ],
    "subject_relcl": [
        "?a left ?b: The painter; us",
        "?a sold ?b: The painter who left us; the mill",
    ],
    "object_relcl": [
        "?a kept ?b: Nora; the map that Ivo drew there",
        "?a ?b drew there: the map; Ivo",
    ],
    "oblique_relcl": [
        "?a in ?b lives: The town; Ivo",
        "?a is quiet: The town in which Ivo lives",
    ],
    "whose": [
        "?a poss ?b: whose; son",
        "?a ?b sings: A poet; whose son",
        "?a arrived: A poet whose son sings",
    ],
    "acl": [
        "?a painted by ?b: The boats; Nora",
        "?a are slow: The boats painted by Nora",
    ],
    "content": [
        "?a sings: Ivo",
        "?a died: The hope that Ivo sings",
    ],
    "news": [
        "?a ?b sings: News; Ivo",
        "?a spread: News that Ivo sings",
    ],
    "appos": [
        "?a is/are a painter from ?b: Ivo; Oslo",
        "?a has often slept: Ivo",
    ],
    "poss": [
        "?a poss ?b: His; sister",
        "?a likes ?b: His sister; Ivo 's boats",
        "?a poss ?b: Ivo; boats",
    ],
    "xcomp": [
        "?a wants to go to ?b: Nora; Oslo",
        "?a wants to sell ?b: Nora; boats",
    ],
    "control": [
        "?a made ?b a poet of ?c: Nora; Ivo; war",
    ],
    "shown": [
        "?a shown to float: Boats",
        "?a sell: Boats shown to float",
    ],
    "ccomp": [
        "?a sings: Ivo",
        "?a ?b said: ~Ivo sings; Nora",
    ],
    "that": [
        "?a said ?b: Nora; ~Ivo sings",
        "?a sings: Ivo",
        "?a dances: Ivo",
    ],
    "csubj": [
        "Singing ?a: songs",
        "?a is fun: ~Singing songs",
    ],
    "advcl": [
        "Born in ?a ?b: Oslo; she",
        "?a moved far from ?b: she; home",
    ],
    "from": [
        "?a kept ?b: Rain; her",
        "?a sailing ?b: her; boats",
    ],
    "orders": [
        "Take ?a: the map",
        "?a fold: the map",
    ],
    "unknown": [
        "?a left ?b ?c: Nora; town; ~!",
    ],
}
SENTENCES = {
    "active": [
        "Nora sold the dark red boat to Ivo.",
        "The boat is dark red.",
    ],
    "passive": [
        "The mill was built by two brothers.",
    ],
    "copula": [
        "A painter is good.",
        "Ivo is a good painter.",
        "Ivo is a poet.",
    ],
    "of_predicate": [
        "Ivo is a painter.",
        "A painter is living here.",
        "A painter living here is a genius.",
    ],
    "arguments": [
        "Nora buys lamps.",
        "Ivo buys lamps.",
        "Nora buys maps.",
        "Ivo buys maps.",
    ],
    "predicates": [
        "Nora came home.",
        "Nora cooked soup.",
    ],
    "neg": [
        "Ivo did not sing.",
        "Ivo did not dance.",
    ],
    "neg_of_two": [
        "Nora did not sing.",
        "Ivo did not sing.",
        "Nora did not dance.",
        "Ivo did not dance.",
    ],
    "subject_relcl": [
        "The painter left us.",
        "The painter who left us sold the mill.",
    ],
    "object_relcl": [
        "Nora kept the map that Ivo drew there.",
        "Ivo drew the map there.",
    ],
    "oblique_relcl": [
        "Ivo lives in the town.",
        "The town in which Ivo lives is quiet.",
    ],
    "whose": [
        "A poet has a son.",
        "A poet's son sings.",
        "A poet whose son sings arrived.",
    ],
    "acl": [
        "The boats are painted by Nora.",
        "The boats painted by Nora are slow.",
    ],
    "content": [
        "Ivo sings.",
        "The hope that Ivo sings died.",
    ],
    "news": [
        "Ivo sings.",
        "News that Ivo sings spread.",
    ],
    "appos": [
        "Ivo is a painter from Oslo.",
        "Ivo has often slept.",
    ],
    "poss": [
        "He has a sister.",
        "His sister likes Ivo's boats.",
        "Ivo has boats.",
    ],
    "xcomp": [
        "Nora wants to go to Oslo.",
        "Nora wants to sell boats.",
    ],
    "control": [
        "Nora made Ivo a poet of war.",
    ],
    "shown": [
        "Boats are shown to float.",
        "Boats shown to float sell.",
    ],
    "ccomp": [
        "Ivo sings.",
        "Nora said Ivo sings.",
    ],
    "that": [
        "Nora said that Ivo sings.",
        "Ivo sings.",
        "Ivo dances.",
    ],
    "csubj": [
        "Singing songs is fun.",
    ],
    "advcl": [
        "She was born in Oslo.",
        "She moved far from home.",
    ],
    "from": [
        "Rain kept her.",
        "She was sailing boats.",
    ],
    "orders": [],
    "unknown": [
        "Nora left town.",
    ],
}


def row(id, cell, labels=None):
    form, tag, head, label = cell.rsplit("/", 3)
    upos = tag.rstrip("dgnpsz")
    xpos = {"VERB": "VB", "AUX": "VB", "NOUN": "NN"}.get(upos, upos) + tag[len(upos) :].upper()
    label = (labels or {}).get(label, label)
    return Token(id, form, form, upos, xpos, "_", int(head), label)


def tree(name, labels=None):
    tokens = [row(id, cell, labels) for id, cell in enumerate(TREES[name].split(), 1)]
    for before, after in pairwise(tokens):
        if after.upos == "PUNCT" or after.form == "'s":
            tokens[before.id - 1] = replace(before, misc="SpaceAfter=No")
    return Tree(tuple(tokens), join_words(tokens))


def brief(name, labels=None):
    """Each predicate as its pattern with the arguments' phrases, ``~`` before a clause."""
    return [
        f"{format_pattern(p)}: {'; '.join('~' * a.clausal + a.phrase for a in p.arguments)}"
        for p in extract(tree(name, labels))
    ]


@pytest.mark.parametrize("name", TREES)
def test_extraction_and_sentences(name):
    assert check_ud(tree(name)) is None
    assert brief(name) == EXTRACTED[name]
    assert brief(name, labels=V1) == EXTRACTED[name], "v1's labels mean the same"
    assert realise(tree(name), extract(tree(name))) == SENTENCES[name]


def test_the_printed_form_is_that_of_the_original():
    assert format_predicates(extract(tree("ccomp"))) == (
        "\t?a sings\n\t\t?a: Ivo\n\t?a ?b said\n\t\t?a: SOMETHING := Ivo sings\n\t\t?b: Nora"
    )
    assert format_predicates([]) == ""


def test_sentences_of_gold_trees():
    canned = {t.text: realise(t, extract(t)) for t in read_conllu(GOLD)}
    texts = [text for group in canned.values() for text in group]
    assert len(texts) > 1.5 * len(canned)
    assert all(t[0].isupper() or not t[0].isalpha() for t in texts)
    assert all(t.endswith(".") and " ," not in t and "?" not in t for t in texts)
    assert canned["The shy, clever boy loved books and hated sports."] == [
        "The clever boy is shy.",
        "The shy boy is clever.",
        "The shy, clever boy loved books.",
        "The shy, clever boy hated sports.",
    ]


def test_joined_words_are_kept_together():
    cells = "A/DET/4/det co/X/4/compound -/PUNCT/4/punct founder/NOUN/5/nsubj left/VERBd/0/root"
    tokens = [row(id, cell) for id, cell in enumerate(cells.split(), 1)]
    glued = [replace(t, misc="SpaceAfter=No" if t.id in {2, 3} else "_") for t in tokens]
    whole = Tree(tuple(glued), "A co-founder left")
    assert realise(whole, extract(whole)) == ["A co-founder left."]


def test_a_past_that_the_tagger_takes_for_a_participle_stays_active():
    cells = "Nora/PROPN/2/nsubj taught/VERBn/0/root here/ADV/2/advmod and/CCONJ/5/cc "
    cells += "left/VERBn/2/conj us/PRON/5/obj"
    tokens = [row(id, cell) for id, cell in enumerate(cells.split(), 1)]
    reply_to = Tree(tuple(tokens[:3]), "Nora taught here")
    assert realise(reply_to, extract(reply_to)) == ["Nora taught here."]
    born = Tree((reply_to.tokens[0], replace(tokens[1], form="born"), tokens[2]), "Nora born here")
    assert realise(born, extract(born)) == ["Nora is born here."]
    tokens[1] = replace(tokens[1], xpos="VBD")
    two = Tree(tuple(tokens), "Nora taught here and left us")
    assert realise(two, extract(two)) == ["Nora taught here.", "Nora left us."]


class Parses:
    """Trees by their text; one of them is not Universal Dependencies."""

    def __init__(self):
        self.identity = {"parser": "trees"}

    def parse(self, sentences):
        trees_by_text = {tree(name).text: tree(name) for name in TREES}
        trees_by_text["Oslo."] = Tree(
            (row(1, "Oslo/PROPN/0/root"), row(2, "./PUNCT/1/punct")), "Oslo."
        )
        trees_by_text["Bad."] = Tree((row(1, "Bad/ADJ/0/ROOT"), row(2, "./PUNCT/1/punct")), "Bad.")
        return [trees_by_text.get(sentence) for sentence in sentences]


class Model:
    """Plays a language model: ``said`` maps a sentence to an answer."""

    def __init__(self, **canned):
        self.identity = {"model": "player"}
        self.said, self.asked = canned, []

    def answer(self, prompts, *, n=1, temperature, top_p, max_new_tokens, seed):
        self.asked += [messages[-1]["content"] for messages in prompts]
        return [[self.reply_to(text)] for text in self.asked]

    def reply_to(self, text):
        answer = next(value for key, value in self.said.items() if f"Sentence: {key}" in text)
        return Answer("", "cut") if answer is None else Answer(answer)


TEXT = "Nora sold the dark red boat to Ivo. Nobody has parsed this one here. Ivo sings, Nora said."
DOCUMENT = Document(id="d", topic="Nora", text=TEXT)


def test_sentences_without_parse_fail():
    stage = PredPatt(Parses())
    (claims,) = stage([DOCUMENT])
    assert [(c.text, c.sentence, c.failed) for c in claims] == [
        ("Nora sold the dark red boat to Ivo.", 0, None),
        ("The boat is dark red.", 0, None),
        ("Nobody has parsed this one here.", 1, "no parse"),
        ("Ivo sings.", 2, None),
        ("Nora said Ivo sings.", 2, None),
    ]
    none, bad = stage.subclaims([Place(DOCUMENT, ["Oslo.", "Bad."], index) for index in range(2)])
    assert none == [], "a heading has no predicate, and so no subclaim"
    assert isinstance(bad, Failed)
    assert bad.reason.startswith("no Universal Dependencies: ")


def test_language_model_writes_the_sentences():
    answers = {
        "Nora sold": "Sure, here they are:\n- Nora sold Ivo the boat.\n- The boat is dark red.",
        "Ivo sings": "- Ivo sings.\n- Nora spoke.\n- Nora said that Ivo sings.",
        "Nora came": None,
    }
    writer = Model(**answers)
    stage = PredPatt(Parses(), writer=writer)
    texts = ["Nora sold the dark red boat to Ivo.", "Oslo.", "Ivo sings, Nora said."]
    texts.append(tree("predicates").text)
    places = [Place(DOCUMENT, texts, index) for index in range(4)]
    assert stage.subclaims(places) == [
        ["Nora sold Ivo the boat.", "The boat is dark red."],
        [],
        Failed("3 sentences for 2 predicates"),
        Failed("cut"),
    ]
    assert len(writer.asked) == 3, "one call, and nothing is asked without predicates"
    assert writer.asked[0].endswith(format_predicates(extract(tree("active"))).strip())
    assert [Path(name).name for name in hash_prompts(stage)] == ["predpatt_together.jinja"]
    assert hash_prompts(PredPatt(Parses())) == {}


class Verbaliser(Model):
    """Plays a language model that sees one structure at a time: ``said`` maps it to an answer."""

    def answer(self, prompts, *, n=1, temperature, top_p, max_new_tokens, seed):
        self.asked.append([messages[-1]["content"] for messages in prompts])
        self.options = (temperature, top_p, max_new_tokens)
        lines = [text.rsplit("Input: ", 1)[1].partition("\n")[0] for text in self.asked[-1]]
        results = [
            next((a for k, a in self.said.items() if k in line), f"{line}.") for line in lines
        ]
        return [[Answer("", "cut") if text is None else Answer(text)] for text in results]


def test_inline_structure_contains_its_arguments():
    results = [format_inline(reply_to) for reply_to in extract(tree("active"))]
    assert results == ["Nora sold the dark red boat to Ivo", "the boat is/are dark red"]
    results = [format_inline(reply_to) for reply_to in extract(tree("poss"))]
    assert results == ["His poss sister", "His sister likes Ivo 's boats", "Ivo poss boats"]


def test_one_by_one_prompts_have_a_structure_and_no_sentence():
    canned = {"said": None, "is/are": "The boat is/are red."}
    writer = Verbaliser(**canned, sings="Ivo is singing.\n\nInput: more of the kind")
    stage = PredPatt(Parses(), writer=writer, verbalise="one_by_one")
    texts = ["Nora sold the dark red boat to Ivo.", "Oslo.", "Bad.", "Ivo sings, Nora said."]
    places = [Place(DOCUMENT, texts, index) for index in range(4)]
    sold, none, bad, sings = stage.subclaims(places)
    # What the model makes of a structure is its claim, however little it coheres.
    assert sold == ["Nora sold the dark red boat to Ivo.", "The boat is/are red."]
    assert (none, bad.reason[:2], sings) == ([], "no", ["Ivo is singing.", Failed("cut")])
    (call,) = writer.asked
    structures = [
        format_inline(reply_to) for name in ("active", "ccomp") for reply_to in extract(tree(name))
    ]
    assert [text.rsplit("Input: ", 1)[1] for text in call] == [
        f"{line}\n\nOutput:" for line in structures
    ]
    for text in call:
        assert text.startswith("Please turn my input utterances into a grammatically correct")
        assert "Sentence:" not in text
        assert text.count("Input: ") == 4
    assert writer.options == (0.7, 1.0, 512)
    assert [Path(name).name for name in hash_prompts(stage)] == ["predpatt_one_by_one.jinja"]
    # A structure without an answer is a failed claim beside the others of its sentence.
    (claims,) = stage([DOCUMENT])
    assert [(c.text, c.sentence, c.failed) for c in claims][-2:] == [
        ("Ivo is singing.", 2, None),
        ("Ivo sings, Nora said.", 2, "cut"),
    ]
    assert PredPatt(Parses(), writer=writer).asker.temperature == 0.0
    warm = PredPatt(Parses(), writer=writer, verbalise="one_by_one", temperature=0.2)
    assert warm.asker.temperature == 0.2
