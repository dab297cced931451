"""Pushing: refused before training where it cannot succeed, and only the contract's files."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import huggingface_hub
import pytest

from records import UserError
from train.__main__ import main
from train.hub import check_push, push


@pytest.mark.parametrize(
    ("repo_id", "offline", "token", "said"),
    [
        ("unli", False, "hf_x", "ORG/NAME"),
        ("my lab/unli", False, "hf_x", "ORG/NAME"),
        ("lab/unli", True, "hf_x", "HF_HUB_OFFLINE"),
        ("lab/unli", False, None, "hf auth login"),
    ],
)
def test_a_push_that_cannot_succeed_is_refused_before_training(
    arguments: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    repo_id: str,
    offline: bool,
    token: str | None,
    said: str,
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(UserError, match=said) as refused:
        main(arguments("unli", "--push_to_hub", repo_id))
    assert "hf_x" not in str(refused.value)
    assert not (tmp_path / "runs").exists()
    with pytest.raises(UserError, match=said):
        check_push(repo_id)


class _Hub(BaseHTTPRequestHandler):
    """As much of the Hub's interface as an upload of small files takes."""

    asked: ClassVar[list[str]]
    committed: ClassVar[dict[str, bytes]]
    authorized = "Bearer hf_x"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append(self.path)
        if (given := self.headers.get("Authorization")) != self.authorized:
            return self._answer(401, {"error": f"Invalid credentials: {given}"})
        if self.path.endswith("/preupload/main"):
            files = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in files]
            return self._answer(200, {"files": modes})
        if self.path.endswith("/commit/main"):
            lines = [json.loads(line) for line in body.splitlines()]
            files = [line["value"] for line in lines if line["key"] == "file"]
            self.committed.update({f["path"]: base64.b64decode(f["content"]) for f in files})
            here = f"http://{self.headers['Host']}/lab/unli/commit/1"
            return self._answer(200, {"success": True, "commitOid": "1", "commitUrl": here})
        if self.path == "/api/repos/create":
            url = f"http://{self.headers['Host']}/lab/unli"
            return self._answer(200, {"url": url, "id": "lab/unli", "name": "lab/unli"})
        return self._answer(200, {"errors": [], "warnings": []})

    def _answer(self, status: int, value: dict) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Hub]]:
    """A server on loopback in the Hub's place, with a token for it."""
    handler = type("Hub", (_Hub,), {"asked": [], "committed": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield handler
    server.shutdown()


def test_a_push_uploads_the_files_of_the_contract(
    arguments: Callable, tmp_path: Path, hub: type[_Hub], capsys: pytest.CaptureFixture
) -> None:
    main(arguments("unli", "--trainer.max_steps", "3", "--push_to_hub", "lab/unli"))
    told = capsys.readouterr()
    assert "pushed: http://127.0.0.1" in told.out
    assert "hf_x" not in told.out + told.err
    folder = tmp_path / "checkpoints/run"
    assert hub.committed == {path.name: path.read_bytes() for path in folder.iterdir()}

    (folder / "diary.txt").write_text("private", encoding="utf-8")
    (folder / "training_args.bin").write_bytes(b"pickle")
    hub.committed.clear()
    main(["push", "--checkpoint", str(folder), "--repo_id", "lab/unli", "--private", "true"])
    assert {"component.json", "README.md", "model.safetensors"} <= set(hub.committed)
    assert not {"diary.txt", "training_args.bin"} & set(hub.committed)

    hub.authorized = "Bearer another"
    with pytest.raises(UserError, match=r"failed: Invalid credentials: Bearer \*\*\*") as refused:
        main(["push", "--checkpoint", str(folder), "--repo_id", "lab/unli"])
    assert "hf_x" not in str(refused.value)
    with pytest.raises(UserError, match=r"no component\.json"):
        main(["push", "--checkpoint", str(tmp_path), "--repo_id", "lab/unli"])


def test_a_hub_that_cannot_be_reached_is_told_in_one_line(
    arguments: Callable, tmp_path: Path, hub: type[_Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(arguments("unli", "--trainer.max_steps", "0"))
    with socket.socket() as nobody:  # bound, but nobody listens
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
        with pytest.raises(UserError, match=r"push to lab/unli failed: .*refused"):
            push(tmp_path / "checkpoints/run", "lab/unli")
