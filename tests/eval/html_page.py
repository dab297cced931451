"""A written page as a reader meets it: its elements, its words, and what a browser makes of it."""

from __future__ import annotations

import subprocess
from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    """Element names with attributes, visible text, and by drawing what shows under the pointer."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.words, self.figures, self._open = [], [], {}, []
        self._drawing = None
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "figure":
            self._drawing = self.figures.setdefault(dict(attributes)["aria-label"], [])
        self._open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tag, _ = self._open[-1] if self._open else ("", {})
        within = [name for name, _ in self._open]
        if tag == "title" and "svg" in within:
            self._drawing.append(data)
        elif "svg" not in within and tag not in {"script", "style"}:
            self.words.append(data)


def in_browser(path: Path, profile: Path, *options: str) -> tuple[str, str]:
    """The page's elements after its script has run, and what the browser says of errors.

    Args:
        options: further options of Chromium.
    """
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command += ["--disable-sync", f"--user-data-dir={profile}"]
    command += ["--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [*command, *options, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout, done.stderr
