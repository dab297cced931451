"""ambigbio end to end: a real wiki, its page views, and a server that writes the biographies."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from data_builders.written.ambigbio.ambigbio import AmbigBio
from eval.models.openai_server import OpenAIServer
from records import Document, Generation, Passage, read_records
from tests.integration.faults import MEDIAWIKI, FaultProxy, random_mix
from tests.integration.kill import CLOCK, ROOT, builder_command, run, same_bytes
from tests.integration.wiki import Wiki

pytestmark = pytest.mark.integration

MONTHS = ("2023-01", "2023-12")
NAMES = 6  # of the builds that are disturbed


class Scribe(BaseHTTPRequestHandler):
    """A language model's server: says of each document its first sentence, and where it is from."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        # Behind the demonstrations, which stand in the same message.
        asked_name = body["messages"][-1]["content"].rpartition("\nName of the person: ")[2]
        documents = re.findall(r"Document \[(\d+)\] \(Title: .*\): ([^.]*)\.", asked_name)
        # A passage may begin in the middle of a sentence; what is written does not.
        text = " ".join(f"{s[:1].upper()}{s[1:]} [{number}]." for number, s in documents)
        message = {"role": "assistant", "content": f"{text} So much is known."}
        reply = {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "scribe",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        sent = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def scribe() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scribe)
    server.daemon_threads = True
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def proxy(wiki) -> Iterator[FaultProxy]:
    with FaultProxy(wiki.url) as running:
        yield running


