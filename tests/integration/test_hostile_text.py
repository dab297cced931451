"""Texts that mean harm, in every page, picture, card and table that is written of a run.

They come where a model's or a user's texts come: topics, claims, passages, verdicts, names of
generators and kinds, configurations. A real browser opens all files; whatever of a text runs tells
the page around it, and whatever it loads asks a server of ours.
"""

from __future__ import annotations

import csv
import html
import re
import shutil
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from data_builders.dataset import Card, write_dataset
from data_builders.kb.bleached import BleachedClaim
from data_builders.kb.bleached import _card as bleached_card
from eval.commands.report import build_report
from records import Verdict, write_text
from tests.eval.html_page import in_browser
from tests.eval.test_report import scored_document, scored_run
from tests.eval.test_report_lss import page_of as lss_page
from tests.eval.test_report_lss import result as lss_result
from tests.eval.test_robustness_page import LOG, curve_rows, rows_of, text, write_run
from tests.train.test_card import component, training
from train.card import write_card

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on PATH"),
]

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
NUMBER = re.compile(r"[+-]?[\d,.]+(e[+-]?\d+)?( ?%)?", re.IGNORECASE)


def harm(url: str, name: str) -> str:
    """A text that is a formula, LaTeX, Markdown, a template and HTML, each of which would act.

    Args:
        url: of the server that is asked when something acts.
        name: what it asks for, and what it tells the page around.
    """
    act = f"parent.postMessage('{name}','*');new Image().src='{url}/{name}/script'"
    quoted = f'autofocus onfocus="{act}" onmouseover="{act}" contenteditable tabindex=1'
    return (
        f"=HYPERLINK(\"{url}/{name}/formula\")+cmd|'/C calc'!A0 "
        f"$\\frac{{$ \\input{{/etc/passwd}} {{{{ 7*7 }}}}{{% raw %}} | `` "
        f"![a]({url}/{name}/markdown) [b](javascript:{name}) "
        f"--></title></style></script></svg><script>{act}</script>"
        f"<svg onload=\"{act}\"></svg><script xmlns='http://www.w3.org/2000/svg'>{act}</script>"
        f'<img src=\'{url}/{name}/img\' onerror="{act}"><input {quoted}>" {quoted} x="'
        f"<style>@import '{url}/{name}/style';</style><iframe src='{url}/{name}/frame'></iframe>"
        f"<object data='{url}/{name}/object'></object>]]>"
    )


