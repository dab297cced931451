"""Core's cells: one definition, asked by both builders about places as Wikidata names them."""

from __future__ import annotations

import json

import pytest

from data_builders.kb.bios.bios import Bios
from data_builders.kb.facts import bin_of

# Wikidata's own items and English labels, by Table 1's groups; Antarctica is in none of its rows.
PLACES = {
    "Q48": ("Asia", "A"),
    "Q3960": ("Australian continent", "A"),
    "Q60140": ("Indian subcontinent", "A"),
    "Q538": ("Insular Oceania", "A"),
    "Q55643": ("Oceania", "A"),
    "Q49": ("North America", "B"),
    "Q5401": ("Eurasia", "C"),
    "Q46": ("Europe", "C"),
    "Q15": ("Africa", "D"),
    "Q27527": ("Afro-Eurasia", "D"),
    "Q828": ("Americas", "D"),
    "Q664609": ("Caribbean", "D"),
    "Q27611": ("Central America", "D"),
    "Q18": ("South America", "D"),
    "Q51": ("Antarctica", "D"),
}
# Continents of a person's countries, and the group: a row's own reason stands beside it.
PEOPLE = {
    **{f"One{id}": ([[id]], group) for id, (_, group) in PLACES.items()},
    "Nowhere": ([], "D"),
    "Australian": ([["Q3960", "Q538"]], "A"),  # both names of one place are of one group
    "Russian": ([["Q46", "Q48"]], "A"),  # one vote each: the first group
    "French": ([["Q46", "Q48"], ["Q46"]], "C"),  # two votes of three
    "Emigrant": ([["Q18"], ["Q49"]], "B"),
    "Briton": ([["Q5401"], ["Q49"], ["Q46"]], "C"),  # Eurasia and Europe vote together
    "Exile": ([["Q15"], ["Q828"], ["Q48"]], "D"),  # Africa and the Americas vote together
}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    lines = [f'wd:{id} rdfs:label "{label}"@en .' for id, (label, _) in PLACES.items()]
    for name, (countries, _) in PEOPLE.items():
        lines.append(
            f'wd:{name} wdt:P31 wd:Q5 ; rdfs:label "{name}"@en ; ff:frequency 1 . '
            f"<https://en.wikipedia.org/wiki/{name}> schema:about wd:{name} ; "
            f'schema:isPartOf <https://en.wikipedia.org/> ; schema:name "{name}"@en .'
        )
        for number, continents in enumerate(countries):
            lines.append(f'wd:{name}{number} rdfs:label "Land of {name} {number}"@en .')
            lines.append(f"wd:{name} wdt:P27 wd:{name}{number} .")
            lines += [f"wd:{name}{number} wdt:P30 wd:{id} ." for id in continents]
    head = """
        @prefix ff: <https://factfoundry.example/entity/> .
        @prefix wd: <http://www.wikidata.org/entity/> .
        @prefix wdt: <http://www.wikidata.org/prop/direct/> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        @prefix schema: <http://schema.org/> .
    """
    path = tmp_path_factory.mktemp("continents") / "wikidata.ttl"
    path.write_text(head + "\n".join(lines), encoding="utf-8")
    return path


def test_topics_have_the_group_that_people_have(endpoint, tmp_path):
    builder = Bios(tmp_path, endpoint=str(endpoint), topics=1000)
    manifest = json.loads(builder.build().read_text("utf-8"))
    assert set(manifest["files"]) == set(builder.writes())
    rows = [
        json.loads(line)
        for split in ("train", "dev", "test")
        for line in (tmp_path / f"topics_{split}.jsonl").read_text("utf-8").splitlines()
    ]
    assert {r["topic"]: r["group"] for r in rows} == {
        name: entry for name, (_, entry) in PEOPLE.items()
    }
    assert {r["cell"] for r in rows} == {"A0", "B0", "C0", "D0"}


@pytest.mark.parametrize(
    ("frequency", "index"),
    [
        (0, 0),
        (100, 1),
        (1000, 2),
        (4999, 2),
        (5000, 3),
    ],
)
def test_a_bin_begins_at_its_least_frequency(frequency, index):
    assert bin_of(frequency) == index
