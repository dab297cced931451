"""A proxy that stands before a real server and spoils some of its answers, as the world does.

    with local_endpoint() as url, FaultProxy(url, [Fault("429", retry_after=1), None]) as proxy:
        SparqlClient(proxy.url, ...).select(...)
    assert proxy.most_at_once == 1 and not proxy.repeated()

What is spoiled is a real answer of the server behind wherever there is one to spoil. Every request
is written down, so that a test can also tell whether the client was polite.
"""

from __future__ import annotations

import json
import random
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from tests.integration.spoil import PAGE, Answer, Fault, parsed, spoil

PIECES = 20  # of a slow body
UPSTREAM_TIMEOUT_S = 60
ASIDE = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host"}
ANYWHERE = (
    Fault("429", retry_after=1),
    Fault("503", retry_after=1),
    Fault("503"),
    Fault("html"),
    Fault("drop"),
    Fault("cut"),
    Fault("cut", keep=0),
    Fault("cut_unseen"),
    Fault("slow", seconds=0.1),
)
# What a builder must come through with the bytes of an undisturbed build.
SPARQL = (*ANYWHERE, Fault("cut_json"))
MEDIAWIKI = (*ANYWHERE, Fault("maxlag"))


@dataclass
class Request:
    """One request as the proxy saw it.

    Attributes:
        method: ``GET`` or ``POST``.
        path: without the query string.
        params: of the query string and the form; a body that is no form is ``body``.
        headers: names in lower case.
        nth: how often the very same request had come before.
        came: moment of its arrival, on the clock of ``time.monotonic``.
        left: moment just before the last of the answer was sent.
        fault: kind of the fault that its answer suffered.
        status: of the answer; ``None`` where there was none.
        retry_after: the header of the answer.
    """

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    nth: int = 0
    came: float = 0.0
    left: float = 0.0
    fault: str | None = None
    status: int | None = None
    retry_after: str | None = None

    @property
    def key(self) -> str:
        """The same for the same request."""
        return json.dumps([self.method, self.path, sorted(self.params.items())])

    @property
    def answered(self) -> bool:
        """Whether a whole and good answer was sent."""
        return self.fault in {None, "slow"} and self.status is not None and self.status < 400


Choice = Callable[[Request], Fault | None]


def random_mix(faults: Sequence[Fault], p: float = 0.3, seed: int = 0, in_a_row: int = 2) -> Choice:
    """Spoil each answer with probability ``p``, the same request at most ``in_a_row`` times on end.

    The choice depends on the seed, the request and how often it came, and on nothing else, so that
    a client that is killed and comes back finds the same world.
    """

    def choose(request: Request) -> Fault | None:
        fault, row = None, 0
        for nth in range(request.nth + 1):
            draw = random.Random(f"{seed}:{request.key}:{nth}")
            fault = draw.choice(faults) if draw.random() < p and row < in_a_row else None
            row = row + 1 if fault else 0
        return fault

    return choose


