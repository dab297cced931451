"""The texts of an audit: ladders and attacks that ``data_builders`` wrote."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from records import Document, Passage, UserError, read_records

World = Literal["people", "leads"]
LADDERS = ("ladder", "affirmed")
_SUFFIX = {"people": "", "leads": "_leads"}
_PAGES = {"people": "data/kb/passages.jsonl", "leads": "data/leads/passages_test.jsonl"}


def text_files(world: World) -> list[str]:
    """Files of the ladders and attacks of a world, which are built if they do not exist.

    Attacks with phrases that training may use are left out.
    """
    if not Path(_PAGES[world]).is_file():
        if world == "leads":
            raise UserError(f"{_PAGES[world]}: not found; `make wikipedia` builds it")
        _build("kb_pairs", "")
    ladders, attacks = (Path(f"data/{name}{_SUFFIX[world]}") for name in ("ladders", "attacks"))
    for folder in (ladders, attacks):
        if not (folder / "manifest.json").is_file():
            _build(folder.name.removesuffix(_SUFFIX[world]), _SUFFIX[world])
    # The file of an attack that no topic has statements for is empty.
    written = [path for path in sorted(attacks.glob("*.jsonl")) if path.stat().st_size]
    kept = [path for path in written if not path.stem.endswith("_seen")]
    paths = [ladders / f"{name}.jsonl" for name in LADDERS]
    paths += [path for path in kept if path.stem not in ("normal", "invalid")]
    return list(map(str, paths))


def _build(builder: str, suffix: str) -> None:
    config = f"configs/data/small/{builder}{suffix}.yaml"
    command = [sys.executable, "-m", "data_builders", builder, "--config", config]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise UserError(f"`{' '.join(command[1:])}` failed; run the audit in the repository's root")


def with_pages(documents: Sequence[Document], world: World) -> Iterator[Document]:
    """The documents; the evidence of those without passages is the page of their topic."""
    pages: dict[str, list[Passage]] = {}
    for page in read_records(_PAGES[world], Passage):
        pages.setdefault(page.title, []).append(page)
    for document in documents:
        passages = document.passages or pages.get(document.topic)
        yield document.model_copy(update={"passages": passages})
