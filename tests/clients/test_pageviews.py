"""The page-view client: replies that are none."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from clients.pageviews import PageViews
from clients.polite import EndpointError


class Handler(BaseHTTPRequestHandler):
    items: object = None

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"items": Handler.items}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "items", [None, {}, "x", [None], [{}], [{"views": None}], [{"views": "12"}], [{"views": 1.5}]]
)
def test_views_that_are_no_numbers_are_no_answer_and_not_kept(tmp_path, items) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Handler.items = items
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        client = PageViews(f"http://127.0.0.1:{server.server_port}", None, tmp_path, retries=0)
        with pytest.raises(EndpointError, match="not of the shape"):
            client.views("Ada Lovelace", "20230101", "20230131")
        server.shutdown()
    assert not list(tmp_path.rglob("*.json"))
