"""The real SPARQL server (Oxigraph, an ordinary PyPI package) on loopback over a Turtle file."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import requests

from clients.polite import SECONDS_PER_REQUEST
from clients.sparql import SparqlClient
from data_builders.builder import AskingBuilder, Step, Work, option_errors
from data_builders.kb.graph import POPULATION, check_population
from records import UserError, sha256_file

SNAPSHOT = Path(__file__).parent / "snapshot" / "people.ttl"
READY_S = 20.0
QUERY_TIMEOUT_S = 60
# For a file of a million people.
LOAD_TIMEOUT_S = 1800


@dataclass
class KbBuilder(AskingBuilder):
    """A builder of what a Wikidata-shaped knowledge base holds of a population.

    Args:
        endpoint: ``snapshot`` for the embedded file behind a local server, the path of another
            Turtle file (``.ttl``), or the URL of a SPARQL service.
        population: SPARQL patterns that bind ``?item`` (of builders about people, ``?person``);
            narrow it by occupation, country or year on a big endpoint.
    """

    endpoint: str = "snapshot"
    population: str = POPULATION

    asks = ("endpoint",)
    subject: ClassVar[str] = "item"

    def faults(self) -> Iterator[str]:
        yield from option_errors(check_population, self.population, self.subject)

    def plan(self) -> list[Step]:
        return [Step("the population", self.endpoint, 1, seconds=SECONDS_PER_REQUEST)]


def _oxigraph() -> str:
    beside = shutil.which("oxigraph", path=str(Path(sys.prefix) / "bin"))
    found = beside or shutil.which("oxigraph")
    if found is None:
        raise UserError("oxigraph: no such program; install it with `pip install oxigraph`")
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def local_endpoint(ttl_path: str | Path = SNAPSHOT) -> Iterator[str]:
    """Serve a Turtle file over SPARQL for as long as the block lasts.

    Args:
        ttl_path: the graph; loaded into a server that keeps it in memory.

    Yields:
        The URL that takes queries, ``http://127.0.0.1:PORT/query``.
    """
    ttl_path = Path(ttl_path)
    if not ttl_path.is_file():
        raise UserError(f"{ttl_path}: no such file; give the path of a Turtle file")
    program, port = _oxigraph(), _free_port()
    # Read-write and without --location: the graph is loaded over HTTP and lives in memory only.
    command = [program, "serve", "--bind", f"127.0.0.1:{port}", "--timeout-s", str(QUERY_TIMEOUT_S)]
    with _no_proxy_for_loopback(), tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait_until_ready(server, port, log)
            _load(f"http://127.0.0.1:{port}", ttl_path)
            yield f"http://127.0.0.1:{port}/query"
        finally:
            server.kill()  # it keeps nothing on disk
            server.wait()


@contextmanager
def _no_proxy_for_loopback() -> Iterator[None]:
    before = os.environ.get("no_proxy")
    known = before or os.environ.get("NO_PROXY")
    os.environ["no_proxy"] = f"{known},127.0.0.1" if known else "127.0.0.1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["no_proxy"]
        else:
            os.environ["no_proxy"] = before


@contextmanager
def open_client(
    endpoint: str | None = None,
    snapshot: str | Path = SNAPSHOT,
    user_agent: str | None = None,
    cache_dir: str | Path | None = None,
    counted: bool = False,
) -> Iterator[SparqlClient]:
    """A client of ``endpoint``, or of a local server over ``snapshot`` where none is given.

    The local one is named by the file's hash, so that its cache and manifest hold no port.
    """
    if endpoint is not None:
        yield SparqlClient(endpoint, user_agent, cache_dir, counted=counted)
        return
    with local_endpoint(snapshot) as url:
        identity = f"{Path(snapshot).name} sha256:{sha256_file(snapshot)}"
        yield SparqlClient(url, user_agent, cache_dir, identity=identity, counted=counted)


def sparql(work: Work, endpoint: str, counted: bool = False) -> SparqlClient:
    """The client of a build: ``snapshot``, a Turtle file (``.ttl``) or the URL of a service."""
    local = endpoint == "snapshot" or Path(endpoint).suffix == ".ttl"
    file = SNAPSHOT if endpoint == "snapshot" else endpoint
    client = work.enter_context(
        open_client(None if local else endpoint, file, work.user_agent, work.answers, counted)
    )
    work.clients.append(client)
    return client


def _wait_until_ready(server: subprocess.Popen, port: int, log) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            open_port = True
        except OSError:
            open_port = False
            time.sleep(0.01)
        if server.poll() is not None:  # another program may have taken the port since we looked
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(f"oxigraph ended at once: {said[-1] if said else 'no message'}")
        if open_port:
            return
    raise RuntimeError(f"oxigraph did not open its port within {READY_S:.0f} s")


def _load(base: str, ttl_path: Path) -> None:
    with open(ttl_path, "rb") as graph:
        answer = requests.post(
            f"{base}/store?default",
            data=graph,
            headers={"Content-Type": "text/turtle"},
            timeout=LOAD_TIMEOUT_S,
        )
    if answer.status_code >= 400:
        raise UserError(f"{ttl_path}: not Turtle: {' '.join(answer.text.split())[:300]}")
