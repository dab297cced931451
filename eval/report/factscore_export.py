"""The output formats of FActScore (2305.14251) and D-FActScore (2402.05629)."""

from collections.abc import Sequence

from components.statistics import average
from eval.report.judged_document import Judged, build_judged


def factscore(rows: Sequence[Judged], assessor: str) -> list[dict]:
    """Return FActScore's ``<in>_factscore_output.json``: one object for all texts."""
    decisions = [
        [{"atom": c.text, "is_supported": v.label == "supported"} for c, v in row.decided()] or None
        if row.score.responded
        else None
        for row in rows
    ]
    answered = [row for row in decisions if row is not None]
    scores = [row.score.factscore for row in rows if row.score.factscore is not None]
    plain = [row.score.precision for row in rows if row.score.precision is not None]
    return [
        {
            "score": average(scores),
            "respond_ratio": average([float(row.score.responded) for row in rows]),
            "decisions": decisions,
            "num_facts_per_response": average([len(row) for row in answered]),
            "init_score": average(plain),
            "num_failed": sum(row.score.failed for row in rows),
        }
    ]


def dfactscore(rows: Sequence[Judged], assessor: str) -> list[dict]:
    """Return D-FActScore's ``<in>_factscore_output.json``: FActScore's, plus groups.

    ``nan`` counts texts that respond but have no D-FActScore; ``num_groups`` is the mean over texts
    whose groups are all known. ``global_score`` has FActScore's length penalty by the number of
    claims; the released code counts groups there instead of claims.
    """
    independent = [
        build_judged(row.scored, assessor, "independent", row.score.selection, row.k)
        for row in rows
    ]
    (plain,) = factscore(independent, assessor)
    groups = [{verdict.group for _, verdict in row.claims} for row in rows]
    people = [
        {verdict.entity for _, verdict in row.decided() if verdict.label == "supported"} - {None}
        for row in independent
        if row.claims
    ]
    responded = [row.score for row in rows if row.score.responded]
    scored = [score for score in responded if score.precision is not None]
    return [
        plain
        | {
            "decisions": [_decisions(row) for row in independent],
            "num_supporting_topics": average([len(names) for names in people]),
            "global_score": average([score.factscore or 0.0 for score in scored]),
            "init_global_score": average([score.precision or 0.0 for score in scored]),
            "global_decisions": [_decisions(row) for row in rows],
            "num_groups": average([len(names) for names in groups if names and None not in names]),
            "nan": float(len(responded) - len(scored)),
            "num_failed": sum(row.score.failed for row in rows),
        }
    ]


def _decisions(row: Judged) -> list[dict] | None:
    decisions = [
        {
            "atom": claim.text,
            "is_supported": verdict.label == "supported",
            "supporting_topic": verdict.entity if verdict.label == "supported" else None,
        }
        for claim, verdict in row.decided()
    ]
    return decisions or None if row.score.responded else None
