"""D-FActScore's results (2402.05629)."""

import json
from collections.abc import Sequence

from components.statistics import average
from eval.exports.factscore_export import factscore
from eval.exports.judged_document import Judged, build_judged
from records import json_line


def dfactscore(rows: Sequence[Judged], assessor: str) -> list[str]:
    """D-FActScore's ``<in>_factscore_output.json`` (2402.05629): FActScore's with groups beside.

    ``nan`` counts texts that respond and have no D-FActScore; ``num_groups`` is the mean over texts
    whose groups are all known. ``global_score`` has FActScore's
    length penalty by the number of claims; the released code counts groups for claims there.
    """
    alone = [
        build_judged(row.scored, assessor, "independent", row.score.selection, row.k)
        for row in rows
    ]
    (plain,) = factscore(alone, assessor)
    groups = [{verdict.group for _, verdict in row.claims} for row in rows]
    people = [{v.entity for _, v in row.decided() if v.label == "supported"} for row in alone]
    own = [row.score for row in rows if row.score.responded]
    scored = [score for score in own if score.precision is not None]
    return [
        json_line(
            json.loads(plain)
            | {
                "decisions": [_decisions(row) for row in alone],
                "num_supporting_topics": average(
                    [len(p - {None}) for p, row in zip(people, alone, strict=True) if row.claims]
                ),
                "global_score": average([score.factscore or 0.0 for score in scored]),
                "init_global_score": average([score.precision or 0.0 for score in scored]),
                "global_decisions": [_decisions(row) for row in rows],
                "num_groups": average(
                    [len(found) for found in groups if found and None not in found]
                ),
                "nan": float(len(own) - len(scored)),
                "num_failed": sum(row.score.failed for row in rows),
            }
        )
    ]


def _decisions(row: Judged) -> list[dict] | None:
    decided = [(claim, verdict, verdict.label == "supported") for claim, verdict in row.decided()]
    found = [
        {
            "atom": claim.text,
            "is_supported": supported,
            "supporting_topic": verdict.entity if supported else None,
        }
        for claim, verdict, supported in decided
    ]
    return (found or None) if row.score.responded else None
