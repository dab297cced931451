"""Released files, fetched from a server on loopback that breaks off."""

import io
import json
import re
import subprocess
import sys
import tarfile
import threading
import time
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from data_builders.fetch import SETS, Release, fetch
from records import UserError, sha256_file

CONTENT = bytes(range(256)) * 20_000  # 5 MB
TREES = Path(__file__).with_name("trees")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        start = int((self.headers["Range"] or "bytes=0-")[6:-1])
        start = start if self.headers.get("If-Range", server.tag) == server.tag else 0
        server.starts.append(start)
        self.send_response(206 if start else 200)
        self.send_header("ETag", server.tag)
        self.send_header("Content-Length", str(len(server.content) - start))
        self.end_headers()
        stop = server.stops.pop(0) if server.stops else len(server.content)
        try:
            self.wfile.write(server.content[start:stop])
            self.wfile.flush()
            if stop < len(server.content):
                time.sleep(server.hang_s)
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        running.content, running.tag, running.hang_s = CONTENT, '"one"', 0.0
        running.starts, running.stops = [], []
        running.url = f"http://127.0.0.1:{running.server_port}/file"
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def sets(server, tmp_path):
    def write(**fields):
        entry = {"source": "here", "licence": "CC0", "files": {"a.bin": server.url}} | fields
        path = tmp_path / "sets.yaml"
        path.write_text(yaml.safe_dump({"a": entry}))
        return path

    return write


def test_killed_download_resumes_and_is_recorded(server, sets, tmp_path):
    server.stops, server.hang_s = [3_000_000], 60
    path = sets()
    command = [sys.executable, "-m", "data_builders", "fetch", "a", "--output", str(tmp_path)]
    running = subprocess.Popen([*command, "--sets", str(path)])
    partial = tmp_path / "a" / "a.bin.partial"
    while not partial.is_file() or partial.stat().st_size < 2_000_000:
        assert running.poll() is None
        time.sleep(0.05)
    running.kill()
    running.wait()
    size = partial.stat().st_size
    assert "licence: CC0" in fetch("a", tmp_path, path)
    assert server.starts == [0, size]
    assert (tmp_path / "a" / "a.bin").read_bytes() == CONTENT
    record = json.loads((tmp_path / "a" / "fetched.json").read_text())["files"]["a.bin"]
    digest = sha256_file(tmp_path / "a" / "a.bin")
    assert record == {"url": server.url, "bytes": len(CONTENT), "sha256": digest}
    fetch("a", tmp_path, path)
    assert len(server.starts) == 2  # not downloaded again
    (tmp_path / "a" / "a.bin").write_bytes(b"changed")
    with pytest.raises(UserError, match="SHA-256"):
        fetch("a", tmp_path, path)


def test_changed_file_is_downloaded_from_the_start(server, sets, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.bin.partial").write_bytes(b"old")
    (tmp_path / "a" / "a.bin.validator").write_text('"zero"')
    fetch("a", tmp_path, sets())
    assert (tmp_path / "a" / "a.bin").read_bytes() == CONTENT


def test_wrong_checksum_is_an_error(server, sets, tmp_path):
    path = sets(files={"a.bin": {"url": server.url, "sha256": "0" * 64}})
    with pytest.raises(UserError, match="expected 000"):
        fetch("a", tmp_path, path)


@pytest.mark.parametrize("name", ["top/data/x.txt", "../../evil.txt"])
def test_archive_is_extracted_only_into_its_folder(server, sets, tmp_path, name):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = 5
        archive.addfile(member, io.BytesIO(b"hello"))
    server.content = buffer.getvalue()
    path = sets(files={"a.tar.gz": server.url}, extract=True)
    if ".." in name:
        with pytest.raises(UserError, match="not extracted"):
            fetch("a", tmp_path, path)
        assert not list(tmp_path.rglob("evil.txt"))
    else:
        fetch("a", tmp_path, path)
        assert (tmp_path / "a" / "data" / "x.txt").read_text() == "hello"


def test_downloads_yaml_is_valid():
    for entry in yaml.safe_load(SETS.read_text()).values():
        assert Release(**entry).licence


ON_GITHUB = re.compile(
    r"https://(?:codeload|raw)\.(?:github|githubusercontent)\.com/(\w[\w-]*)/([\w-]+)/(?:tar\.gz/)?"
    r"([0-9a-f]{40})(?:/(.+))?"
)


def authors_paths(name: str, entry: dict) -> set[str] | None:
    """What a set has below ``downloads/``, by the committed lists of the authors' files."""
    paths = set()
    for file, url in entry.get("files", {}).items():
        at = ON_GITHUB.fullmatch(url) if isinstance(url, str) else None
        tree = at and TREES / f"{at[1]}__{at[2]}@{at[3][:12]}.txt"
        if not tree or not tree.is_file():
            return None
        lines = tree.read_text("utf-8").splitlines()
        if at[4]:
            assert at[4] in lines, f"{name}: {url}"
            lines = [file]
        paths |= {f"{name}/{line}" for line in lines}
    return paths or None


RELEASED = {
    name: paths
    for name, entry in yaml.safe_load(SETS.read_text("utf-8")).items()
    if (paths := authors_paths(name, entry))
}


def test_sets_hold_what_the_authors_repositories_have():
    sets = yaml.safe_load(SETS.read_text("utf-8"))
    used = {file.stem.partition("@")[0].lower() for file in TREES.iterdir()}
    assert len(used) == len({sets[name]["source"].split()[0].strip(",") for name in RELEASED}) == 11
    for name, paths in RELEASED.items():
        for pattern in sets[name]["holds"]:
            matching = [p for p in paths if fnmatch(p, pattern) or p.startswith(f"{pattern}/")]
            assert matching, f"{pattern} is not in the authors' repository"


def test_paths_of_paper_configs_and_docs_are_declared_in_downloads_yaml():
    sets = yaml.safe_load(SETS.read_text())
    declared = {path for entry in sets.values() for path in entry.get("holds", [])}
    folders = {part for path in declared for part in path.split("/")[:1]} | set(sets)
    root = SETS.parents[1]
    texts = [*root.glob("configs/*/paper/*.yaml"), *root.glob("docs/**/*.md")]
    for text in texts:
        for path in re.findall(r"downloads/([\w./*-]+)", text.read_text("utf-8")):
            path = path.rstrip("./")
            is_declared = any(fnmatch(path, pattern) for pattern in declared)
            assert is_declared or path in folders | {"NAME"}, f"{text.name}: downloads/{path}"
            name = path.split("/")[0]
            is_its_own = any(fnmatch(path, p) for p in sets.get(name, {}).get("holds", []))
            if name in RELEASED and is_its_own:
                paths = RELEASED[name]
                is_released = any(fnmatch(p, path) or p.startswith(f"{path}/") for p in paths)
                assert is_released, f"{text.name}: the authors have no {path}"
