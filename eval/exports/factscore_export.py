"""FActScore's output format (2305.14251)."""

from collections.abc import Sequence

from components.statistics import average
from eval.exports.judged_document import Judged
from records import json_line


def factscore(rows: Sequence[Judged], assessor: str) -> list[str]:
    """Write FActScore's ``<in>_factscore_output.json``: one object for all texts."""
    decisions = [
        [{"atom": c.text, "is_supported": v.label == "supported"} for c, v in row.decided()] or None
        if row.score.responded
        else None
        for row in rows
    ]
    scores = [row.score.factscore for row in rows if row.score.factscore is not None]
    plain = [row.score.precision for row in rows if row.score.precision is not None]
    answered = [row for row in decisions if row is not None]
    return [
        json_line(
            {
                "score": average(scores),
                "respond_ratio": average([float(row.score.responded) for row in rows]),
                "decisions": decisions,
                "num_facts_per_response": average([len(row) for row in answered]),
                "init_score": average(plain),
                "num_failed": sum(row.score.failed for row in rows),
            }
        )
    ]
