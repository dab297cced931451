"""A real HTTP server of pages on loopback."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        server = self.server
        with server.lock:
            server.asked.append(self.path)
            server.headers.append(self.headers)
            server.busy.add(self)
            server.most = max(server.most, len(server.busy))
        try:
            time.sleep(0.005)
            faults = server.faults.get(self.path)
            page = faults.popleft() if faults else server.pages.get(self.path, (404, b"gone"))
            with suppress(OSError):  # whoever has enough hangs up
                page(self) if callable(page) else self.answer(*page)
        finally:
            self.leave()

    do_POST = do_GET

    def leave(self):
        with self.server.lock:
            self.server.busy.discard(self)

    def answer(self, status, body, kind="text/html", **headers):
        raw = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, text in {"Content-Length": str(len(raw)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        if kind:
            self.send_header("Content-Type", kind)
        self.leave()  # before the client can know that it has all, and ask again
        self.end_headers()
        self.wfile.write(raw)


class WebServer(ThreadingHTTPServer):
    """Serves ``pages``, path to the arguments of ``answer`` or to a function of the handler.

    Attributes:
        faults: path to the answers that come first.
        asked: the paths, in their order.
        most: requests that were under way at a time.
    """

    daemon_threads = True

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.faults = pages, {}
        self.asked, self.headers, self.busy, self.most = [], [], set(), 0
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def fault(self, path, *answers):
        self.faults[path] = deque(answers)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        """A client that hung up is none of the server's trouble."""
