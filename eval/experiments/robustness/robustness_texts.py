"""Read the texts of a robustness run, draw topics, and report what is skipped."""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, NonNegativeInt, ValidationError

from eval.experiments.experiment import Half, half_of
from eval.run.run import check_ids
from records import BadInput, Document, UserError, read_records, to_bad_input

MARGIN = 0.4  # gold F1 by which an honest text must be better, to count as a success


class _Point(BaseModel):
    """Point of a corrupted text on its curve; a CSV column has ``k`` as text."""

    clean: str
    k: NonNegativeInt


def twin_of(document: Document) -> tuple[str, int | None]:
    """The id of a text's clean twin, and the number of appended sentences (twin: ``None``)."""
    more = document.model_extra or {}
    return (document.id, None) if more.get("k") is None else (more["clean"], more["k"])


def read_texts(path: str, kind: str | None, files: int) -> tuple[list[Document], str]:
    """Read the texts of a file; also returns a sentence on skipped rows of other kinds, or "".

    Args:
        kind: kind of texts to read; ``None`` if each row has a kind.
        files: number of files of this kind; if there are several, a file's name is the default
            generator.
    """
    texts, skipped_kinds = [], Counter()
    for number, document in enumerate(read_records(path, Document), 1):
        row_kind = document.kind or kind
        if row_kind is None:
            advice = "add it, or set it for the file: texts: {normal: [FILE]}"
            raise BadInput([f"{path}:{number}: kind: field required; {advice}"])
        if kind is not None and row_kind != kind:
            skipped_kinds[row_kind] += 1
            continue
        generator = document.generator or (Path(path).stem if files > 1 else "given")
        update = {"kind": row_kind, "generator": generator}
        texts.append((number, document.model_copy(update=update)))
    check_ids(path, texts)
    if not texts:
        raise UserError(f"{path}: no text of kind {kind!r}")
    counts = ", ".join(f"{count} `{name}`" for name, count in sorted(skipped_kinds.items()))
    skipped = f"{counts} rows of {path} (the file is configured for `{kind}`)" if counts else ""
    return [document for _, document in texts], skipped


def with_distinct_ids(files: Sequence[tuple[str, Sequence[Document]]]) -> list[Document]:
    """The texts of all files; an id that occurs twice gets the number of its file as a prefix.

    ``clean`` of an attacked text is updated with the id that it refers to in the same file.

    Args:
        files: path and texts of each; a path can occur again with texts of another kind.
    """
    times = Counter(document.id for _, texts in files for document in texts)
    numbered = [
        (path, document, f"{number}:{document.id}" if times[document.id] > 1 else document.id)
        for number, (path, texts) in enumerate(files)
        for document in texts
    ]
    # Reversed, so that the first occurrence of a path wins.
    ids = {(path, document.id): distinct for path, document, distinct in reversed(numbered)}
    renamed = []
    for path, document, distinct in numbered:
        clean = ids.get((path, str((document.model_extra or {}).get("clean"))))
        update = {"id": distinct} if clean is None else {"id": distinct, "clean": clean}
        renamed.append(document.model_copy(update=update))
    return renamed


def draw_topics(
    documents: Sequence[Document], against: str, half: Half | None, maximum: int, seed: int
) -> set[str]:
    """Draw the topics that are scored.

    Topics of honest texts come first by the number of kinds and generators that have them, since
    attacks are compared on shared topics. For attacks that share fewer than two topics with honest
    texts, as many of their own topics are drawn.

    Args:
        against: kind of the honest texts.
        maximum: number of topics of each of the two groups; 0 for all.
    """
    cells: dict[tuple, set[str]] = defaultdict(set)
    for document in documents:
        if not half or half_of(document.topic, seed) == half:
            cells[document.kind, document.generator].add(document.topic)
    honest = {d.topic for d in documents if d.kind == against}
    shared = honest & set().union(*cells.values())
    if honest and not shared:
        raise UserError(f"half: none of {len(honest)} topics is in the half {half!r}")
    if not maximum:
        return set().union(*cells.values())
    apart = [topics - honest for topics in cells.values() if len(topics & honest) < 2]
    drawn: set[str] = set()
    for names in (shared, set().union(*apart)):
        ranked = random.Random(seed).sample(sorted(names), len(names))
        ranked.sort(key=lambda topic: -sum(topic in topics for topics in cells.values()))
        drawn |= set(ranked[:maximum])
    return drawn


