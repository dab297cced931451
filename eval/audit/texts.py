"""The texts of an audit: ladders and attacks about people of Wikipedia."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cli.shipped import ROOT
from records import Document, Passage, UserError, read_records

LADDERS = ("ladder", "affirmed")
K = 5  # facts of a complete answer


def text_files() -> list[str]:
    """Files of the ladders and attacks, which are built if they do not exist.

    Attacks with phrases that training may use are left out.
    """
    _, ladders, attacks = map(_built, ("leads", "ladders", "attacks"))
    # The file of an attack that no topic has statements for is empty.
    written = [path for path in sorted(attacks.glob("*.jsonl")) if path.stat().st_size]
    kept = [path for path in written if not path.stem.endswith("_seen")]
    paths = [ladders / f"{name}.jsonl" for name in LADDERS]
    paths += [path for path in kept if path.stem not in ("normal", "invalid")]
    return list(map(str, paths))


def probe_files() -> list[str]:
    """The file of statements with known truth, which is built if it does not exist."""
    return [str(_built("probes") / "probes.jsonl")]


def _built(builder: str) -> Path:
    """The folder of a builder: in the working directory if it has leads, else in the repository."""
    root = ROOT if Path.cwd() != ROOT and not Path("data/leads/manifest.json").is_file() else Path()
    folder = root / "data" / builder
    if (folder / "manifest.json").is_file():
        return folder
    config = f"{ROOT}/configs/data/small/{builder}.yaml"
    command = [sys.executable, "-m", "data_builders", builder, "--config", config]
    pipes = {"stdout": sys.stderr, "stderr": subprocess.PIPE}
    done = subprocess.run(command, cwd=root, text=True, check=False, **pipes)
    if done.returncode:
        problem = done.stderr.strip().splitlines()[-1].removeprefix("error: ")
        raise UserError(f"{problem}; run `make setup` first")
    return folder


def with_pages(documents: Sequence[Document]) -> Iterator[Document]:
    """The documents; the evidence of those without passages is the page of their topic."""
    path = _built("leads") / "passages_test.jsonl"
    pages = {page.title: page for page in read_records(path, Passage)}
    for document in documents:
        passages = document.passages or [pages[document.topic]]
        yield document.model_copy(update={"passages": passages})
