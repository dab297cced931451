"""A measured answer to one question, as a file of ``docs/results``.

``python -m eval experiment … --save_to FILE`` writes it; ``python docs/render.py`` makes pages of
all files and checks their fields.
"""

from datetime import date
from pathlib import Path

from components.code import describe_code
from eval.report.declare import Page
from eval.report.render import tables_of
from records import ResultFile, escape_markdown, write_json
from records.reading import load_json

# Fields that are edited by hand and that a repeated measurement keeps.
_EDITED = ("question", "page", "about", "machine", "shows")


def save_results(
    path: Path, page: Page, file: ResultFile, folder: Path, command: str, seconds: float | None
) -> None:
    """Write the unfolded tables of a run; of an existing file, those whose titles it has.

    Args:
        page: declaration of the tables.
        folder: the run's folder.
        command: the last line of the file's commands.
        seconds: time of the whole run, if known.
    """
    tables = [
        {
            "title": table.title,
            "note": table.note,
            "head": list(table.head),
            "rows": [[escape_markdown(str(cell)) for cell in row] for row in table.rows],
        }
        for table in tables_of(page, file, folder)
        if table.rows and not table.folded
    ]
    folders = {str(Path(name).parent) for name in file.provenance["data"]}
    saved = {
        "question": page.question,
        "page": None,
        "about": [page.about],
        "command": [command],
        "commit": describe_code([])["commit"][:7],
        "date": str(date.fromtimestamp((folder / "results.json").stat().st_mtime)),
        "data": ", ".join(sorted({*folders, *file.provenance["checkpoints"]})),
        "n": f"{max(row.n for row in file.results):,}",
        "seconds": seconds,
        "machine": "",
        "tables": tables,
        "shows": list(page.summary(file)),
    }
    if path.is_file():
        earlier = load_json(path)
        titles = [table["title"] for table in earlier["tables"]]
        saved |= {name: earlier[name] for name in _EDITED}
        saved["command"] = [*earlier["command"][:-1], command]
        saved["tables"] = [table for table in tables if table["title"] in titles] or tables
    write_json(path, saved)