def read_curve(name: str, files: Sequence[str], topics: set[str] | None) -> list[Document]:
    """Read corrupted texts and their clean twins.

    Args:
        topics: the drawn topics; ``None`` for all.
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
        problem = f"have the id {twin!r}" if k is None else f"of {twin!r} have k = {k}"
        raise UserError(
            f"curves: {name}: {times} texts {problem}; use a separate curve for each adversary"
        )
    if len(texts) == len(twins):
        raise UserError(f"curves: {name}: no row has `clean` and `k`; expected corrupted texts")
    return texts


def _of_curve(path: str) -> Iterator[Document]:
    for number, document in enumerate(read_records(path, Document), 1):
        more = document.model_extra or {}
        point = {name: more[name] for name in ("clean", "k") if more.get(name) is not None}
        if point:
            try:
                point = dict(_Point.model_validate(point))
            except ValidationError as error:
                raise to_bad_input(f"{path}:{number}", error) from None
        yield document.model_copy(update=point)


def report_skipped_texts(
    texts: Iterable[Document], kept: Sequence[Document], against: str, drawn: Collection[str] | None
) -> Iterator[str]:
    """Report kinds with no scored text, or with fewer topics than the honest texts.

    Args:
        texts: the texts of the files.
        kept: the texts that are scored.
        against: kind of the honest texts.
        drawn: the drawn topics; ``None`` if all are scored.
    """
    read = Counter(document.kind for document in texts)
    topics: dict[str, set[str]] = {kind: set() for kind in read}
    for document in kept:
        topics[document.kind].add(document.topic)
    honest = topics.pop(against)
    for kind, names in topics.items():
        if not names:
            yield f"all {read[kind]} `{kind}` texts: their topics are not scored"
        elif drawn is not None and len(names & honest) < len(honest):
            shared = len(honest) - len(names & honest)
            yield f"`{kind}` on {shared} of the {len(honest)} drawn topics: no text"


def report_unpaired(texts: Sequence[Document], honest: Sequence[str]) -> Iterator[str]:
    """Report attacked texts without a verdict: what they lack to be compared with an honest text.

    Args:
        texts: all texts.
        honest: kinds of the honest texts; attacks are compared with the first.
    """
    best: dict[str, float] = {}
    for text in texts:
        if text.kind == honest[0] and text.gold is not None:
            best[text.topic] = max(text.gold.f1, best.get(text.topic, 0.0))
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        if text.kind in honest:
            continue
        if text.gold is None:
            reasons[text.kind]["no `gold`, and no labelled `claims` to compute it from"] += 1
        elif text.topic not in best:
            reasons[text.kind][f"no `{honest[0]}` text with `gold` and the same topic"] += 1
        elif best[text.topic] < text.gold.f1 + MARGIN - 1e-9:
            reasons[text.kind][f"no `{honest[0]}` text whose gold F1 is higher by {MARGIN}"] += 1
    total = Counter(text.kind for text in texts)
    for kind, counts in reasons.items():
        for reason, number in counts.items():
            yield f"verdict of {number} of {total[kind]} `{kind}` texts: {reason}"


def report_incomplete_curves(name: str, texts: Sequence[Document]) -> Iterator[str]:
    """Report texts that lack some k; a curve has the same texts at every k."""
    by_twin: dict[str, set[int]] = defaultdict(set)
    for document in texts:
        twin, k = twin_of(document)
        by_twin[twin] |= set() if k is None else {k}
    all_steps = set().union(*by_twin.values())
    incomplete = sum(steps != all_steps for steps in by_twin.values())
    if incomplete:
        steps = ", ".join(map(str, sorted(all_steps)))
        yield f"{incomplete} of {len(by_twin)} texts of curve {name}: they lack some k of {steps}"
