"""Results of schema 1, whose names held several things, told apart once: here.

A metric was called ``factual_precision:nli.default``, ``kappa:nli~prompted`` or
``true_positive_rate@0.5``, a kind ``A > B``, a group ``appended=4``; what was behind which sign is
known of each experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Row = dict[str, object]
_AGREEMENT = ("agreement", "kappa", "pearson", "spearman", "pearson_of_means")
_TESTS = {"difference": None, "p": "p", "p_holm": "p_holm"}


def in_schema_2(file: object) -> object:
    """What ``results.json`` holds, in schema 2; whatever is not of schema 1 stays as it is."""
    if not isinstance(file, dict) or file.get("schema_version") != 1:
        return file
    rule = _RULES.get(file.get("experiment"), _plain)
    rows = file.get("results")
    if not isinstance(rows, list) or not all(_is_row(row) for row in rows):
        return file
    found = [{**row, **rule(row, rows)} for row in map(_with_bin, rows)]
    for row in found:
        row.pop("components", None)
    return {**file, "schema_version": 2, "results": found}


def _is_row(row: object) -> bool:
    names = ("metric", "kind", "generator")
    return isinstance(row, dict) and all(isinstance(row.get(name), str) for name in names)


def _with_bin(row: Row) -> Row:
    name, equals, value = str(row.get("group", "all")).partition("=")
    return {**row, "group": "all", "bin": value} if name == "bin" and equals else row


def _cut(text: object, sign: str) -> tuple[str, str | None]:
    before, found, behind = str(text).partition(sign)
    return before, behind if found else None


def _plain(row: Row, _: Sequence[Row]) -> Row:
    metric, assessor = _cut(row["metric"], ":")
    return {"metric": metric, "assessor": assessor and assessor.removesuffix(".default")}


def _robustness(row: Row, rows: Sequence[Row]) -> Row:
    _, appended = _cut(row.get("group", "all"), "appended=")
    if appended is None:
        return _plain(row, rows) | {"variant": row.get("components", "trained")}
    return _plain(row, rows) | {"variant": int(appended), "group": "all"}


def _informativeness(row: Row, _: Sequence[Row]) -> Row:
    _, metric = _cut(row["metric"], "difference of ")
    if metric is None:
        return {"variant": row.get("components", "trained")}
    return {"metric": metric, "variant": "trained", "against": "untrained"}


def _decomposition(row: Row, _: Sequence[Row]) -> Row:
    metric, judge = _cut(row["metric"], ":")
    if metric in _AGREEMENT:
        assessor, against = _cut(judge, "~")
        return {"metric": metric, "assessor": assessor, "against": against}
    if metric == "factual_precision_supported_only":
        judge, assessor = _cut(judge, ":")
        assessor = assessor and assessor.removesuffix(".default")
        return {"metric": metric, "variant": judge, "assessor": assessor}
    return {"metric": metric, "assessor": judge and judge.removesuffix(".default")}


def _dfactscore(row: Row, _: Sequence[Row]) -> Row:
    name, source = _cut(row["metric"], "~")
    metric, variant = _cut(name, ":")
    against = source
    if metric in ("pearson", "spearman"):
        of, behind = _cut(variant, ":")
        if of in ("grouped_and_views", "gap_and_views"):
            of, _ = _cut(of, "_and_views")
            of, behind = ("gap", None) if of == "gap" else ("factual_precision", of)
            against = "views"
        metric, variant = f"{metric}_of_{of}", behind
    return {"metric": metric, "variant": variant, "against": against}


def _factreasoner(row: Row, _: Sequence[Row]) -> Row:
    name, metric = _cut(row["metric"], ":")
    if metric is None:
        return {"assessor": row["kind"], "kind": "all"}
    if name == "sd":
        return {"metric": metric, "variant": "sd", "assessor": row["kind"], "kind": "all"}
    assessor, against = _cut(row["kind"], " > ")
    test = {"metric": metric, "variant": _TESTS.get(name, name), "assessor": assessor}
    return test | {"against": against, "kind": "all"}


def _relation_model(row: Row, _: Sequence[Row]) -> Row:
    shared = {"assessor": row["generator"], "generator": "given"}
    if row["metric"] == "auroc_difference":
        assessor, against = _cut(row["generator"], " − ")
        return shared | {"metric": "auroc", "assessor": assessor, "against": against}
    metric, threshold = _cut(row["metric"], "@")
    return shared | {"metric": metric, "variant": threshold and float(threshold)}


def _lss_generation(row: Row, rows: Sequence[Row]) -> Row:
    table, metric = _cut(row["metric"], ":")
    _, stars = _cut(row.get("group", "all"), "rating=")
    found = {"metric": metric, "variant": table}
    if table == "claims" and str(metric).endswith("_difference"):
        first = next(r["generator"] for r in rows if str(r["metric"]).startswith("claims:"))
        found |= {"metric": str(metric).removesuffix("_difference"), "against": first}
    return found if stars is None else found | {"group": f"rating {stars}"}


def _lss_metrics(row: Row, _: Sequence[Row]) -> Row:
    measure, name = _cut(row["metric"], ":")
    metric, form = _cut(name, "(")
    found = {"assessor": metric, "variant": f"({form}"}
    for end, other in (("_difference", "(reference, claim)"), ("_over_shared", "shared words")):
        if measure.endswith(end):
            return found | {"metric": measure.removesuffix(end), "against": other}
    return found | {"metric": measure}


_RULES: dict[object, Callable[[Row, Sequence[Row]], Row]] = {
    "decomposition": _decomposition,
    "dfactscore": _dfactscore,
    "factreasoner": _factreasoner,
    "informativeness": _informativeness,
    "lss_generation": _lss_generation,
    "lss_metrics": _lss_metrics,
    "relation_model": _relation_model,
    "robustness": _robustness,
}
