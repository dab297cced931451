"""The pages for readers: links lead to files and headings, and commands parse."""

import re
import shlex
from pathlib import Path

import pytest

from tests.test_papers import parses

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for place in ("", "docs", "docs/papers", "docs/results", "checkpoints", "benchmarks")
    for page in (ROOT / place).glob("*.md")
)
# The parsers of these commands read a checkpoint, or exist only while the command runs.
NEEDS_A_CHECKPOINT = r"python -m (train sweep|eval (component|doctor|report))"
WITH_COMMANDS = (
    "README.md",
    "docs/api.md",
    "docs/results/components.md",
    "docs/results/judges.md",
    "docs/results/robustness.md",
    "docs/results/speed.md",
    "docs/datasets.md",
    "docs/records.md",
    "checkpoints/README.md",
)
COMMANDS = sorted(
    {
        line
        for page in WITH_COMMANDS
        for block in re.findall(r"^```\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)
        for line in block.replace("\\\n", "").splitlines()
        if line.startswith("python -m ") and not re.match(NEEDS_A_CHECKPOINT, line)
    }
)


def name_of(path):
    return str(path.relative_to(ROOT))


def prose(path):
    """The text of a page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(path):
    """Anchors of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name in ("docs", "papers")], ids=name_of
)
def test_lines_of_the_docs_are_short(page):
    assert max(map(len, page.read_text(encoding="utf-8").splitlines())) <= 300


def test_guarantees_name_existing_tests():
    path = None
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    for file, name in re.findall(r"`([\w/.]*)::(test_\w+)`", page):
        path = file or path
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name


def test_the_glossary_defines_each_term_once():
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"\*\*([^*]+)\*\*", page)
    assert len(terms) == len(set(terms)) > 50


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_parses(command, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    parses(shlex.split(command.replace("$D", "downloads").replace("$K", "data"))[2:])
