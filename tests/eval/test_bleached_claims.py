"""Bleached claims: of one domain, of several, and of single topics such as questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from jsonargparse import ArgumentParser

from components.encoding import Pair
from eval.select.core import Core
from eval.select.weights import BLEACHED, Bleached, load_bleached
from records import Document, UserError


def document(topic="Ada", **fields):
    return Document(id="d", topic=topic, text="Ada wrote.", **fields)


class Keeps:
    """A UNLI and entailment model that YAML can build; it keeps the pairs that it gets."""

    def __init__(self):
        self.pairs = []

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        self.pairs += pairs
        return np.full(len(pairs), 0.1)

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        self.pairs += pairs
        return np.tile([0.0, 1.0, 0.0], (len(pairs), 1))


@pytest.mark.parametrize(
    "name", ["biographies", "culture", "films", "medicine", "places", "questions"]
)
def test_included_sets_contain_the_topic(name):
    claims = load_bleached(BLEACHED / f"{name}.txt")
    filled = Bleached(str(BLEACHED / f"{name}.txt")).claims_for(document("Xy"))
    assert filled == [claim.replace("{topic}", "Xy") for claim in claims]
    assert all("Xy" in claim for claim in filled)


def test_domain_selects_the_bleached_set():
    bleached = Bleached({name: str(BLEACHED / f"{name}.txt") for name in ("films", "biographies")})
    film, person = (
        bleached.claims_for(document(domain=domain)) for domain in ("films", "biographies")
    )
    assert film == Bleached(str(BLEACHED / "films.txt")).claims_for(document())
    assert not set(film) & set(person)
    for fields, domain_name in (({}, "None"), ({"domain": "music"}, "'music'")):
        message = f"document 'd': domain: .* got {domain_name}"
        with pytest.raises(UserError, match=message):
            bleached.claims_for(document(**fields))


@pytest.mark.parametrize(
    ("bleached", "first"),
    [
        (["{topic} is."], "Ada is."),
        (str(BLEACHED / "films.txt"), "Ada is a film."),
        ({"films": str(BLEACHED / "films.txt")}, "Ada is a film."),
    ],
    ids=["list", "file", "file of a domain"],
)
def test_yaml_takes_each_form(bleached, first):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Core, "core")
    model = {"class_path": f"{Keeps.__module__}.Keeps"}
    models = {"entailment": model, "unli": model}
    core = parser.instantiate(parser.parse_object({"core": models | {"bleached": bleached}})).core
    assert core.bleached.claims_for(document(domain="films"))[0] == first
