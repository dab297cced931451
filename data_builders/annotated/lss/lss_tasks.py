"""Convert LSS annotations to Label Studio tasks, and back."""

import json
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError

from components.words import Word, align, join_words, split_words
from records import Annotation, LssExample, json_line

FORM = Path(__file__).parent

FLAGS = ("unrelated", "difficult")
CONTROLS = ("removed", "lss_star", "rating", "flags", "imported")


class Unreadable(ValueError):
    """An unusable annotation; the message is the reason for dropping it."""


def task_data(example: LssExample) -> dict:
    """Build a task's ``data``: displayed fields, the claim's words, and the rest of the record."""
    fields = example.model_dump(mode="json", exclude={"annotations"}, exclude_none=True)
    return {
        "claim": fields.pop("claim"),
        "reference": fields.pop("reference"),
        # The form requires these two; the record may lack them.
        "title": str(fields.get("title", "")),
        "section": str(fields.get("section", "")),
        "words": [word.text for word in split_words(example.claim)],
        "record": fields,
    }


def example_of(data: dict, annotations: list[Annotation]) -> LssExample:
    """Build the record of a task's ``data`` with its annotations."""
    texts = {name: data[name] for name in ("reference", "claim") if name in data}
    return LssExample.model_validate(
        {**texts, "annotations": annotations, **(data.get("record") or {})}
    )


def to_result(annotation: Annotation, claim: str) -> list[dict]:
    """Convert an annotation to the items of Label Studio's ``result``.

    An LSS that is not a subsequence of the claim's words marks nothing; ``imported`` has it.
    """
    values = _values(annotation, claim)
    items = [
        ("removed", "labels", {"start": s, "end": e, "text": claim[s:e], "labels": ["removed"]})
        for s, e in values["removed"]
    ]
    if values["lss_star"] is not None:
        items.append(("lss_star", "textarea", {"text": [values["lss_star"]]}))
    if values["rating"] is not None:
        items.append(("rating", "rating", {"rating": values["rating"]}))
    if values["flags"]:
        items.append(("flags", "choices", {"choices": values["flags"]}))
    items.append(("imported", "textarea", {"text": [json_line(annotation)]}))
    return [
        {"id": f"{name}{i}", "from_name": name, "to_name": "claim", "type": kind, "value": value}
        for i, (name, kind, value) in enumerate(items)
    ]


def _values(annotation: Annotation, claim: str) -> dict:
    words = split_words(claim)
    keep = align(annotation.lss, words)
    extra = annotation.model_extra or {}
    return {
        "removed": _runs(words, keep) if keep is not None else [],
        "lss_star": annotation.lss_star,
        "rating": None if annotation.rating is None else round(annotation.rating),
        "flags": [flag for flag in FLAGS if extra.get(flag)],
    }


def _runs(words: list[Word], keep: list[bool]) -> list[tuple[int, int]]:
    runs = groupby(zip(words, keep, strict=True), key=lambda pair: pair[1])
    removed = [[word for word, _ in run] for kept, run in runs if not kept]
    return [(run[0].start, run[-1].end) for run in removed]


def from_values(values: dict[str, list], claim: str, annotator: str | None) -> Annotation:
    """Build the annotation that the controls show.

    An imported annotation is returned unchanged, unless an annotator has changed the controls.

    Raises:
        Unreadable: no answer, or marks that do not fit the claim.
    """
    seen = {
        "removed": _merged([to_span(value, claim) for value in values.get("removed", [])], claim),
        "lss_star": next(iter(values.get("lss_star", [])), None),
        "rating": next(iter(values.get("rating", [])), None),
        "flags": [flag for flag in FLAGS if flag in values.get("flags", [])],
    }
    imported = _imported(values)
    if imported is not None and _values(imported, claim) == seen:
        return imported
    if not any(values.get(control) for control in CONTROLS[:-1]):
        raise Unreadable("annotation without any answer")
    words = split_words(claim)
    removed = seen["removed"]
    unrelated = "unrelated" in seen["flags"] and not removed
    keep = [not unrelated and not any(w.start < e and s < w.end for s, e in removed) for w in words]
    name = annotator or (imported and (imported.model_extra or {}).get("annotator"))
    try:
        return Annotation(
            lss=join_words(claim, words, keep),
            lss_star=seen["lss_star"],
            rating=seen["rating"],
            **({"annotator": name} if name else {}),
            **{flag: True for flag in seen["flags"]},
        )
    except ValidationError:
        raise Unreadable("annotation whose rating is not from 1 to 5") from None


def _imported(values: dict[str, list]) -> Annotation | None:
    try:
        return Annotation.model_validate(json.loads(values["imported"][0]))
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def to_span(value: dict, claim: str) -> tuple[int, int]:
    try:
        start, end = int(value["start"]), int(value["end"])
    except (KeyError, TypeError, ValueError):
        raise Unreadable("mark without start and end") from None
    text = value.get("text")
    units = claim.encode("utf-16-le")  # Label Studio may count UTF-16 units: two per emoji
    before, mark = units[: 2 * start], units[2 * start : 2 * end]
    shifted = len(before.decode("utf-16-le", "ignore"))
    spans = [(start, end), (shifted, shifted + len(mark.decode("utf-16-le", "ignore")))]
    for start, end in spans if isinstance(text, str) else spans[:1]:
        fits = 0 <= start < end <= len(claim)
        if fits and (not isinstance(text, str) or text.split() == claim[start:end].split()):
            return start, end
    raise Unreadable("mark whose position does not match its text")


def _merged(spans: list[tuple[int, int]], claim: str) -> list[tuple[int, int]]:
    words = split_words(claim)
    return _runs(words, [not any(w.start < e and s < w.end for s, e in spans) for w in words])


def to_task(example: LssExample, existing: str = "none") -> dict:
    """Build a task to import, with annotations as ``predictions``, ``annotations`` or ``none``."""
    task: dict = {"data": task_data(example)}
    if existing == "none":
        return task
    made = []
    for number, annotation in enumerate(example.annotations):
        result = to_result(annotation, example.claim)
        if existing == "annotations":
            # Without the flag, Label Studio treats imported annotations as ground truth.
            made.append({"result": result, "was_cancelled": False, "ground_truth": False})
        else:
            name = (annotation.model_extra or {}).get("annotator") or f"annotation {number + 1}"
            kept = [item for item in result if item["from_name"] != "imported"]
            made.append({"result": kept, "model_version": str(name)})
    return {**task, existing: made}
