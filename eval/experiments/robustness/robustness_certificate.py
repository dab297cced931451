"""Certificates: which true and false statements a column accepts, by family of statements.

A probe (``data_builders probes``) is a text of one statement whose truth is known. It runs through
the column's evidence, selection and verifier, and is accepted if claims are judged and all of them
are supported. A column that takes denied truths for truths is gamed by denials; a column that
accepts no compound statement rejects them with their truth.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from components.certificate import FAMILIES, Acceptance, failing_families
from eval.experiments.robustness.robustness_cells import ALL, Cells, Text, Value

PROBE = "probe"


def certificate_values(cells: Cells) -> Iterator[Value]:
    """``acceptance`` by family (``kind``) and bank of phrases (``variant``), and ``certificate``.

    The value of ``certificate`` is the number of families that are absent or fail, on phrases that
    training may not use; its verdict is ``passes`` or ``fails``.
    """
    for (metric, column), texts in cells.items():
        families: dict[tuple[str, str], list[Text]] = defaultdict(list)
        for text in texts:
            more = text.document.model_extra or {}
            if text.document.kind == PROBE and text.score is not None:
                families[more["probe"], more.get("bank", "plain")].append(text)
        if not families:
            continue
        shared = {"assessor": metric, "selection": column, "generator": ALL}
        certificate = [_acceptance(*family, members) for family, members in families.items()]
        for row in certificate:
            values = {"value": row.share, "ci95": row.bounds, "n": row.n, "failed": row.failed}
            yield (
                shared | {"metric": "acceptance", "kind": row.family, "variant": row.bank} | values
            )
        failing = len(failing_families(certificate))
        row = {"metric": "certificate", "value": failing, "ci95": None, "n": len(FAMILIES)}
        yield shared | row | {"failed": 0, "verdict": "fails" if failing else "passes"}


def passed(values: Sequence[Value]) -> Collection[tuple[str, str]]:
    """The columns whose certificate passes."""
    return {
        (value["assessor"], value["selection"])
        for value in values
        if value["metric"] == "certificate" and value["verdict"] == "passes"
    }


def _acceptance(family: str, bank: str, texts: Sequence[Text]) -> Acceptance:
    judged = [text for text in texts if text.score.judged or text.score.empty_selection]
    accepted = sum(0 < text.score.judged == text.score.supported for text in judged)
    return Acceptance(family, bank, len(judged), accepted, len(texts) - len(judged))
