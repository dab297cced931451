"""The pages for readers: links lead somewhere, commands parse, and what must be short is short."""

import re
import shlex
from pathlib import Path

import pytest

from tests.test_papers import parses

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(ROOT / name for name in ("checkpoints/README.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
# In bytes: what is read first is read whole.
MOST = {"README.md": 8 * 1024, "docs/experiments.md": 38 * 1024}
# The parser of these is made from a checkpoint, or cannot be had without running them.
NEEDS_A_CHECKPOINT = (
    r"python -m (train (predict|push|sweep|test|validate)|eval (component|doctor|report))"
)
WITH_COMMANDS = (
    "README.md",
    "docs/api.md",
    "docs/experiments.md",
    "docs/datasets.md",
    "docs/records.md",
    "checkpoints/README.md",
)
COMMANDS = sorted(
    {
        line
        for page in WITH_COMMANDS
        for block in re.findall(r"^```\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)
        for line in block.splitlines()
        if line.startswith("python -m ") and not re.match(NEEDS_A_CHECKPOINT, line)
    }
)


def name_of(path):
    return str(path.relative_to(ROOT))


def prose(path):
    """A page without its code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(path):
    """What a link to a heading of a page is called."""
    heads = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_between_pages_leads_to_a_file_and_a_heading(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        to = page.parent / path if path else page
        assert to.exists(), link
        assert not anchor or anchor in anchors(to), link


@pytest.mark.parametrize("page", MOST)
def test_a_page_that_is_read_first_is_short(page):
    assert (ROOT / page).stat().st_size <= MOST[page]


def test_the_docs_are_short_together():
    assert sum(page.stat().st_size for page in (ROOT / "docs").glob("*.md")) <= 150 * 1024


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_parses(command, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    parses(shlex.split(command.replace("$D", "downloads").replace("$K", "data"))[2:])
