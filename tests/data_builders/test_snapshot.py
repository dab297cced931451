"""What the embedded snapshot promises, checked on its Turtle and on the people read from it."""

from __future__ import annotations

from collections import Counter

import pytest
from rdflib import Graph, Namespace

from data_builders.kb.facts import DATES, PROPERTIES, load_people
from data_builders.kb.graph import Value, labels_of, parse_date, single_values, texts_of
from data_builders.kb.server import SNAPSHOT, open_client

WD = Namespace("http://www.wikidata.org/entity/")
WDT = Namespace("http://www.wikidata.org/prop/direct/")


def wikidata_file(folder, *lines):
    """Write Turtle with Wikidata's prefixes, and return its path."""
    wiki = "http://www.wikidata.org"
    path = folder / "people.ttl"
    prefixes = [
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .",
        "@prefix b: <http://wikiba.se/ontology#> .",
        f"@prefix wd: <{wiki}/entity/> . @prefix wdt: <{wiki}/prop/direct/> .",
        f"@prefix p: <{wiki}/prop/> . @prefix psv: <{wiki}/prop/statement/value/> .",
    ]
    path.write_text("\n".join([*prefixes, *lines]))
    return path


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph().parse(SNAPSHOT, format="turtle")


@pytest.fixture(scope="module")
def loaded():
    dropped = Counter()
    with open_client() as client:
        return load_people(client, dropped=dropped), dropped


@pytest.fixture(scope="module")
def people(loaded):
    return loaded[0]


def test_snapshot_has_enough_people_and_shared_names(people):
    assert len(people) >= 290
    names = Counter(person.name for person in people)
    assert sum(n for n in names.values() if n > 1) >= 60
    assert len({person.title for person in people}) == len(people)


def test_snapshot_has_all_sixteen_sampling_cells(people):
    cells = Counter((p.group, p.frequency_bin) for p in people)
    assert set(cells) == {(group, b) for group in "ABCD" for b in range(4)}


def test_all_people_and_facts_are_read(loaded, graph):
    people, dropped = loaded
    assert not +dropped
    humans = set(graph.subjects(WDT.P31, WD.Q5))
    assert {p.iri for p in people} == {str(human) for human in humans}
    for prop in PROPERTIES:
        in_file = sum(len(set(graph.objects(human, WDT[prop]))) for human in humans)
        assert sum(len(p.facts.get(prop, ())) for p in people) == in_file


def test_deaths_follow_births(people):
    for person in people:
        (born,), (died,) = person.facts["P569"], person.facts["P570"]
        assert 10 < died.year - born.year < 112, person.name
        assert born.iri is None
        assert died.iri is None


def test_people_have_the_required_facts(people):
    for person in people:
        assert person.sex in {"male", "female"}
        assert person.facts["P106"]
        assert person.facts["P27"]
        assert person.continent
        assert person.name not in person.aliases
    for prop in set(PROPERTIES) - set(DATES):
        assert sum(prop in p.facts for p in people) >= 5, prop


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1861-05-07", "date", Value("7 May 1861", None, 1861)),
        ("1861", "gYear", Value("1861", None, 1861)),
        ("1861-05-07T00:00:00Z", "dateTime", Value("7 May 1861", None, 1861)),
        # Wikidata counts as XSD 1.1 does; its query service leaves a 0 out.
        ("-0043-03-15T00:00:00Z", "dateTime", Value("15 March 44 BC", None, -43)),
        ("-099-07-12T00:00:00Z", "dateTime", Value("12 July 100 BC", None, -99)),
        ("2000-13-01", "date", None),
        ("http://www.wikidata.org/.well-known/genid/abc", "", None),
    ],
)
def test_dates_of_the_snapshot_and_of_wikidata(text, kind, value):
    datatype = f"http://www.w3.org/2001/XMLSchema#{kind}"
    assert parse_date(text, datatype, calendar=str(WD.Q1985727)) == value


@pytest.mark.parametrize(
    ("statements", "label", "reason"),
    [
        pytest.param(
            [("1711-05-06", 11, "Normal"), ("1713-05-06", 11, "Normal")], None, "year", id="years"
        ),
        pytest.param(
            [("1811-05-06", 11, "Normal"), ("1811-05-09", 11, "Normal")],
            "May 1811",
            "day or month",
            id="days",
        ),
        pytest.param(
            [("1811-05-06", 11, "Normal"), ("1811-07-09", 11, "Normal")],
            "1811",
            "day or month",
            id="months",
        ),
        pytest.param(
            [("1811-01-01", 9, "Normal"), ("1811-07-09", 11, "Normal")],
            "9 July 1811",
            None,
            id="a year and its day",
        ),
        pytest.param(
            [("1811-01-01", 11, "Normal"), ("1811-01-01", 9, "Deprecated")],
            "1 January 1811",
            None,
            id="a deprecated statement of the same value",
        ),
    ],
)
def test_a_person_is_born_once(tmp_path, statements, label, reason):
    lines = ['wd:Q1 rdfs:label "Ada"@en ; wdt:P31 wd:Q5 .']
    for number, (day, precision, rank) in enumerate(statements):
        value = f'"{day}T00:00:00Z"^^xsd:dateTime'
        if rank != "Deprecated":
            lines.append(f"wd:Q1 wdt:P569 {value} .")
        lines.append(f"wd:Q1 p:P569 wd:c{number} . wd:c{number} b:rank b:{rank}Rank .")
        lines.append(f"wd:c{number} psv:P569 wd:d{number} . wd:d{number} b:timeValue {value} ;")
        lines.append(f"b:timePrecision {precision} ; b:timeCalendarModel wd:Q1985727 .")
    dropped = Counter()
    with open_client(snapshot=wikidata_file(tmp_path, *lines)) as client:
        (person,) = load_people(client, dropped=dropped)
    assert [value.label for value in person.facts.get("P569", ())] == [label] * bool(label)
    reasons = [name for name, n in dropped.items() if n and "statements differ" in name]
    assert reasons == [f"date of birth whose statements differ in the {reason}"] * bool(reason)


