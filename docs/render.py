"""Write the pages of docs/results from their JSON files, the newest measurement first.

python docs/render.py
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from importlib import import_module
from inspect import getdoc, isabstract, signature
from pathlib import Path
from pkgutil import walk_packages
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cli.command import run_command
from records import read_json, write_text

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]


class Table(BaseModel):
    """A table; a cell is Markdown, a value with its 95 % interval is ``0.61 [0.55, 0.67]``."""

    model_config = ConfigDict(extra="forbid")

    title: str
    note: str
    head: Texts
    rows: Annotated[list[list[str]], Field(min_length=1)]


class SavedResults(BaseModel):
    """A question, how it was measured, and the answer.

    Attributes:
        question: heading of the section.
        page: page that has the section.
        about: paragraphs above the tables.
        command: lines of a shell.
        commit: of the code that made the tables.
        date: of the measurement.
        data: what was read.
        n: number of topics, or of other units that the text states.
        seconds: null if the time is unknown, or if an earlier run did part of the work.
        machine: on what the time was measured.
        shows: paragraphs below the tables.
    """

    model_config = ConfigDict(extra="forbid")

    question: Text
    page: Literal["judges", "robustness", "components", "speed"]
    about: Texts
    command: Texts
    commit: Annotated[str, Field(pattern="^[0-9a-f]{7}$")]
    date: date
    data: Text
    n: Text
    seconds: Annotated[float, Field(gt=0)] | None
    machine: str
    tables: Annotated[list[Table], Field(min_length=1)]
    shows: Texts


ROOT = Path(__file__).parents[1]
RESULTS, SCORING = ROOT / "docs/results", ROOT / "docs/scoring.md"
# Folder of eval to the parameters of its stages (eval/stages.py).
STAGES = {
    "decompose": ["documents"],
    "select": ["documents", "claims"],
    "retrieve": ["documents", "claims"],
    "verify": ["documents", "claims", "passages"],
}
# Of other classes of these folders.
BASES = {"PageRetriever", "FromPassages"}
PAPER = re.compile(r"\b\d{4}\.\d{5}\b")
# Name of a page to its first lines.
PAGES = {
    "judges": "Judges: do they agree with people?",
    "robustness": "Robustness: which texts score higher than better ones?",
    "components": "Components: what do the trained parts reach?",
    "speed": "Speed: how long does it take?",
}
NOTE = "Written by `python docs/render.py` from the JSON files of this folder ([form](README.md))."


def results() -> dict[str, SavedResults]:
    """Name of a file to its content, the newest first."""
    files = {path.stem: read_json(path, SavedResults) for path in sorted(RESULTS.glob("*.json"))}
    return dict(sorted(files.items(), key=lambda item: item[1].date, reverse=True))


def pages() -> dict[Path, str]:
    """Path of a page to its text."""
    texts = {page: [f"# {title}", NOTE] for page, title in PAGES.items()}
    for name, saved in results().items():
        texts[saved.page] += _section(name, saved)
    return {RESULTS / f"{page}.md": "\n\n".join(parts) + "\n" for page, parts in texts.items()}


def _section(name: str, saved: SavedResults) -> Iterator[str]:
    yield f"## {saved.question}"
    yield from saved.about
    yield "\n".join(["```", *saved.command, "```"])
    seconds = "–" if saved.seconds is None else f"{saved.seconds:,.0f} s"
    time = ", ".join(filter(None, [seconds, saved.machine]))
    yield (
        f"**Data:** {saved.data} · **n:** {saved.n} · **time:** {time} · "
        f"**code:** {saved.commit}, {saved.date} · [{name}.json]({name}.json)"
    )
    for table in saved.tables:
        yield from _table(table)
    yield from saved.shows


def _table(table: Table) -> Iterable[str]:
    lines = [f"| {' | '.join(cells)} |" for cells in (table.head, *table.rows)]
    rule = "|---" * len(table.head) + "|"
    title = table.title and f"**{table.title}**"
    return filter(None, [title, table.note, "\n".join([lines[0], rule, *lines[1:]])])


def scoring() -> str:
    """The text of scoring.md with its tables of classes."""
    text = SCORING.read_text(encoding="utf-8")
    for folder, parameters in STAGES.items():
        lines = ["| class | what it does | source | example |", "|---|---|---|---|"]
        table = "\n".join([*lines, *map(_line, _classes(f"eval.{folder}", parameters))])
        start, end = f"<!-- classes of eval/{folder} -->", "<!-- end of classes -->"
        before, rest = text.split(start)
        text = "".join([before, start, "\n\n", table, "\n\n", end, rest.partition(end)[2]])
    return text


def _classes(package: str, parameters: list[str]) -> Iterator[type]:
    """Yield the public classes of a package that can be called with these parameters."""
    for info in walk_packages(import_module(package).__path__, f"{package}."):
        module = import_module(info.name)
        for name, kind in vars(module).items():
            is_ours = isinstance(kind, type) and kind.__module__ == info.name
            is_stage = is_ours and "__call__" in dir(kind) and not isabstract(kind)
            if not is_stage or name.startswith("_") or name in BASES:
                continue
            if list(signature(kind.__call__).parameters)[1:] == parameters:
                yield kind


def _line(stage: type) -> str:
    path = f"{stage.__module__}.{stage.__name__}"
    summary = " ".join(getdoc(stage).partition("\n\n")[0].replace("``", "`").split())
    module = getdoc(import_module(stage.__module__))
    papers = PAPER.findall("\n".join([summary, module, getdoc(stage)]))
    configs = (
        config.relative_to(ROOT).as_posix()
        for tier in ("ready", "small", "laptop", "paper")
        for config in sorted(ROOT.glob(f"configs/*/{tier}/*.yaml"))
        if re.search(rf"{re.escape(path)}\b", config.read_text(encoding="utf-8"))
    )
    example = next((f"`{config}`" for config in configs), "–")
    return f"| `{path}` | {summary} | {papers[0] if papers else '–'} | {example} |"


def main() -> None:
    """Write the pages."""
    for path, text in (pages() | {SCORING: scoring()}).items():
        write_text(path, text)


if __name__ == "__main__":
    run_command(main)
