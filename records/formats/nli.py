"""NLI pairs: SNLI, MultiNLI, ANLI, SICK, FEVER, u-SNLI, and our own format."""

from typing import NamedTuple

from records.formats.judged_claims import (
    document_of_pair,
    parse_judgement,
    required_text,
    short_hash,
)


class Form(NamedTuple):
    """Name and field names of a dataset."""

    name: str
    premise: str
    hypothesis: str
    label: str


# The first form whose fields a row has applies.
_FORMS = (
    Form("fever_hub", "hypothesis", "premise", "fever_gold_label"),  # its premise is the claim
    Form("unli", "premise", "hypothesis", "nli"),
    Form("unli", "pre", "hyp", "nli"),
    Form("hub", "premise", "hypothesis", "label"),
    Form("anli", "context", "hypothesis", "label"),
    Form("fever", "context", "query", "label"),  # FEVER-NLI (Nie et al. 2019)
    Form("snli", "sentence1", "sentence2", "gold_label"),  # SNLI, MultiNLI
    Form("sick", "sentence_A", "sentence_B", "entailment_label"),
    Form("sick", "sentence_A", "sentence_B", "entailment_judgment"),
    Form("sick", "sentence_A", "sentence_B", "label"),
)
_UNLI = {"0": ("NS", "refuted"), "1": ("NS", "not_enough"), "2": ("S", "supported")}
# SICK's label of the swapped pair, e.g. ``B_neutral_A``.
_SWAPPED_RELATION = {"entails": "entailment", "neutral": "neutral", "contradicts": "contradiction"}


def form_of(row: dict) -> Form | None:
    """Return the format of a row by its field names."""
    return next((form for form in _FORMS if set(form[1:]) <= row.keys()), None)


def inference(row: dict, number: int) -> dict | None:
    """Read a premise as the evidence of a hypothesis.

    Numbers as labels are refused, since sets number the classes in different orders. u-SNLI's
    ``nli`` is known: 0 is contradiction, 1 neutral, 2 entailment; its
    probability (``unli``, on the Hub ``label``) becomes the claim's ``share``. Its ``snli-label``
    is ignored because its numbers are undocumented. A pair without a premise is a claim without
    evidence.
    """
    form = form_of(row)
    if form is None:
        return None
    premise = required_text(row, form.premise) if row[form.premise] else ""
    hypothesis = row[form.hypothesis].strip()
    more: dict = {}
    if "nli" in row:
        judgement = parse_judgement(row["nli"], "nli", _UNLI)
        more = _share(row, "unli" if "unli" in row else "label")
    elif "snli-label" in row:
        judgement, more = (None, None), _share(row, "label")
    else:
        judgement = parse_judgement(row[form.label], form.label)
    unit = row.get("group") or row.get("sentence_A_original")
    unit = unit or (short_hash(premise) if premise else hypothesis)
    return document_of_pair(
        row, number, hypothesis, premise, judgement, unit, row.get("source"), **more
    )


def _share(row: dict, field: str) -> dict[str, float]:
    if row.get(field) is None:
        return {}
    try:
        return {"share": float(row[field])}
    except (TypeError, ValueError):
        raise ValueError(f"{field}: expected a probability, got {row[field]!r}") from None


def other_direction(row: dict) -> dict | None:
    """Return SICK's pair with the sentences swapped, if its label is present."""
    if not row.get("entailment_BA"):
        return None
    parts = str(row["entailment_BA"]).split("_")[1:2]
    if not parts or parts[0] not in _SWAPPED_RELATION:
        raise ValueError(f"entailment_BA: expected e.g. B_entails_A, got {row['entailment_BA']!r}")
    unit = row.get("sentence_A_original") or row["sentence_A"]
    pair = {"premise": row["sentence_B"], "hypothesis": row["sentence_A"], "group": unit}
    return pair | {"label": _SWAPPED_RELATION[parts[0]]}
