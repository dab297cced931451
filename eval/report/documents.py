"""Excerpts of ``scored.jsonl``: each claim with Core's decision and all verdicts."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from eval.metrics.document import Scored, named
from eval.report.declare import Excerpt, Line, number
from eval.report.highlighted import of_verdict
from eval.stages import Selection
from records import Passage, Verdict, iter_rows, to_bad_input

# Limits per document.
MAX_CLAIMS = 60
MAX_PASSAGES = 20
MAX_CHARACTERS = 600
GOOD = {"supported": True, "not_supported": False, "contradicted": False}


def documents_of(path: Path) -> Iterator[Excerpt]:
    """Yield the documents of a file; none if the file is missing."""
    if path.is_file() and path.stat().st_size:
        for line, row in iter_rows(path):
            try:
                yield _excerpt(Scored.model_validate(row))
            except ValidationError as error:
                raise to_bad_input(f"{path}:{line}", error) from None


def cut(text: str | None, max_characters: int = MAX_CHARACTERS) -> str:
    """Truncate a text; an ellipsis marks the cut."""
    text = text or ""
    return text if len(text) <= max_characters else text[:max_characters].rstrip() + " …"


def _excerpt(scored: Scored) -> Excerpt:
    document, claims = scored.document, scored.claims[:MAX_CLAIMS]
    judged: dict[str, list[Verdict]] = {claim.id: [] for claim in claims}
    for verdict in [*scored.verdicts, *scored.core_verdicts]:
        if verdict.claim in judged:
            judged[verdict.claim].append(verdict)
    used = dict.fromkeys(
        name
        for row in judged.values()
        for verdict in row
        for name in [*(verdict.evidence or []), *(verdict.contradicted_by or [])]
    )
    by_id = {passage.id: passage for passage in scored.passages}
    numbers = {name: f"[{at}]" if name in by_id else f"[{name}]" for at, name in enumerate(used, 1)}
    selections = {selection.claim: selection for selection in scored.selections}
    texts = {claim.id: claim.text for claim in scored.claims}
    lines = []
    for claim in claims:
        mark, good, note = _selected(selections.get(claim.id), texts)
        if claim.failed is not None:
            mark, note = "failed", cut(claim.failed)
        was = f"was: {cut(claim.original)}" if claim.original else ""
        note = "; ".join(filter(None, (note, was)))
        lines.append(Line("", [(cut(claim.text), None)], mark, good, note))
        lines += [_verdict(verdict, claim.text, numbers) for verdict in judged[claim.id]]
    notes = [_passage(numbers[name], by_id[name]) for name in used if name in by_id][:MAX_PASSAGES]
    more = len(scored.claims) - len(claims)
    notes += [f"{more} more claims are not shown."] * bool(more)
    scores = [
        f"{named(score.assessor, score.name) or 'no claims'} {number(score.precision)}"
        + " with Core" * (score.selection == "core")
        for score in scored.scores
    ]
    title = f"{cut(document.topic, 120)}: {', '.join(scores) or 'no score'}"
    tag = f"{document.kind or 'normal'} ({document.generator or 'given'})"
    return Excerpt(title, lines, tag, cut(document.text, 2000), notes)


def _selected(
    selection: Selection | None, texts: Mapping[str, str]
) -> tuple[str, bool | None, str]:
    if selection is None:
        return "", None, ""
    note = f"weight {selection.weight:+.2f}"
    if selection.document_entailment is not None:
        note += f", entailed {selection.document_entailment:.2f}"
    if selection.duplicate_of in texts:
        note = f"of “{cut(texts[selection.duplicate_of], 120)}” {note}"
    return "✓ kept" if selection.selected else f"✗ {selection.reason}", None, note


def _verdict(verdict: Verdict, claim: str, numbers: Mapping[str, str]) -> Line:
    more = verdict.model_extra or {}
    p = "" if verdict.p is None else f"p = {verdict.p:.2f}"
    evidence = "".join(cut(numbers[name], 80) for name in verdict.evidence or [])
    against = "".join(cut(numbers[name], 80) for name in verdict.contradicted_by or [])
    evidence += f" contradicted by {against}" * bool(against)
    relations = [
        f"{row['relation']} by {numbers.get(row['context'], row['context'])} {row['p']:.2f}"
        for row in more.get("relations") or []
        if isinstance(row, dict) and {"relation", "context", "p"} <= row.keys()
    ]
    searched = [
        f"searched: {cut(str(step['query']), 200)}"
        for step in more.get("steps") or []
        if isinstance(step, dict) and "query" in step
    ]
    notes = [p, evidence, cut(verdict.reason), *relations, *searched]
    return Line(
        named(verdict.assessor, verdict.name),
        of_verdict(claim, more.get("kept")),
        verdict.label.replace("_", " "),
        GOOD.get(verdict.label),
        "; ".join(filter(None, notes)),
    )


def _passage(name: str, passage: Passage) -> str:
    return f"{name} {cut(passage.title, 200)} {cut(passage.url, 200)} {cut(passage.text)}"
