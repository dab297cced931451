"""Scored documents in other projects' formats, for use with their scripts.

Each file has the verdicts of one assessor with one selection, under the project's field names. A
failed claim has no decision there; our additional field ``num_failed`` counts failed claims.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eval.metrics.document import Scored
from eval.report.factreasoner_export import factreasoner
from eval.report.factscore_export import dfactscore, factscore
from eval.report.judged_document import build_judged
from records import UserError, atomic_file, json_line

Format = Literal["factscore", "dfactscore", "factreasoner"]

_WRITERS = {write.__name__: write for write in (factscore, dfactscore, factreasoner)}


def write_formats(
    scored: Sequence[Scored], formats: Sequence[Format], output: Path, k: int
) -> list[Path]:
    """Write files in other projects' formats.

    Returns:
        The files, ``FORMAT.ASSESSOR.NAME[.core].json[l]``: one per format, assessor and selection.
        ``dfactscore`` has one for the verdicts named ``grouped``, which includes ``independent``.
    """
    paths = []
    views = list(
        dict.fromkeys((s.assessor, s.name, s.selection) for d in scored for s in d.scores if s.kept)
    )
    for name in formats:
        selected = [view for view in views if name != "dfactscore" or view[1] == "grouped"]
        if views and not selected:
            raise UserError(
                "formats: dfactscore needs the verifier eval.verify.dfactscore.stage.DFActScore"
            )
        for assessor, verdict, selection in selected:
            rows = [build_judged(document, assessor, verdict, selection, k) for document in scored]
            core = ".core" if selection == "core" else ""
            suffix = "jsonl" if name == "factreasoner" else "json"
            path = output / f"{name}.{assessor}.{verdict}{core}.{suffix}"
            with atomic_file(path) as file:
                for row in _WRITERS[name](rows, assessor):
                    file.write(json_line(row) + "\n")
            paths.append(path)
    return paths
