"""Write the pages of docs/results from their JSON files, the newest measurement first.

python docs/render.py
"""

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
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


RESULTS = Path(__file__).parent / "results"
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


def main() -> None:
    """Write the pages."""
    for path, text in pages().items():
        write_text(path, text)


if __name__ == "__main__":
    run_command(main)
