"""What was changed, claim by claim and in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from data_builders.written.corruption.corrupters import STILL_TRUE, Change
from data_builders.written.corruption.curves import Made
from data_builders.written.corruption.sources import labels_of


def changes_of(made: Made) -> Iterator[dict]:
    """Each claim of a document: what it was, what became of it, and how it got into the text."""
    for claim, how in zip(made.source.claims, made.merged.how, strict=True):
        drawn = made.change(claim)
        change = drawn or Change()
        yield {
            "document": made.source.id,
            "claim": claim.id,
            "topic": made.source.topic,
            "original": claim.text,
            "text": made.text(claim),
            "label": "NS" if change.text else claim.label or "",
            "drawn": drawn is not None,
            "reason": change.reason or "",
            "refused": change.refused or "",
            "kind": change.kind or "",
            "old": change.old or "",
            "new": change.new or "",
            "in_text": how,
        }


def statistics(every: Sequence[Made]) -> dict[str, object]:
    """How many claims there were, were to be changed and were, and how they were merged.

    ``invalid`` counts changes that were made and are not false; their claims stayed as they were.
    """
    drawn = [change for made in every for change in made.changes.values()]
    reasons = Counter(change.reason for change in drawn if change.text is None)
    kinds = Counter(change.kind or "by a model" for change in drawn if change.text is not None)
    changed = [any(c.text is not None for c in made.changes.values()) for made in every]
    failed = Counter(made.merged.failed for made in every if made.merged.failed is not None)
    return {
        "documents": len(every),
        "documents_without_a_supported_claim": sum(not made.source.supported for made in every),
        "documents_without_a_change": len(every) - sum(changed),
        "claims": sum(len(made.source.claims) for made in every),
        "claims_by_label": labels_of([made.source for made in every]),
        "to_be_changed": len(drawn),
        "changed": sum(kinds.values()),
        "invalid": sum(n for why, n in reasons.items() if why.startswith(STILL_TRUE)),
        "changed_by_kind": dict(sorted(kinds.items())),
        "stayed_by_reason": dict(sorted(reasons.items())),
        "claims_in_text": dict(sorted(Counter(h for m in every for h in m.merged.how).items())),
        "texts_not_merged_by_reason": dict(sorted(failed.items())),
    }
