"""The pages for readers: links lead to files and headings, and commands parse."""

import re
import shlex
from pathlib import Path

import pytest

from tests.test_papers import parses

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for place in ("", "docs", "checkpoints", "benchmarks")
    for page in (ROOT / place).glob("*.md")
)
# The parsers of these commands read a checkpoint, or exist only while the command runs.
NEEDS_A_CHECKPOINT = r"python -m (train sweep|eval (component|doctor|report))"
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
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


def head_commands(text, name):
    """The commands of a config's head; "…" at their beginning stands for the one with ``name``."""
    head = re.split(r"^(?!#)", text, maxsplit=1, flags=re.M)[0]
    head = re.sub(r"\\\n# +", "", re.sub(r"^# ?", "# ", head, flags=re.M))
    quoted = [" ".join(part.split("\n# ")) for part in re.findall(r"`([^`]+)`", head)]
    lines = re.sub(r"`[^`]*`", "", head).splitlines()
    commands = []
    for line in [*lines, *quoted]:
        match = re.search(r"python -m (?:train|eval|data_builders) .*|(?<!\S)… .*", line)
        if match:
            command = re.split(r"\s+#|\s{3,}|,? or | \((?![^']*')", match[0])[0]
            commands.append(command)
    # "…" at the end of a line stands for further options.
    (launch, *_) = [command for command in commands if name in command]
    launch = launch.removesuffix(" …")
    commands = [command for command in commands if not re.search(r" [^-]\S* …$", command)]
    return [re.sub("^…", lambda _: launch, command) for command in commands]


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


def test_guarantees_name_existing_tests():
    path = None
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    for file, name in re.findall(r"`([\w/.]*)::(test_\w+)`", page):
        path = file or path
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_parses(command, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    parses(shlex.split(command.replace("$D", "downloads").replace("$K", "data"))[2:])


def test_commands_of_a_head_have_continued_lines_and_the_launch_line():
    launch = "# Scores.\n#\n#   A=… python -m eval score \\\n#     --config a.yaml  # cheap\n"
    text = launch + "# Other: … --k 4 (slow)\nk: 2\n# … --k 5\n"
    assert head_commands(text, "a.yaml") == [
        "python -m eval score --config a.yaml",
        "python -m eval score --config a.yaml --k 4",
    ]


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_commands_of_a_config_parse(path, monkeypatch, capsys, tmp_path):
    (tmp_path / "my_metric.py").write_text(
        "from eval.metrics.text_metric import TextMetric\n"
        "class Mine(TextMetric):\n"
        "    def score(self, documents): return [0.5 for _ in documents]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(ROOT)
    commands = head_commands(path.read_text(encoding="utf-8"), name_of(path))
    assert commands
    for command in commands:
        if not re.match(NEEDS_A_CHECKPOINT, command):
            parses(shlex.split(command)[2:])