def chat_url(scribe: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{scribe.server_port}/v1"


def builder(wiki_url: str, output: Path, **options: object) -> AmbigBio:
    common = {
        "api": f"{wiki_url}/w/api.php",
        "views_api": f"{wiki_url}/api/rest_v1",
        "views": MONTHS,
        "seed": 5,
    }
    return AmbigBio(output, **common, **options)


@pytest.fixture(scope="module")
def whole(wiki, scribe, tmp_path_factory) -> Path:
    """The dataset of all names, undisturbed."""
    output = tmp_path_factory.mktemp("whole") / "out"
    builder(wiki.url, output, writer=OpenAIServer("scribe", chat_url(scribe))).build()
    return output


def rows(folder: Path, name: str) -> list[dict]:
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def people_linked(wiki: Wiki) -> dict[str, set[str]]:
    """The people that each page of the category links to, by its wikitext."""
    pages = wiki.pages
    found_rows = {}
    for page in pages.names:
        links = re.findall(r"\[\[([^]|#]+)", pages.texts[page])
        found_rows[page] = {pages.redirects.get(link, link) for link in links} & set(pages.people)
    return found_rows


def test_names_are_those_that_at_least_two_people_share(whole, wiki):
    found_rows = {
        row["page"]: {c["title"] for c in row["candidates"]} for row in rows(whole, "names")
    }
    linked = people_linked(wiki)
    assert all(people <= linked[page] for page, people in found_rows.items())
    # Where the name is in no title that leads to the person.
    assert linked["Aleksey Tolstoy"] - found_rows.get("Aleksey Tolstoy", set()) == {
        "Aleksey Konstantinovich Tolstoy",
        "Aleksey Nikolayevich Tolstoy",
    }
    assert linked["Pedro Flores"] - found_rows["Pedro Flores"] == {"Pedro Flores Garcia"}
    # By a comma, by Sir, by Jr.
    assert found_rows["Samuel Hoare"] == set(wiki.pages.names["Samuel Hoare"])
    shared = {page for page in found_rows if found_rows[page] == set(wiki.pages.names[page])}
    assert len(shared) >= len(wiki.pages.names) - 4
    assert not any("(disambiguation)" in row["name"] for row in rows(whole, "names"))
    for row in rows(whole, "names"):
        for candidate in row["candidates"]:
            key = wiki.pages.people[candidate["title"]].iri.rsplit("/", 1)[1]
            assert candidate["wikibase_item"] == key


def test_views_are_those_of_the_months(whole, wiki):
    for row in rows(whole, "names"):
        for candidate in row["candidates"]:
            months = wiki.pages.views.get(candidate["title"], {})
            total = sum(views for month, views in months.items() if month.startswith("2023"))
            assert candidate["views"] == total


def test_every_drop_is_counted(whole, wiki):
    manifest = json.loads((whole / "manifest.json").read_text(encoding="utf-8"))
    names = {k: n for k, n in manifest["dropped"].items() if k.startswith("name")}
    assert names == {"name that fewer than 2 people share": 3}
    assert len(rows(whole, "names")) + sum(names.values()) == len(wiki.pages.names)
    assert manifest["dropped"]["link: title without a page"] > 20
    assert manifest["dropped"]["link to a page that is not a person"] > 20
    found_rows = {
        row["page"]: {c["title"] for c in row["candidates"]} for row in rows(whole, "names")
    }
    n_others = sum(
        len(people - found_rows.get(page, set())) for page, people in people_linked(wiki).items()
    )
    alone = 2  # Abebe Bikila and Alexandre Dumas, on the pages of their names
    assert manifest["dropped"]["link to a person of another name"] == n_others - alone
    families = {entry["family"]: entry["requests"] for entry in manifest["requests"]}
    people = {c["title"] for row in rows(whole, "names") for c in row["candidates"]}
    assert families["texts"] == families["page views"] == len(people)
    assert families["category members"] == families["disambiguation pages"] == 1


def test_passages_are_the_pages_in_pieces(whole, wiki):
    passages = read_records(whole / "passages.jsonl", Passage)
    ids = [passage.id for passage in passages]
    assert len(ids) == len(set(ids))
    people = {c["title"] for row in rows(whole, "names") for c in row["candidates"]}
    assert {passage.title for passage in passages} == people
    assert all(len(passage.text.split()) <= 100 for passage in passages)
    assert not any("==" in passage.text or "{{" in passage.text for passage in passages)
    first = next(p for p in passages if p.title == "Francis Cadell (artist)")
    assert first.url.endswith(f"?oldid={first.model_extra['revision']}")
    assert first.model_extra["date"] == "2024-01-01T00:00:00Z"
    assert first.text.startswith("Francis Cadell (")


def test_passages_of_namesakes_meet(whole):
    found_rows = rows(whole, "retrieval")
    assert len(found_rows) == len(rows(whole, "names"))
    passage_ids = {passage.id for passage in read_records(whole / "passages.jsonl", Passage)}
    assert all(
        set(row["passages"]) <= passage_ids and len(row["passages"]) <= 5 for row in found_rows
    )
    assert all(len(row["titles"]) >= 2 for row in found_rows)


def test_biographies_cite_what_they_were_given(whole, scribe):
    generations = read_records(whole / "generations.jsonl", Generation)
    assert [g.topic for g in generations] == [row["name"] for row in rows(whole, "names")]
    for generation, row in zip(generations, rows(whole, "retrieval"), strict=True):
        passage_list = generation.model_extra["passages"]
        assert [passage["id"] for passage in passage_list] == row["passages"]
        assert "[" not in generation.text
        assert generation.model_extra["uncited_sentences"] >= 1
        for citation in generation.citations:
            (number,) = citation["numbers"]
            passage = passage_list[number - 1]
            assert citation["passage"] == [f"Title: {passage['title']}\n{passage['text']}"]
            assert "[" not in citation["claim"]
    documents = read_records(whole / "generations.jsonl", Document)
    assert all(document.passages for document in documents)
    assert scribe.asked[0]["temperature"] == 1.0
    assert scribe.asked[0]["top_p"] == 0.95


# Faults and kills


def command(proxy: FaultProxy, scribe: ThreadingHTTPServer, output: Path) -> list[str]:
    return builder_command(
        "ambigbio",
        *("--output", output, "--cache_dir", output.parent / "answers", "--limit", NAMES),
        *("--api", f"{proxy.url}/w/api.php", "--views_api", f"{proxy.url}/api/rest_v1"),
        *("--views", json.dumps(MONTHS), "--seed", 5),
        "--writer.class_path",
        "eval.models.openai_server.OpenAIServer",
        *("--writer.model", "scribe", "--writer.base_url", chat_url(scribe)),
    )


@pytest.fixture(scope="module")
def undisturbed(proxy, scribe, tmp_path_factory) -> Path:
    """The dataset of some names from the proxy's address, while it spoils nothing."""
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    proxy.faults = ()
    writer = OpenAIServer("scribe", chat_url(scribe))
    builder(proxy.url, output, writer=writer, limit=NAMES).build()
    return output


def test_faults_change_nothing(undisturbed, proxy, scribe, tmp_path):
    proxy.forget()
    proxy.faults = random_mix(MEDIAWIKI, p=0.4, seed=1)
    run(command(proxy, scribe, tmp_path / "out"))
    assert same_bytes(undisturbed, tmp_path / "out") == []
    spoiled = {request.fault for request in proxy.seen} - {None}
    assert len(spoiled) >= 5
    assert proxy.most_at_once == 1
    assert proxy.repeated() == []
    assert proxy.too_soon(CLOCK) == []
    agents = {request.headers["user-agent"] for request in proxy.seen}
    assert agents == {"factfoundry (local)"}


def killed_after(command: list[str], count: int, delay: float, progress) -> bool:
    """Start, kill -9 some time after so many more requests; whether it was still running."""
    end = progress() + count
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and progress() < end:
        time.sleep(0.002)
    time.sleep(delay)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


def check_kills(times: int, seed: int, undisturbed, proxy, scribe, output: Path) -> None:
    proxy.forget()
    proxy.faults = random_mix(MEDIAWIKI, p=0.3, seed=seed)
    draw = random.Random(f"{seed}:kills")
    # About how many requests, with their repetitions, a whole build takes.
    most = 2 * 80 // (times + 1)
    hits = 0
    for _ in range(times):
        moment = (draw.randint(1, most), draw.uniform(0, 0.1))
        hits += killed_after(
            command(proxy, scribe, output), *moment, lambda: len(proxy.seen) + len(scribe.asked)
        )
    run(command(proxy, scribe, output))
    assert hits >= times // 2
    assert same_bytes(undisturbed, output) == []


def test_kills_change_nothing(undisturbed, proxy, scribe, tmp_path):
    check_kills(4, 2, undisturbed, proxy, scribe, tmp_path / "out")
