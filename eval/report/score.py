"""The page of ``python -m eval score``."""

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from eval.report.declare import Page, Table, TextTable
from eval.report.terminal import aggregation_notes, format_value
from records import ResultFile

DOCUMENTS = "documents.csv"
# Rows that a page lists.
MAX_DOCUMENTS = 10_000
_ROWS = {"kind": "Texts", "generator": "Generator", "assessor": "Assessor", "selection": "Claims"}
_WHOLE = {"group": "all", "bin": "all", "variant": None}
_SHARE = dict.fromkeys(("kept_share", "respond_ratio", "empty_selection"), "share")


def _documents(file: ResultFile, folder: Path) -> Iterator[TextTable]:
    """All documents of a run, in a table that is folded if it is long."""
    path = folder / DOCUMENTS
    if path.is_file():
        with open(path, encoding="utf-8", newline="") as lines:
            head, *rows = islice(csv.reader(lines), MAX_DOCUMENTS + 1)
        note = f"The rows of {DOCUMENTS}; claims.csv has the verdict on each of their claims."
        yield TextTable("Documents", note, head, rows, folded=True)


TABLES = [
    Table(
        "Factual precision",
        _ROWS,
        metrics={
            "factual_precision": "Precision, macro",
            "factual_precision_micro": "Precision, micro",
            "factscore": "With length penalty",
        },
        where=_WHOLE,
        note="Supported / judged claims: as a mean over texts (macro), over all claims of all "
        "texts (micro), and as a mean with FActScore’s length penalty. Without a kind a text "
        "is “normal”, without a generator “given”.",
    ),
    Table(
        "Bounds with failed claims",
        {"variant": "Failed claims as", **_ROWS},
        metrics={
            "factual_precision": "Precision, macro",
            "factual_precision_micro": "Precision, micro",
            "factscore": "With length penalty",
            "recall_at_k": "Recall@K",
            "f1_at_k": "F1@K",
        },
        where=_WHOLE | {"variant": lambda variant: variant is not None},
        note="The scores if no claim that failed were supported, and if all were: what failed can "
        "move a score no further.",
    ),
    Table(
        "Claims, recall and responses",
        _ROWS,
        metrics={
            "claims": "Claims a text",
            "recall_at_k": "Recall@K",
            "f1_at_k": "F1@K",
            "respond_ratio": "Texts that respond",
            "kept_share": "Claims that Core keeps",
            "empty_selection": "Texts with nothing left",
        },
        where=_WHOLE,
        unit={"claims": "tenth", **_SHARE},
        note="Recall@K is supported claims / K, at most 1; F1@K its harmonic mean with precision. "
        "Texts that do not respond have 0 in both.",
    ),
    Table(
        "Verdicts",
        _ROWS,
        metrics={
            "judged": "Judged",
            "supported": "Supported",
            "contradicted": "Contradicted",
            "undecided": "Undecided",
            "irrelevant": "Irrelevant",
        },
        where=_WHOLE,
        unit="total",
        note="Numbers of claims. Judged ones that are none of the next three are not supported; "
        "irrelevant and failed ones are not judged.",
    ),
    Table(
        "Probabilities",
        _ROWS,
        metrics={
            "graded_precision": "Graded precision",
            "e_measure": "E-measure",
            "binary_entropy": "Entropy",
            "negative_log_p": "−log P",
        },
        where=_WHOLE,
        note="Confidence of the assessor, as means over texts (E in base 10; entropy in "
        "bits; −log P in nats).",
    ),
    Table(
        "Against the claims’ labels",
        _ROWS,
        metrics={
            "brier": "Brier score",
            "ece": "Calibration error",
            "precision_mae": "Error of precision",
        },
        where=_WHOLE,
        note="Brier score and calibration error over the claims of all texts; mean absolute error "
        "of precision over texts.",
    ),
    *(
        Table(
            f"By {name}",
            {field: name.capitalize(), **_ROWS},
            metrics={"factual_precision": "Precision", "kept_share": "Claims that Core keeps"},
            where={field: lambda value: value != "all", "variant": None},
            unit=_SHARE,
            note=f"The same texts by {name} of their topic.",
        )
        for field, name in (("group", "group"), ("bin", "frequency"))
    ),
    _documents,
]


def _summary(file: ResultFile) -> list[str]:
    rows = [
        row
        for row in file.results
        if (row.metric, row.group, row.bin, row.variant)
        == ("factual_precision", "all", "all", None)
    ]
    lines = [
        f"Precision of {row.kind} texts ({row.generator})"
        + (f" by {row.assessor}" if row.assessor else "")
        + f" {'with' if row.selection == 'core' else 'without'} Core: {format_value(row)}."
        for row in rows
    ]
    return [*lines, *aggregation_notes(file)]


PAGE = Page(
    "What share of the claims is supported?",
    "The share of the texts’ claims that the evidence supports, of all claims and of those that "
    "Core selects. n counts topics; brackets hold 95 % bootstrap intervals over topics. What "
    "failed (a sentence that could not be decomposed, a claim without evidence, an answer that "
    "could not be read) is counted next to a value, and inside it only with --failed wrong.",
    TABLES,
    summary=_summary,
    documents=True,
)
