"""Scored documents as other projects write them, so that their scripts and tables can go on.

Each writes the verdicts of one assessor with one selection; field names are the projects' own.
What they have no room for stays out: a claim that failed has no decision there, and its number
stands in a field of ours, ``num_failed``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from eval.exports.dfactscore_export import dfactscore
from eval.exports.factreasoner_export import factreasoner
from eval.exports.factscore_export import factscore
from eval.exports.judged_document import Judged, build_judged
from eval.exports.safe_export import safe
from eval.exports.veriscore_export import veriscore
from eval.metrics.document import Scored
from records import UserError, atomic_file

Format = Literal["factscore", "dfactscore", "veriscore", "safe", "factreasoner"]

_WRITERS: dict[Format, tuple[Callable[[Sequence[Judged], str], list[str]], str]] = {
    "factscore": (factscore, "json"),
    "dfactscore": (dfactscore, "json"),
    "veriscore": (veriscore, "jsonl"),
    "safe": (safe, "json"),
    "factreasoner": (factreasoner, "jsonl"),
}


def write_formats(
    scored: Sequence[Scored], formats: Sequence[Format], output: Path, k: int
) -> list[Path]:
    """Write the files of other projects.

    Returns:
        The files, ``FORMAT.ASSESSOR.NAME[.core].json[l]``: one a format, assessor and selection;
        ``dfactscore`` one for the verdicts named ``grouped``, with the ``independent`` ones in it.
    """
    paths = []
    views = list(
        dict.fromkeys((s.assessor, s.name, s.selection) for d in scored for s in d.scores if s.kept)
    )
    for name in formats:
        write, suffix = _WRITERS[name]
        own = [view for view in views if name != "dfactscore" or view[1] == "grouped"]
        if views and not own:
            raise UserError(
                "formats: dfactscore needs the verifier eval.verify.dfactscore.stage.DFActScore"
            )
        for assessor, verdict, selection in own:
            rows = [build_judged(document, assessor, verdict, selection, k) for document in scored]
            core = ".core" if selection == "core" else ""
            path = output / f"{name}.{assessor}.{verdict}{core}.{suffix}"
            with atomic_file(path) as file:
                for line in write(rows, assessor):
                    file.write(line + "\n")
            paths.append(path)
    return paths