@pytest.mark.parametrize(
    ("precision", "label"),
    [(8, None), (9, "1990"), (10, "January 1990"), (11, "1 January 1990"), ("", "1990")],
)
def test_dates_are_labelled_by_their_precision(tmp_path, precision, label):
    lines = [
        'wd:Q1 p:P569 wd:c ; wdt:P569 "1990-01-01T00:00:00Z"^^xsd:dateTime . wd:c psv:P569 wd:d .'
    ]
    if precision:
        lines.append('wd:d b:timeValue "1990-01-01T00:00:00Z"^^xsd:dateTime .')
        lines.append(f"wd:d b:timePrecision {precision} .")
    dropped = Counter()
    with open_client(snapshot=wikidata_file(tmp_path, *lines)) as client:
        values = single_values(client, [str(WD.Q1)], "P569", True, dropped)
    assert [value.label for value in values.values()] == [label] * (label is not None)
    counted = "value of P569 known only to the decade, century or less"
    assert dropped[counted] == (label is None)


@pytest.mark.parametrize(
    ("text", "precision", "model", "label", "year"),
    [
        ("1643-01-04", 11, "Q1985786", "25 December 1642", 1642),
        ("1500-03-10", 11, "Q1985786", "29 February 1500", 1500),
        ("-0043-03-13", 11, "Q1985786", "15 March 44 BC", -43),
        ("1918-02-13", 11, "Q1985786", "31 January 1918", 1918),
        # Wikidata converts days only.
        ("1450-01-01", 10, "Q1985786", "January 1450", 1450),
        ("1450-01-01", 9, "Q1985786", "1450", 1450),
        ("1643-01-04", 11, "Q1985727", "4 January 1643", 1643),
    ],
)
def test_dates_are_in_the_calendar_of_their_statement(text, precision, model, label, year):
    value = parse_date(f"{text}T00:00:00Z", "xsd:dateTime", precision, str(WD[model]))
    assert (value.label, value.year) == (label, year)


@pytest.mark.parametrize(
    ("date", "models", "label"),
    [
        ("1643-03-04", ["wd:Q1985786"], "22 February 1643"),
        ("1643-03-04", [], "1643"),
        ("1643-01-04", [], None),  # 1642 in the Julian calendar
        ("1890-03-04", [], "4 March 1890"),
        ("1890-03-04", ["wd:Q12138"], "1890"),
        ("1890-03-04", ["wd:Q1985727", "wd:Q1985786"], "1890"),
    ],
)
def test_day_of_an_unknown_calendar_is_left_out_and_counted(tmp_path, date, models, label):
    literal = f'"{date}T00:00:00Z"^^xsd:dateTime'
    lines = [f"wd:Q1 wdt:P569 {literal} ."]
    for index, model in enumerate(models):
        lines.append(f"wd:Q1 p:P569 wd:c{index} . wd:c{index} psv:P569 wd:d{index} .")
        lines.append(f"wd:d{index} b:timeValue {literal} ; b:timePrecision 11 .")
        lines.append(f"wd:d{index} b:timeCalendarModel {model} .")
    dropped = Counter()
    with open_client(snapshot=wikidata_file(tmp_path, *lines)) as client:
        values = single_values(client, [str(WD.Q1)], "P569", True, dropped)
    assert [value.label for value in values.values()] == [label] * (label is not None)
    assert dropped["day of a date in an unknown calendar"] == (label in (None, "1643", "1890"))


def test_names_in_mul_and_regional_english_count_as_english(tmp_path):
    path = wikidata_file(
        tmp_path,
        'wd:Q1 rdfs:label "Ada Brit"@en-GB, "Ada All"@mul, "Ada"@en, "Ida"@de .',
        'wd:Q2 rdfs:label "Bo Canada"@en-ca, "Bo Brit"@en-gb .',
        'wd:Q3 rdfs:label "Cy Canada"@en-ca .',
        'wd:Q4 rdfs:label "Dora"@de .',
    )
    iris = [str(WD[f"Q{number}"]) for number in range(1, 5)]
    with open_client(snapshot=path) as client:
        labels = labels_of(client, iris, "names")
        texts = texts_of(client, iris, "?person rdfs:label ?text .", "names")
    assert list(labels.values()) == ["Ada", "Bo Brit", "Cy Canada"]
    assert texts[iris[0]] == {"Ada", "Ada All", "Ada Brit"}


def test_invalid_frequency_is_counted(tmp_path):
    (tmp_path / "people.ttl").write_text(
        """@prefix wd: <http://www.wikidata.org/entity/> .
        @prefix wdt: <http://www.wikidata.org/prop/direct/> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        @prefix ff: <https://factfoundry.example/entity/> .
        wd:Q1 wdt:P31 wd:Q5 ; rdfs:label "Ada"@en ; ff:frequency 7, _:unknown .
        wd:Q2 wdt:P31 wd:Q5 ; rdfs:label "Bo"@en ; ff:frequency "many" ."""
    )
    dropped: Counter[str] = Counter()
    with open_client(snapshot=tmp_path / "people.ttl") as client:
        people = load_people(client, dropped=dropped)
    assert [(person.name, person.frequency) for person in people] == [("Ada", 7), ("Bo", 0)]
    assert dropped["frequency that is not a number"] == 2