class FaultProxy:
    """Passes requests on to a server, with faults, for as long as the block lasts.

    Args:
        upstream: URL of the real server, ``http://127.0.0.1:PORT/path``.
        faults: one for each request in order (``None`` passes it on; so does the end of the list),
            or a function that chooses one for a request. May be set anew at any time, so that a
            disturbed and an undisturbed build ask the same address.

    Attributes:
        url: the proxy's address with the upstream's path.
        seen: all requests, in order of arrival.
        most_at_once: how many requests were waiting for an answer at the same time, at most.
    """

    def __init__(self, upstream: str, faults: Sequence[Fault | None] | Choice = ()):
        self._upstream = urlsplit(upstream)
        self.faults = faults
        self._lock = threading.Lock()
        self.forget()

    def __enter__(self) -> FaultProxy:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._server.proxy = self
        self.url = f"http://127.0.0.1:{self._server.server_port}{self._upstream.path}"
        serve = {"target": self._server.serve_forever, "kwargs": {"poll_interval": 0.02}}
        threading.Thread(**serve, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def faults(self) -> Choice:
        """Chooses the fault of a request."""
        return self._choose

    @faults.setter
    def faults(self, faults: Sequence[Fault | None] | Choice) -> None:
        if callable(faults):
            self._choose = faults
        else:
            left = iter(list(faults))
            self._choose = lambda request: next(left, None)

    def forget(self) -> None:
        """Begin a new record; a list of faults goes on where it was."""
        with self._lock:
            self.seen: list[Request] = []
            self.most_at_once = 0
            self._asked: Counter[str] = Counter()
            self._open: set[socket.socket] = set()
            self._batches: dict[str, Answer] = {}
            self._continues: set[str] = set()

    def repeated(self) -> list[Request]:
        """Requests that were answered whole although the very same one had been before.

        A request that is spoiled and comes again is one request, however often it is spoiled.
        """
        done: set[str] = set()
        repeated_requests = []
        for request in self.seen:
            if not request.answered:
                continue
            if request.key in done:
                repeated_requests.append(request)
            done.add(request.key)
        return repeated_requests

    def too_soon(self, clock: float = 1.0) -> list[Request]:
        """Requests that came before the wait was over that the answer before had asked for.

        Args:
            clock: how many times faster than real time the client's waits pass.
        """
        early = []
        until = 0.0
        for request in self.seen:
            if request.came < until:
                early.append(request)
            if request.retry_after is not None and request.retry_after.isdigit():
                until = max(until, request.left + int(request.retry_after) / clock)
        return early

    # The rest is the handler's.

    def _arrive(self, request: Request, connection: socket.socket) -> Fault | None:
        with self._lock:
            # A client that gave up waits no more, even where we are still busy for it.
            self._open = {other for other in self._open if _is_open(other)} | {connection}
            self.most_at_once = max(self.most_at_once, len(self._open))
            request.nth = self._asked[request.key]
            self._asked[request.key] += 1
            request.came = time.monotonic()
            self.seen.append(request)
            return self._choose(request)

    def _leave(self, request: Request, connection: socket.socket) -> None:
        """Before the last byte: the next request may come as soon as the client has that one."""
        with self._lock:
            request.left = request.left or time.monotonic()
            self._open.discard(connection)

    def _answer(self, request: Request, target: str, body: bytes, fault: Fault | None) -> Answer:
        """What the client gets; ``request.fault`` names the fault where it changed anything."""
        kind = fault.kind if fault else None
        if kind in {"429", "503"}:
            request.fault = kind
            return Answer(int(kind), {"Content-Type": "text/plain"}, b"not now\n")
        if kind == "html":
            request.fault = kind
            return Answer(200, {"Content-Type": "text/html; charset=utf-8"}, PAGE.encode())
        answer = None
        if kind == "dup_continue":
            answer = self._batches.get(self._batch(request))
        if answer is not None:
            request.fault = kind
            return answer
        answer = self._ask(request, target, body, kind)
        self._remember(request, answer)
        spoiled = spoil(answer, fault) if fault else None
        if spoiled is None:
            return answer
        request.fault = kind
        return spoiled

    def _ask(self, request: Request, target: str, body: bytes, kind: str | None) -> Answer:
        headers = {name: value for name, value in request.headers.items() if name not in ASIDE}
        if kind in {"cut_json", "silent_cut"}:
            headers["accept-encoding"] = "identity"
        if kind == "maxlag":
            headers["x-simulated-lag"] = "9"  # the test wiki's setting reads it
        upstream = HTTPConnection(
            self._upstream.hostname, self._upstream.port, timeout=UPSTREAM_TIMEOUT_S
        )
        try:
            upstream.request(request.method, target, body or None, headers)
            reply = upstream.getresponse()
            reply_headers = {k: v for k, v in reply.getheaders() if k.lower() not in ASIDE}
            reply_headers = {
                k: v for k, v in reply_headers.items() if k.lower() != "content-length"
            }
            return Answer(reply.status, reply_headers, reply.read())
        except (OSError, HTTPException) as error:
            return Answer(502, {"Content-Type": "text/plain"}, f"upstream: {error}\n".encode())
        finally:
            upstream.close()

    def _remember(self, request: Request, answer: Answer) -> None:
        """Keep a batch that another one follows, for ``dup_continue``."""
        after = parsed(answer).get("continue") if b'"continue"' in answer.body else None
        if isinstance(after, dict):
            self._continues |= set(after)
            self._batches[self._batch(request)] = answer

    def _batch(self, request: Request) -> str:
        """The same for all batches of one list."""
        kept = {k: v for k, v in request.params.items() if k not in self._continues}
        return replace(request, params=kept).key


def _is_open(connection: socket.socket) -> bool:
    """Whether the client at the other end still waits."""
    try:
        readable, _, _ = select.select([connection], [], [], 0)
        return not readable or connection.recv(1, socket.MSG_PEEK) != b""
    except (OSError, ValueError):
        return False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        proxy: FaultProxy = self.server.proxy
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = self._request(body)
        fault = proxy._arrive(request, self.connection)
        if fault and fault.kind == "drop":
            request.fault = "drop"
            proxy._leave(request, self.connection)
            return
        answer = proxy._answer(request, self.path, body, fault)
        if fault and request.fault and fault.retry_after is not None:
            answer.headers["Retry-After"] = str(fault.retry_after)
        request.status = answer.status
        request.retry_after = answer.headers.get("Retry-After")
        try:
            self._send(answer, lambda: proxy._leave(request, self.connection))
        except OSError:  # the client went away
            proxy._leave(request, self.connection)

    def _request(self, body: bytes) -> Request:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        params = dict(parse_qsl(parts.query, keep_blank_values=True))
        text = body.decode("utf-8", errors="replace")
        if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            params |= dict(parse_qsl(text, keep_blank_values=True))
        elif body:
            params["body"] = text
        return Request(self.command, parts.path, params, headers)

    def _send(self, answer: Answer, leave: Callable[[], None]) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        length = len(answer.body) if answer.length is None else answer.length
        self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        pieces = PIECES if answer.seconds else 1
        if pieces == 1:
            leave()  # before the headers: a client may not wait for the body of an error
        self.end_headers()
        for number in range(pieces):
            time.sleep(answer.seconds / pieces)
            if number == pieces - 1:
                leave()
            begin, end = (len(answer.body) * n // pieces for n in (number, number + 1))
            self.wfile.write(answer.body[begin:end])
