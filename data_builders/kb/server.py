"""A local SPARQL server (Oxigraph, from PyPI) over a Turtle file."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from clients.sparql import SparqlClient
from data_builders.builder import Work
from records import UserError, sha256_file

SNAPSHOT = Path(__file__).parent / "snapshot" / "people.ttl"
READY_S = 20.0
QUERY_TIMEOUT_S = 60
LOAD_TIMEOUT_S = 1800  # sufficient for a million people


def _oxigraph() -> str:
    installed = shutil.which("oxigraph", path=str(Path(sys.prefix) / "bin"))
    program = installed or shutil.which("oxigraph")
    if program is None:
        raise UserError("oxigraph: program not installed; install it with `pip install oxigraph`")
    return program


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def local_endpoint(ttl_path: str | Path = SNAPSHOT) -> Iterator[str]:
    """Serve a Turtle file over SPARQL within a ``with`` block; yield the query URL."""
    ttl_path = Path(ttl_path)
    if not ttl_path.is_file():
        raise UserError(f"{ttl_path}: no such file; set the path of a Turtle file")
    program, port = _oxigraph(), _free_port()
    # Without --location the graph is in memory only; it is loaded over HTTP.
    command = [program, "serve", "--bind", f"127.0.0.1:{port}", "--timeout-s", str(QUERY_TIMEOUT_S)]
    with _no_proxy_for_loopback(), tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait_until_ready(server, port, log)
            _load(f"http://127.0.0.1:{port}", ttl_path)
            yield f"http://127.0.0.1:{port}/query"
        finally:
            server.kill()
            server.wait()


@contextmanager
def _no_proxy_for_loopback() -> Iterator[None]:
    before = os.environ.get("no_proxy")
    hosts = before or os.environ.get("NO_PROXY")
    os.environ["no_proxy"] = f"{hosts},127.0.0.1" if hosts else "127.0.0.1"
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
    """Open a client of ``endpoint``, or of a local server over ``snapshot`` if it is ``None``.

    The local server is identified by the file's hash, so that cache and manifest contain no port.
    """
    if endpoint is not None:
        yield SparqlClient(endpoint, user_agent, cache_dir, counted=counted)
        return
    with local_endpoint(snapshot) as url:
        identity = f"{Path(snapshot).name} sha256:{sha256_file(snapshot)}"
        yield SparqlClient(url, user_agent, cache_dir, identity=identity, counted=counted)


def sparql(work: Work, endpoint: str, counted: bool = False) -> SparqlClient:
    """Open the client of a build: ``snapshot``, a Turtle file (``.ttl``) or a service URL."""
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
        if server.poll() is not None:  # another program may have taken the port
            log.seek(0)
            messages = log.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(
                f"oxigraph exited on startup: {messages[-1] if messages else 'no message'}"
            )
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
        raise UserError(f"{ttl_path}: not valid Turtle: {' '.join(answer.text.split())[:300]}")