class Elements(HTMLParser):
    """The elements of a page, each with the names of its attributes."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attributes]))


@pytest.fixture
def asking_server() -> Iterator[tuple[str, set[str]]]:
    """The URL of a server on loopback, and the first part of every path that it was asked for."""
    found_items: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found_items.add(self.path.split("/")[1])
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", found_items
    server.shutdown()
    server.server_close()


def score_runs(folder: Path, hostile: str) -> list[Path]:
    """Two runs of ``score`` with a graph and kept words."""
    for name, failing in (("one", False), ("two", True)):
        documents = [
            scored_document(n, hostile, hostile, hostile, failing and n == 1) for n in range(2)
        ]
        more = {"relations": [{"context": "p1", "relation": "entailment", "p": 0.9}]}
        more |= {"kept": [[hostile, True]]}
        verdicts = [Verdict(**dict(v), **more) for v in documents[0].verdicts]
        documents[0] = documents[0].model_copy(update={"verdicts": verdicts})
        tokens = dict.fromkeys(("failed", "prompt_tokens", "completion_tokens"), 0)
        usage = [{"model": {"model": hostile}, "answers": 1, **tokens}]
        fields = {"usage": usage, "models": [{"model": hostile}], "prompts": {hostile: hostile}}
        (folder / name).mkdir(parents=True)
        scored_run(folder / name, documents, config={hostile: hostile}, **fields)
    return [folder / "one", folder / "two"]


def robustness_run(folder: Path, hostile: str) -> Path:
    """A run whose names, texts and training log all mean harm."""
    results = [*rows_of(hostile), *curve_rows()]
    results += [r.model_copy(update={"kind": hostile, "group": hostile}) for r in results]
    log = LOG.replace("dev/pearson", '"dev/{}"'.format(hostile.replace('"', '""')))
    texts = [text(0, hostile, hostile, hostile), text(1)]
    return write_run(folder, results, texts, [("unli", log)], versions={hostile: hostile})


def cards(folder: Path, hostile: str) -> None:
    """A model card and a dataset card, without their headers, which are YAML."""
    card_component = component(metrics={f"{hostile}/pearson": 0.5})
    data = [card_component.data[0].model_copy(update={"path": hostile})]
    card_component = card_component.model_copy(update={"data": data})
    measures = {f"{hostile}/pearson": {"value": 0.5, "ci95": None}}
    folder.mkdir()
    card = write_card(folder, Path("checkpoints/x"), card_component, training(measures=measures))
    write_text(folder / "model.md", card.split("\n---\n", 1)[1])
    claim = BleachedClaim(text=hostile, source="model", share=0.5, count=1, of=2, fact=hostile)
    made: Card = bleached_card("people", [claim], 0, "other")
    configs = {"": {"train": "claims.jsonl"}}
    fields = {
        "configs": configs,
        "card": made,
        "clients": [],
        "dropped": {},
        "config": {},
        "seed": 0,
    }
    write_dataset(folder / "set", {"claims.jsonl": [claim]}, builder="bleached", **fields)
    card = (folder / "set/README.md").read_text(encoding="utf-8")
    (folder / "set/README.md").write_text(card.split("\n---\n", 1)[1], encoding="utf-8")


def write_all(folder: Path, hostile: str) -> None:
    """Everything that is written of runs, below ``folder``, which is also the current one."""
    first_run, second_run = score_runs(folder / "runs", hostile)
    found_items = [
        first_run,
        second_run,
        robustness_run(folder / "runs/<img src=x onerror=parent.focus()>", hostile),
    ]
    for place in found_items:
        build_report(place)
    pair = {"reference": hostile, "claim": hostile, "engine": hostile, "lss": hostile}
    (folder / "runs/lss").mkdir()
    lss_page(folder / "runs/lss", "lss_metrics", [lss_result("pearson", kind=hostile)], [pair])
    cards(folder / "cards", hostile)


def frames(folder: Path) -> list[Path]:
    """The files that a browser shows; Markdown as HTML, which passes through it as it is."""
    for path in sorted(folder.rglob("*.md")):
        path.with_suffix(".md.html").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    return [path for ending in ("html", "svg") for path in sorted(folder.rglob(f"*.{ending}"))]


def test_nothing_in_a_text_acts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asking_server: tuple[str, set[str]]
) -> None:
    url, found_items = asking_server
    folder = tmp_path / "all"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_all(folder, harm(url, "escaped"))
    shown_frames = frames(folder)
    assert {"report.html", "tables.md.html", "model.md.html"} <= {
        path.name for path in shown_frames
    }
    assert any(path.suffix == ".svg" for path in shown_frames)
    # What would act if it were not escaped: alone, and behind the policy of our pages.
    policy = POLICY.search((folder / "runs/one/report.html").read_text(encoding="utf-8"))
    write_text(tmp_path / "raw.html", f"<!DOCTYPE html>{harm(url, 'raw')}")
    head = f"<!DOCTYPE html><head>{policy[0]}</head>"
    write_text(tmp_path / "policy.html", f"{head}<body>{harm(url, 'policy')}")
    addresses = [
        p.as_uri() for p in (*shown_frames, tmp_path / "raw.html", tmp_path / "policy.html")
    ]
    heard = "addEventListener('message', e => document.body.append(`[heard ${e.data}]`))"
    loaded = "document.body.append('[loaded]')"
    inner = "".join(
        f'<iframe src="{html.escape(a)}" onload="{loaded}"></iframe>' for a in addresses
    )
    write_text(tmp_path / "around.html", f"<body><script>{heard}</script>{inner}</body>")
    dom, _ = in_browser(tmp_path / "around.html", tmp_path / "profile")
    assert dom.count("[loaded]") >= len(addresses)
    assert set(re.findall(r"\[heard (\w+)\]", dom)) == {"raw"}
    assert found_items == {"raw"}

    for path in folder.rglob("*.html"):
        elements = Elements(path.read_text(encoding="utf-8")).found
        assert {tag for tag, _ in elements}.isdisjoint({"script", "img", "iframe", "object"}), path
        assert not [name for _, names in elements for name in names if name[:2] == "on"], path
    for path in folder.rglob("*.md"):
        assert f"]({url}" not in path.read_text(encoding="utf-8"), path
    for path in folder.rglob("*.csv"):
        if path.parent.name == "training":
            continue  # the run's own input
        with open(path, encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [c for c in cells if FORMULA.match(c) and not NUMBER.fullmatch(c)], path
    for path in folder.rglob("*.tex"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if r"\input" in line and line[0] != "%"], path
