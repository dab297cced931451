"""Bleached claims: of one domain, of several, and of single topics such as questions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from jsonargparse import ArgumentParser

from eval.select.core import Core
from eval.select.weights import BLEACHED, Bleached, load_bleached
from records import Claim, Document, UserError
from tests.eval.test_core import AllNeutral, AlwaysLikely

QUESTION = "Which treatments are there for a sprained ankle?"


def document(topic="Ada", **fields):
    return Document(id="d", topic=topic, text="Ada wrote.", **fields)


class Keeps:
    """A UNLI and entailment model that keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def likelihood(self, pairs):
        self.asked += pairs
        return np.full(len(pairs), 0.1)

    def relations(self, pairs):
        self.asked += pairs
        return np.tile([0.0, 1.0, 0.0], (len(pairs), 1))


def test_there_may_be_any_number_of_them():
    many = [f"{{topic}} is no. {number}." for number in range(40)]
    assert load_bleached(many) == many
    model = Keeps()
    Core(model, model, many, p=0)(
        [document()], [[Claim(id="c", text="Ada sang.", source="Ada sang.")]]
    )
    premises = [premise for premise, claim in model.asked if claim == "Ada sang."]
    assert {p for p in premises if "no." in p} == {f"Ada is no. {n}." for n in range(40)}


@pytest.mark.parametrize(
    "name", ["biographies", "culture", "films", "medicine", "places", "questions"]
)
def test_the_ready_sets_name_their_topic(name):
    claims = load_bleached(BLEACHED / f"{name}.txt")
    said = Bleached(str(BLEACHED / f"{name}.txt")).claims_for(document("Xy"))
    assert said == [claim.replace("{topic}", "Xy") for claim in claims]
    assert all("Xy" in claim for claim in said)


def test_the_domain_of_a_document_chooses_its_set():
    bleached = Bleached({name: str(BLEACHED / f"{name}.txt") for name in ("films", "biographies")})
    film, person = (
        bleached.claims_for(document(domain=domain)) for domain in ("films", "biographies")
    )
    assert film == Bleached(str(BLEACHED / "films.txt")).claims_for(document())
    assert not set(film) & set(person)
    for fields, said in (({}, "None"), ({"domain": "music"}, "'music'")):
        message = f"document 'd': domain: .* got {said}"
        with pytest.raises(UserError, match=message):
            bleached.claims_for(document(**fields))


def test_topics_may_have_claims_of_their_own(tmp_path):
    path = tmp_path / "bleached.json"
    own = {QUESTION: ["An ankle can be treated.", "{topic} is a question."], "Ada": ["Ada is."]}
    path.write_text(json.dumps(own))
    bleached = Bleached(str(path))
    assert bleached.claims_for(document(QUESTION)) == [
        "An ankle can be treated.",
        f"{QUESTION} is a question.",
    ]
    assert bleached.claims_for(document()) == ["Ada is."]
    with pytest.raises(UserError, match=r"document 'd': .*'Bob'"):
        bleached.claims_for(document("Bob"))


@pytest.mark.parametrize(
    ("given", "first"),
    [
        (["{topic} is."], "Ada is."),
        (str(BLEACHED / "films.txt"), "Ada is a film."),
        ({"films": str(BLEACHED / "films.txt")}, "Ada is a film."),
    ],
    ids=["list", "file", "file of a domain"],
)
def test_yaml_takes_each_form(given, first):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Core, "core")
    models = {
        "entailment": {"class_path": f"{AllNeutral.__module__}.AllNeutral"},
        "unli": {"class_path": f"{AlwaysLikely.__module__}.AlwaysLikely"},
    }
    core = parser.instantiate(parser.parse_object({"core": models | {"bleached": given}})).core
    assert core.bleached.claims_for(document(domain="films"))[0] == first
