"""``bleached``: what nearly every member of a domain has in common, counted or written."""

import json

import pytest
from huggingface_hub import DatasetCard

from data_builders.kb.bleached import Bleached
from data_builders.kb.server import local_endpoint
from eval.models.chat import Answer
from eval.select.weights import Bleached as Bleach
from eval.select.weights import load_bleached, load_by_topic
from records import Document

FILMS = """\
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix wikibase: <http://wikiba.se/ontology#> .
wd:Q11424 rdfs:label "film"@en ; wdt:P279 wd:Q838948 .
wd:Q838948 rdfs:label "artwork"@en .
wd:Q35 rdfs:label "Denmark"@en .
wd:P495 rdfs:label "country of origin"@en .
wd:P57 rdfs:label "director"@en .
wd:P345 rdfs:label "IMDb ID"@en .
wd:P345 wikibase:directClaim wdt:P345 ; wikibase:propertyType wikibase:ExternalId .
wd:P57 wikibase:directClaim wdt:P57 ; wikibase:propertyType wikibase:WikibaseItem .
"""
POPULATION = "?item wdt:P31 wd:Q11424 ."


def films():
    lines = [FILMS]
    for index in range(10):
        lines.append(
            f'wd:Q{index} wdt:P31 wd:Q11424 ; wdt:P345 "tt{index}" ; '
            f'wdt:P495 wd:Q35 ; wdt:P999 "x" .'
        )
        if index < 9:
            lines.append(f"wd:Q{index} wdt:P57 wd:Q90{index} .")
        if index < 8:
            lines.append(f'wd:Q{index} wdt:P577 "1950-01-01T00:00:00Z" .')
    return "\n".join(lines)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("ttl") / "films.ttl"
    path.write_text(films(), encoding="utf-8")
    with local_endpoint(path) as url:
        yield url


class Script:
    """A writer whose answers are known."""

    def __init__(self, *texts):
        self.identity = {"model": "script"}
        self.texts = [text if isinstance(text, Answer) else Answer(text) for text in texts]
        self.asked = []

    def answer(self, prompts, *, n=1, temperature=1.0, top_p=0.95, max_new_tokens=256, seed=0):
        self.asked.append((prompts, n, seed))
        return [[self.texts[i % len(self.texts)] for i in range(n)] for _ in prompts]


def built(folder, **options):
    manifest = json.loads(Bleached(folder, **options).build().read_text())
    rows = [json.loads(line) for line in (folder / "bleached.jsonl").read_text().splitlines()]
    return rows, manifest


def test_facts_of_most_members_become_statements_with_their_shares(tmp_path, endpoint):
    rows, manifest = built(
        tmp_path / "out", domain="a film", endpoint=endpoint, population=POPULATION
    )
    assert [(r["text"], r["source"], r["share"], r["count"], r["fact"]) for r in rows] == [
        ("{topic} is a film.", "kb/class", 1.0, 10, "P31=Q11424"),
        ("{topic} is an artwork.", "kb/class", 1.0, 10, "P31=Q838948"),
        ("{topic} has a country of origin.", "kb/property", 1.0, 10, "P495"),
        ("{topic} has a director.", "kb/property", 0.9, 9, "P57"),
        ("The country of origin of {topic} is Denmark.", "kb/value", 1.0, 10, "P495=Q35"),
    ]
    assert {r["of"] for r in rows} == {10}
    assert manifest["dropped"] == {
        "fact without an English label (rdfs:label)": 2,
        "property that links out of the knowledge base": 1,
    }


ANSWER = """\
Here are the statements:
- {topic} can be watched.
2. {topic} was made by somebody.
* {topic} can be Watched.
- A film has pictures.
- {topic} was made after 1890.
- {topic} was shown in Paris.
- {topic} is a work by {name}.
- {topic} has a
- {topic} can be watched.
"""


def test_a_models_statements_are_read_and_its_other_lines_counted(tmp_path):
    writer = Script(ANSWER, "- {topic} can be watched.", Answer("", "nothing was written"))
    rows, manifest = built(
        tmp_path / "out", domain="a film", endpoint=None, writer=writer, samples=3, seed=7
    )
    assert [(r["text"], r["source"], r["count"], r["of"]) for r in rows] == [
        ("{topic} can be watched.", "model", 2, 3),
        ("{topic} was made by somebody.", "model", 1, 3),
    ]
    assert manifest["dropped"] == {
        "model: line outside the list": 1,
        "model: no answer (nothing was written)": 1,
        "model: statement that is not a sentence": 1,
        "model: statement twice in an answer": 1,
        "model: statement with a name": 2,
        "model: statement with a number": 1,
        "model: statement with another placeholder": 1,
        "model: statement without {topic}": 1,
    }
    assert manifest["config"]["writer"]["model"] == "script"
    ((prompts, number, seed),) = writer.asked
    assert (number, seed) == (3, 7)
    (message,) = prompts[0]
    assert message["role"] == "user"
    assert "Kind: a film" in message["content"]
    assert "Write {topic}, with the curly brackets" in message["content"]


