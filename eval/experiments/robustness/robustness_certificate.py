"""Certificates: which true and false statements a column accepts, by family of statements.

A probe (``data_builders probes``) is a text of one statement whose truth is known. It runs through
the column's evidence, selection and verifier, and is accepted if claims are judged and all of them
are supported. A column that takes denied truths for truths is gamed by denials; a column that
accepts no compound statement rejects them with their truth.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from components.certificate import SEEN, is_within_limit
from components.statistics import clopper_pearson
from eval.experiments.robustness.robustness_cells import ALL, Cells, Text, Value

PROBE = "probe"
_LEVEL = 0.025  # of each end of a 95 % interval


def certificate_values(cells: Cells) -> Iterator[Value]:
    """``acceptance`` by family (``kind``) and bank of phrases (``variant``), and ``certificate``.

    The value of ``certificate`` is the number of families that fail, on phrases that training may
    not use; its verdict is ``passes`` or ``fails``.
    """
    for (metric, column), texts in cells.items():
        families: dict[tuple[str, str], list[Text]] = defaultdict(list)
        for text in texts:
            more = text.document.model_extra or {}
            if text.document.kind == PROBE and text.score is not None:
                families[more["probe"], more.get("bank", "plain")].append(text)
        failing = 0
        shared = {"assessor": metric, "selection": column, "generator": ALL}
        for (family, bank), members in families.items():
            row = _acceptance(members)
            failing += bank != SEEN and not is_within_limit(family, row["value"])
            yield shared | {"metric": "acceptance", "kind": family, "variant": bank} | row
        if families:
            row = {"metric": "certificate", "value": failing, "ci95": None, "n": len(families)}
            yield shared | row | {"failed": 0, "verdict": "fails" if failing else "passes"}


def passed(values: Sequence[Value]) -> Collection[tuple[str, str]]:
    """The columns whose certificate passes."""
    return {
        (value["assessor"], value["selection"])
        for value in values
        if value["metric"] == "certificate" and value["verdict"] == "passes"
    }


def _acceptance(texts: Sequence[Text]) -> Value:
    judged = [text for text in texts if text.score.judged or text.score.empty_selection]
    accepted = sum(0 < text.score.judged == text.score.supported for text in judged)
    n, failed = len(judged), sum(text.failed for text in texts)
    value = accepted / n if n else None
    ci95 = clopper_pearson(accepted, n, _LEVEL) if n else None
    return {"value": value, "ci95": ci95, "n": n, "failed": failed}
