"""Topics from a corpus map and PopQA over two real SPARQL servers, calm and disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter

import numpy as np
import pytest
import yaml

from data_builders.kb.server import local_endpoint, open_client
from data_builders.splits import SPLITS
from records import write_jsonl
from tests.integration.faults import SPARQL, FaultProxy, random_mix
from tests.integration.kill import CLOCK, ROOT, builder_command, run, same_bytes
from tests.integration.spoil import Fault
from tests.kb_people import load_people

pytestmark = pytest.mark.integration

DBR = "http://dbpedia.org/resource/"
KILLS = int(os.environ.get("FACTFOUNDRY_KILLS", "3"))
SAME_AS = "{ ?uri owl:sameAs ?item } UNION { ?uri dbo:wikiPageRedirects/owl:sameAs ?item }"
POPULAR, UNKNOWN = 30, 7


@pytest.fixture(scope="module")
def people():
    with open_client() as client:
        return load_people(client)


@pytest.fixture(scope="module")
def sources(people, tmp_path_factory):
    """The snapshot's people as DBpedia, a corpus map, PopQA and a knowledge source have them."""
    folder = tmp_path_factory.mktemp("sources")
    graph, documents = [], {}
    for number, person in enumerate(people):
        uri = DBR + person.title.replace(" ", "_").replace('"', "%22")
        graph.append(f"<{uri}> <http://www.w3.org/2002/07/owl#sameAs> <{person.iri}> .")
        documents[uri] = np.arange(person.frequency, dtype=np.int32)
        if number % 5 == 0:  # a page that was moved since
            old = f"{DBR}Formerly_{number}"
            graph.append(f"<{old}> <http://dbpedia.org/ontology/wikiPageRedirects> <{uri}> .")
            documents[old] = np.arange(3, dtype=np.int32)
            if number % 10 == 0:
                del documents[uri]
    for number in range(UNKNOWN):
        documents[f"{DBR}Nobody_{number}"] = np.arange(number * 200)
    (folder / "dbpedia.ttl").write_text("\n".join(graph), encoding="utf-8")
    np.savez_compressed(folder / "map.npz", **documents)
    popular = [p.iri for p in people][:POPULAR]
    rows = [{"s_uri": p, "s_pop": 6000, "o_uri": p, "o_pop": 1} for p in popular]
    write_jsonl(folder / "popqa.jsonl", rows)
    base = sqlite3.connect(folder / "knowledge.sqlite")
    base.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
    base.executemany("INSERT INTO documents VALUES (?, 'text')", [(p.title,) for p in people])
    base.commit()
    base.close()
    config = {
        "corpus_maps": [str(folder / "map.npz")],
        "popqa": str(folder / "popqa.jsonl"),
        "knowledge": str(folder / "knowledge.sqlite"),
        "domain": {"same_as": SAME_AS},
        "topics": 96,
    }
    (folder / "bios.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def rows_of(folder):
    return [
        json.loads(line)
        for split in SPLITS
        for line in (folder / f"topics_{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def test_people_by_corpus_and_popularity(people, sources, tmp_path):
    config = yaml.safe_load((sources / "bios.yaml").read_text())
    config |= {
        "dbpedia": str(sources / "dbpedia.ttl"),
        "topics": 1000,
        "output": str(tmp_path / "o"),
    }
    (tmp_path / "bios.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert not run(builder_command("bios", "--config", tmp_path / "bios.yaml"))
    rows = {row["entity"]: row for row in rows_of(tmp_path / "o")}
    assert set(rows) == {p.iri for p in people}
    for number, person in enumerate(people):
        row = rows[person.iri]
        # A redirect has three documents, and the page's own count is not in every map.
        corpus = 3 if number % 10 == 0 else person.frequency
        popular = 6000 if number < POPULAR else 0
        assert row["corpus_frequency"] == corpus
        assert row["frequency"] == max(corpus, popular)
        assert row["frequency_source"] == ("popqa" if popular > corpus else "corpus")
        assert (row["topic"], row["group"]) == (person.title, person.group)
    dropped = json.loads((tmp_path / "o" / "manifest.json").read_text())["dropped"]
    assert dropped["DBpedia resource without an item"] == UNKNOWN


def kill_at(number, command, proxies):
    """Start a command and kill -9 it as soon as so many requests have come to the proxies."""
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **quiet)
    while sum(len(proxy.seen) for proxy in proxies) < number:
        assert process.poll() is None, "it ended before it had asked so much"
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_faults_and_kills_leave_the_same_bytes(sources, tmp_path):
    def command(name):
        return builder_command(
            *("bios", "--config", sources / "bios.yaml", "--output", tmp_path / name),
            *("--endpoint", wikidata.url, "--dbpedia", dbpedia.url),
        )

    with (
        local_endpoint() as url,
        local_endpoint(sources / "dbpedia.ttl") as other,
        FaultProxy(url) as wikidata,
        FaultProxy(other) as dbpedia,
    ):
        assert not run(command("calm"))
        calm = len(wikidata.seen) + len(dbpedia.seen)
        for proxy in (wikidata, dbpedia):
            proxy.forget()
        wikidata.faults = random_mix(SPARQL, p=0.3, seed=5)
        # What DBpedia leaves out without a word is found by counting.
        dbpedia.faults = random_mix((*SPARQL, Fault("silent_cut")), p=0.3, seed=6)
        for number in sorted(random.Random(5).sample(range(1, calm), KILLS)):
            kill_at(number, command("rough"), (wikidata, dbpedia))
        run(command("rough"))
        assert same_bytes(tmp_path / "calm", tmp_path / "rough") == []
        seen = [*wikidata.seen, *dbpedia.seen]
        assert len({request.fault for request in seen}) >= 5, "a mix, not one kind"
        # Where the counting fails, the rows are asked for again with it.
        counted = sum(1 for request in dbpedia.seen if not request.answered)
        # An answer that came just before a kill is all that is asked for again; to DBpedia each
        # question is two requests, and both are.
        assert len(wikidata.repeated()) + len(dbpedia.repeated()) <= 2 * KILLS + counted
        assert wikidata.most_at_once == dbpedia.most_at_once == 1
        assert wikidata.too_soon(clock=CLOCK) == dbpedia.too_soon(clock=CLOCK) == []
    rows = rows_of(tmp_path / "rough")
    assert len({row["entity"] for row in rows}) == len(rows) == 96
    assert set(Counter(row["cell"] for row in rows).values()) <= {4, 5, 6, 7, 8}
