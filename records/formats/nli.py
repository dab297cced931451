"""Pairs of premise and hypothesis: SNLI, MultiNLI, ANLI, SICK, FEVER, u-SNLI, and ours."""

from typing import NamedTuple

from records.formats.judged_claims import (
    document_of_pair,
    parse_judgement,
    required_text,
    short_hash,
)


class Form(NamedTuple):
    """A set's name and its fields."""

    name: str
    premise: str
    hypothesis: str
    label: str


# The first whose fields a row has is its form.
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
# SNLI, MultiNLI and ANLI on the Hub; u-SNLI counts the other way round.
_HUB = {
    "0": ("S", "supported"), "1": ("NS", "not_enough"), "2": ("NS", "refuted"),
    "-1": (None, "unknown"),
}  # fmt: skip
_UNLI = {"0": ("NS", "refuted"), "1": ("NS", "not_enough"), "2": ("S", "supported")}
# SICK's label of the other direction, e.g. ``B_neutral_A``.
_BACK = {"entails": "entailment", "neutral": "neutral", "contradicts": "contradiction"}


def form_of(row: dict) -> Form | None:
    """The form of a row, by its field names."""
    return next((form for form in _FORMS if set(form[1:]) <= row.keys()), None)


def inference(row: dict, number: int) -> dict | None:
    """A premise as the evidence of a hypothesis.

    Numbers as labels are the Hub's (0 entailment); u-SNLI's ``nli`` counts the other way round, and
    its probability (``unli``) becomes the claim's ``share``. In its copy on the Hub that is called
    ``label``; what the numbers of its ``snli-label`` mean is told nowhere, so they are not read. A
    pair without a premise is a claim without evidence.
    """
    form = form_of(row)
    if form is None:
        return None
    premise = required_text(row, form.premise) if row[form.premise] else ""
    hypothesis = row[form.hypothesis].strip()
    more: dict = {}
    if "nli" in row:
        meant = parse_judgement(row["nli"], "nli", _UNLI)
        more = _share(row, "unli" if "unli" in row else "label")
    elif "snli-label" in row:
        meant, more = (None, None), _share(row, "label")
    else:
        label = row[form.label]
        numbered = str(label).removesuffix(".0").lstrip("-").isdigit()
        meant = parse_judgement(label, form.label, *([_HUB] if numbered else []))
    unit = row.get("group") or row.get("sentence_A_original")
    unit = unit or (short_hash(premise) if premise else hypothesis)
    return document_of_pair(
        row, number, hypothesis, premise, meant, unit, row.get("source"), **more
    )


def _share(row: dict, field: str) -> dict[str, float]:
    if row.get(field) is None:
        return {}
    try:
        return {"share": float(row[field])}
    except (TypeError, ValueError):
        raise ValueError(f"{field}: expected a probability, got {row[field]!r}") from None


def other_direction(row: dict) -> dict | None:
    """SICK's pair of the sentences the other way round, where its table has the label of that."""
    if not row.get("entailment_BA"):
        return None
    word = str(row["entailment_BA"]).split("_")[1:2]
    if not word or word[0] not in _BACK:
        raise ValueError(f"entailment_BA: expected e.g. B_entails_A, got {row['entailment_BA']!r}")
    unit = row.get("sentence_A_original") or row["sentence_A"]
    pair = {"premise": row["sentence_B"], "hypothesis": row["sentence_A"], "group": unit}
    return pair | {"label": _BACK[word[0]]}
