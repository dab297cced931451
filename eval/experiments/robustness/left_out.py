"""What was asked for and is not in the results, a line each: nothing is skipped silently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from eval.experiments.robustness.grid import NONE
from eval.experiments.robustness.lookup import CLEAN
from eval.experiments.robustness.values import ALL, Value, twin_of
from records import Document

# The fields of a result that say of which texts it is, where they are of all.
_WHOLE = ("generator", "bin", "group")


def of_kinds(
    every: Sequence[Document], kept: Sequence[Document], against: str, drawn: Collection[str] | None
) -> Iterator[str]:
    """Kinds of which no text is scored, or few that can be compared with honest ones.

    Args:
        every: the texts of the files, of all kinds that are asked for.
        kept: those that are scored.
        against: kind of the honest texts.
        drawn: the topics that are drawn; ``None`` where all are scored.
    """
    topics: dict[str, set[str]] = {document.kind: set() for document in every}
    for document in kept:
        topics[document.kind].add(document.topic)
    honest = topics.pop(against)
    originals = {document.id for document in kept if document.kind == against}
    for kind, own in topics.items():
        shared = len(own & honest)
        if not own:
            count = sum(document.kind == kind for document in every)
            yield f"texts: {kind}: none of {count} texts is of the topics and generators asked for"
        elif shared < 2:
            yield (
                f"gain: {kind}: shares {shared} of {len(own)} topics with {against} "
                "texts, so that all are compared with all, unpaired"
            )
        elif drawn is not None and shared < len(honest):
            yield f"texts: {kind}: on {shared} of the {len(honest)} topics that are drawn"
        texts = [document for document in kept if document.kind == kind]
        paired = [d for d in texts if (d.model_extra or {}).get("clean") in originals]
        # Only with such pairs of two topics are texts compared with what they were made of.
        if len({d.topic for d in paired}) > 1 and len(paired) < len(texts):
            yield (
                f"gain: {kind}: {len(texts) - len(paired)} of {len(texts)} texts do not count, as "
                "the honest text that they were made of (`clean`) is not scored"
            )


def groups_are_topics(kept: Sequence[Document]) -> bool:
    """Whether each topic has a group of its own, which keeps splits apart and says no more."""
    groups = {document.group for document in kept} - {None}
    return len(groups) >= len({d.topic for d in kept if d.group is not None})


def of_strata(kept: Sequence[Document], by: Sequence[str]) -> Iterator[str]:
    """What results were to be given by, and texts do not differ in, or each topic alone has."""
    for field in by:
        own = {getattr(document, field) for document in kept} - {None}
        if len(own) < 2:
            yield f"by: {field}: the texts have {'one value' if own else 'no value'} of it"
        elif field == "group" and groups_are_topics(kept):
            yield "by: group: each topic has one of its own"


def of_options(
    kept: Sequence[Document],
    defences: Collection[str],
    targets: Sequence[Mapping],
    rising: Sequence[str],
) -> Iterator[str]:
    """Targets of kinds and defences that the run does not have, and rising kinds without a text."""
    kinds = {document.kind for document in kept}
    for kind in rising:
        if kind not in kinds:
            yield f"rising: the run has no kind {kind!r}"
    for target in targets:
        for field, known in (("kind", kinds), ("selection", defences)):
            if target[field] not in known:
                yield f"targets: {target['kind']}: the run has no {field} {target[field]!r}"


def of_curve(name: str, texts: Sequence[Document]) -> Iterator[str]:
    """Twins without a corrupted text at every k: a curve has the same texts at each."""
    by_twin: dict[str, set[int]] = defaultdict(set)
    for document in texts:
        twin, k = twin_of(document)
        by_twin[twin] |= set() if k is None else {k}
    every = set().union(*by_twin.values())
    lacking = sum(own != every for own in by_twin.values())
    if lacking:
        told = ", ".join(map(str, sorted(every)))
        yield f"curves: {name}: {lacking} of {len(by_twin)} texts lack some k of {told}"


def of_values(
    values: Sequence[Value], topics: Mapping[str, int], controls: Collection[str]
) -> Iterator[str]:
    """Gains without a value or an interval, and curves of fewer topics than were asked for.

    Args:
        values: fields of results.
        topics: curve to its number of topics.
        controls: metrics and defences that nothing is said of.
    """
    lacking: dict[str, list[str]] = defaultdict(list)
    for row in values:
        whole = all(row.get(field, ALL) == ALL for field in _WHOLE)
        place = (row.get("assessor"), row.get("selection"))
        if not whole or {*place} & {*controls}:
            continue
        shown = f"{place[0]}{'' if place[1] == NONE else f' with {place[1]}'}"
        if row["metric"] in ("gain", "rise") and row["against"] != CLEAN:
            what = f"{row['metric']}: {row['kind']}"
            if row["value"] is None:
                lacking[f"{what}: no text could be judged by"].append(shown)
            elif row["ci95"] is None:
                lacking[f"{what}: too few topics for an interval by"].append(shown)
        if row["metric"] == "break_even" and row["n"] < topics[row["kind"]]:
            told = f"curves: {row['kind']}: {row['n']} of {topics[row['kind']]} topics count by"
            lacking[told].append(shown)
    for told, where in lacking.items():
        why = ", of the others a text at some k has no score" * told.startswith("curves")
        yield f"{told} {', '.join(where)}{why}"
