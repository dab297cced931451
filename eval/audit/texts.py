"""The texts of an audit: ladders and attacks about people of Wikipedia."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from records import Document, Passage, UserError, read_records

LADDERS = ("ladder", "affirmed")
K = 5  # facts of a complete answer
_PAGES = "data/leads/passages_test.jsonl"


def text_files() -> list[str]:
    """Files of the ladders and attacks, which are built if they do not exist.

    Attacks with phrases that training may use are left out.
    """
    for builder in ("leads", "ladders", "attacks"):
        _build(builder)
    # The file of an attack that no topic has statements for is empty.
    written = [path for path in sorted(Path("data/attacks").glob("*.jsonl")) if path.stat().st_size]
    kept = [path for path in written if not path.stem.endswith("_seen")]
    paths = [Path(f"data/ladders/{name}.jsonl") for name in LADDERS]
    paths += [path for path in kept if path.stem not in ("normal", "invalid")]
    return list(map(str, paths))


def probe_files() -> list[str]:
    """The file of statements with known truth, which is built if it does not exist."""
    _build("probes")
    return ["data/probes/probes.jsonl"]


def _build(builder: str) -> None:
    if Path("data", builder, "manifest.json").is_file():
        return
    config = f"configs/data/small/{builder}.yaml"
    command = [sys.executable, "-m", "data_builders", builder, "--config", config]
    done = subprocess.run(
        command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        problem = done.stderr.strip().splitlines()[-1].removeprefix("error: ")
        raise UserError(f"{problem}; run `make setup`, then the audit in the repository's root")


def with_pages(documents: Sequence[Document]) -> Iterator[Document]:
    """The documents; the evidence of those without passages is the page of their topic."""
    pages = {page.title: page for page in read_records(_PAGES, Passage)}
    for document in documents:
        passages = document.passages or [pages[document.topic]]
        yield document.model_copy(update={"passages": passages})