def test_what_a_model_wrote_is_not_given_away_under_the_knowledge_bases_licence(tmp_path):
    (tmp_path / "topics.txt").write_text("Why is the sky blue?\n")
    model = {"endpoint": None, "writer": Script("- {topic} is."), "samples": 1}
    of_topics = {**model, "writer": Script("- It is."), "topics": [str(tmp_path / "topics.txt")]}
    fields = {}
    for name, options in {"facts": {}, "model": model, "topics": of_topics}.items():
        built(tmp_path / name, **options)
        fields[name] = DatasetCard.load(tmp_path / name / "README.md").data.license
    assert fields == {"facts": "cc0-1.0", "model": "other", "topics": "other"}


def test_a_model_and_a_knowledge_base_are_merged(tmp_path, endpoint):
    writer = Script("- {topic} is a film.\n- {topic} can be watched.")
    rows, manifest = built(
        tmp_path / "out", endpoint=endpoint, population=POPULATION, writer=writer, samples=1
    )
    by_text = {r["text"]: r["source"] for r in rows}
    assert by_text["{topic} is a film."] == "kb/class"
    assert by_text["{topic} can be watched."] == "model"
    assert manifest["dropped"]["duplicate statement"] == 1


def test_core_is_given_as_many_as_are_asked_for(tmp_path):
    text = "\n".join(f"- {{topic}} is {'very ' * number}old." for number in range(20))
    options = {"domain": "a film", "endpoint": None, "writer": Script(text), "samples": 1}
    rows, _ = built(tmp_path / "all", most=20, **options)
    assert len(load_bleached(tmp_path / "all" / "bleached.txt")) == len(rows) == 20
    built(tmp_path / "usual", **options)
    assert len(load_bleached(tmp_path / "usual" / "bleached.txt")) == 12


QUESTIONS = ["Who painted the Skrik in 1893?", "How do bees fly?"]


class ByTopic:
    """A writer whose answer to each topic is known."""

    def __init__(self, answers):
        self.identity = {"model": "by topic"}
        self.answers = answers
        self.asked = []

    def answer(self, prompts, *, n=1, **sampling):
        self.asked += prompts
        ends = [messages[-1]["content"].split("Topic: ")[-1] for messages in prompts]
        return [[Answer(self.answers[end.split("\n")[0]])] * n for end in ends]


def test_questions_get_claims_of_their_own(tmp_path):
    (tmp_path / "questions.txt").write_text("\n".join(QUESTIONS))
    answers = {
        QUESTIONS[0]: "- The Skrik was painted.\n- Somebody painted in 1893.\n"
        "- The Skrik is in Oslo.\n- It was sold in 2012.\n- the Skrik was painted.",
        QUESTIONS[1]: "Bees do fly.\n- Bees can fly.",
    }

    writer = ByTopic(answers)
    rows, manifest = built(
        tmp_path / "out",
        endpoint=None,
        topics=[str(tmp_path / "questions.txt")],
        writer=writer,
        samples=2,
    )
    assert [(r["topic"], r["text"], r["count"], r["of"]) for r in rows] == [
        (QUESTIONS[0], "Somebody painted in 1893.", 2, 2),
        (QUESTIONS[0], "The Skrik was painted.", 2, 2),
        (QUESTIONS[1], "Bees can fly.", 2, 2),
    ]
    assert manifest["dropped"] == {
        "model: line outside the list": 2,
        "model: statement twice in an answer": 2,
        "model: statement with a name": 2,
        "model: statement with a number": 2,
    }
    assert len(writer.asked) == 2
    bleached = Bleach(str(tmp_path / "out" / "bleached.json"))
    document = Document(id="d", topic=QUESTIONS[1], text="They flap.")
    assert bleached.claims_for(document) == ["Bees can fly."]
    assert load_by_topic(tmp_path / "out" / "bleached.json").keys() == set(QUESTIONS)
