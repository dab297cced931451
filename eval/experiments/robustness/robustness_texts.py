"""The texts of a robustness run: reading, drawing topics, curves, and what does not count."""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, NonNegativeInt, ValidationError

from eval.experiments.experiment import Half, half_of
from eval.run.run import check_ids
from records import BadInput, Document, UserError, read_records, to_bad_input


class _Place(BaseModel):
    """Where a corrupted text is on its curve; a table's column may have ``k`` as text."""

    clean: str
    k: NonNegativeInt


def twin_of(document: Document) -> tuple[str, int | None]:
    """The id of a text's clean twin, and how many sentences are behind it; ``None`` of the twin."""
    more = document.model_extra or {}
    return (document.id, None) if more.get("k") is None else (more["clean"], more["k"])


def read_texts(path: str, kind: str | None, files: int) -> tuple[list[Document], str]:
    """The texts of a file, and a line on its rows of other kinds, which are left out.

    Args:
        kind: of which texts are read; ``None`` where each row has its kind.
        files: how many there are of this kind: where several have no generator, they are told apart
            by their names.
    """
    texts, others = [], Counter()
    for number, document in enumerate(read_records(path, Document), 1):
        row_kind = document.kind or kind
        if row_kind is None:
            say = "say it for the file, as texts: {normal: [FILE]}"
            raise BadInput([f"{path}:{number}: kind: field required; {say}"])
        if kind is not None and row_kind != kind:
            others[row_kind] += 1
            continue
        generator = document.generator or (Path(path).stem if files > 1 else "given")
        update = {"kind": row_kind, "generator": generator}
        texts.append((number, document.model_copy(update=update)))
    check_ids(path, texts)
    if not texts:
        raise UserError(f"{path}: no text of kind {kind!r}")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(others.items()))
    skipped = f"{path}: {counts} (the file is configured for {kind})" if others else ""
    return [document for _, document in texts], skipped


def with_distinct_ids(files: Sequence[tuple[str, Sequence[Document]]]) -> list[Document]:
    """The texts of all files; an id that several have gets the number of its file in front.

    A text that was made of one of the same file (``clean``) goes on naming it.

    Args:
        files: path and texts of each; a path may occur again with texts of another kind.
    """
    times = Counter(document.id for _, texts in files for document in texts)
    every = [
        (path, document, f"{number}:{document.id}" if times[document.id] > 1 else document.id)
        for number, (path, texts) in enumerate(files)
        for document in texts
    ]
    # Reversed: where a path occurs twice, the first file's texts are named.
    ids = {(path, document.id): distinct for path, document, distinct in reversed(every)}
    renamed = []
    for path, document, distinct in every:
        clean = ids.get((path, str((document.model_extra or {}).get("clean"))))
        update = {"id": distinct} if clean is None else {"id": distinct, "clean": clean}
        renamed.append(document.model_copy(update=update))
    return renamed


def draw_topics(
    documents: Sequence[Document], against: str, half: Half | None, most: int, seed: int
) -> set[str]:
    """The topics that are scored: of those that honest texts have, and of the others.

    Where honest texts have it, an attack can be compared with them on it, the better the more
    kinds and generators have it: those with most of them come first. Others are drawn of the
    attacks that are hardly on any of these, since only what a defence keeps of them counts.

    Args:
        against: kind of the honest texts.
        most: topics of each of the two sorts; 0 for all.
    """
    cells: dict[tuple, set[str]] = defaultdict(set)
    for document in documents:
        if not half or half_of(document.topic, seed) == half:
            cells[document.kind, document.generator].add(document.topic)
    honest = {d.topic for d in documents if d.kind == against}
    shared = honest & set().union(*cells.values())
    if honest and not shared:
        raise UserError(f"half: none of {len(honest)} topics is in the half {half!r}")
    if not most:
        return set().union(*cells.values())
    apart = [topics - honest for topics in cells.values() if len(topics & honest) < 2]
    drawn: set[str] = set()
    for names in (shared, set().union(*apart)):
        ranked = random.Random(seed).sample(sorted(names), len(names))
        ranked.sort(key=lambda topic: -sum(topic in topics for topics in cells.values()))
        drawn |= set(ranked[:most])
    return drawn


def read_curve(name: str, files: Sequence[str], topics: set[str] | None) -> list[Document]:
    """Corrupted texts and their clean twins, which each of them needs.

    Args:
        topics: those that are drawn; ``None`` for all.
    """
    texts = [d for path in files for d in _of_curve(path) if topics is None or d.topic in topics]
    if not texts:
        raise UserError(f"curves: {name}: no text of the topics that are scored")
    twins = {d.id for d in texts if twin_of(d)[1] is None}
    lost = sorted({twin_of(d)[0] for d in texts} - twins)
    if lost:
        raise UserError(
            f"curves: {name}: no clean twin {lost[0]!r} in {', '.join(files)}; "
            "`data_builders corruption` writes them"
        )
    (twin, k), times = Counter(map(twin_of, texts)).most_common(1)[0]
    if times > 1:
        what = f"have the id {twin!r}" if k is None else f"of {twin!r} have k = {k}"
        raise UserError(
            f"curves: {name}: {times} texts {what}; give one, and another adversary's texts as "
            "a curve of their own"
        )
    if len(texts) == len(twins):
        raise UserError(f"curves: {name}: no row has `clean` and `k`; give corrupted texts")
    return texts


def _of_curve(path: str) -> Iterator[Document]:
    for number, document in enumerate(read_records(path, Document), 1):
        more = document.model_extra or {}
        place = {name: more[name] for name in ("clean", "k") if more.get(name) is not None}
        if place:
            try:
                place = dict(_Place.model_validate(place))
            except ValidationError as error:
                raise to_bad_input(f"{path}:{number}", error) from None
        yield document.model_copy(update=place)


# What does not count: nothing is skipped silently


def kinds_that_do_not_count(
    every: Iterable[Document], kept: Sequence[Document], against: str, drawn: Collection[str] | None
) -> Iterator[str]:
    """Kinds of which no text is scored, or few that can be compared with honest ones.

    Args:
        every: the texts of the files.
        kept: those that are scored.
        against: kind of the honest texts.
        drawn: the topics that are drawn; ``None`` where all are scored.
    """
    read = Counter(document.kind for document in every)
    topics: dict[str, set[str]] = {kind: set() for kind in read}
    for document in kept:
        topics[document.kind].add(document.topic)
    honest = topics.pop(against)
    originals = {document.id for document in kept if document.kind == against}
    for kind, names in topics.items():
        shared = len(names & honest)
        if not names:
            yield f"texts: {kind}: none of {read[kind]} texts is of the topics that are scored"
        elif shared < 2:
            yield (
                f"gain: {kind}: shares {shared} of {len(names)} topics with {against} "
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


def twins_that_do_not_count(name: str, texts: Sequence[Document]) -> Iterator[str]:
    """Twins without a corrupted text at every k: a curve has the same texts at each."""
    by_twin: dict[str, set[int]] = defaultdict(set)
    for document in texts:
        twin, k = twin_of(document)
        by_twin[twin] |= set() if k is None else {k}
    every = set().union(*by_twin.values())
    lacking = sum(steps != every for steps in by_twin.values())
    if lacking:
        steps = ", ".join(map(str, sorted(every)))
        yield f"curves: {name}: {lacking} of {len(by_twin)} texts lack some k of {steps}"
