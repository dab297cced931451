"""Drawing rows by a seed: which ones depends on the rows alone, not on their order."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable

from data_builders.published.longform.formats import Source
from records import Document, UserError, json_line, sha256_text

Found = Document | dict


def draw(
    source: Source,
    rows: Iterable[Found],
    seed: int,
    limit: int | None,
    dropped: Counter[str],
) -> list[Found]:
    """The rows of a source that are kept, in the order of its files.

    Each row, and each topic, has a number from the seed and its content; the least are drawn.
    """
    by_topic = bool(source.per_topic or source.topics)
    most = source.per_topic if by_topic else source.sample
    kept: dict[str, list] = defaultdict(list)
    seen: set[str] = set()
    for place, row in enumerate(rows):
        rank = sha256_text(f"{seed}:{source.name}:{_content(row)}")
        if rank in seen:
            dropped[f"{source.name}: the same as another row"] += 1
            continue
        seen.add(rank)
        own = kept[_topic(row) if by_topic else ""]
        # A heap of negated ranks: its root is the largest rank, the first to go.
        heapq.heappush(own, (-int(rank, 16), place, row))
        if most and len(own) > most:
            heapq.heappop(own)
            dropped[f"{source.name}: row that was not drawn"] += 1
    chosen = sorted(kept, key=lambda topic: sha256_text(f"{seed}:{source.name}:topic:{topic}"))
    if source.topics and limit is None and len(chosen) < source.topics:
        raise UserError(f"{source.name}: {len(chosen)} topics; lower topics: {source.topics}")
    for topic in chosen[source.topics :] if source.topics else ():
        dropped[f"{source.name}: row of a topic that was not drawn"] += len(kept.pop(topic))
    _enough(source, kept, most, limit)
    found = [item for own in kept.values() for item in own]
    return [row for _, _, row in sorted(found, key=lambda item: item[1])]


def _enough(source: Source, kept: dict[str, list], most: int | None, limit: int | None) -> None:
    if not most or limit is not None:
        return
    for topic, own in kept.items():
        if len(own) < most:
            of = f" of topic {topic!r}" if topic else ""
            option = "per_topic" if source.per_topic else "sample"
            raise UserError(
                f"{source.name}: {len(own)} rows{of}; lower {option}: {most} or give more files"
            )


def _topic(row: Found) -> str:
    return row.topic if isinstance(row, Document) else row["topic"]


def _content(row: Found) -> str:
    if isinstance(row, Document):
        row = row.model_dump(mode="json", exclude={"id"})
    return json_line({name: value for name, value in row.items() if name != "id"})
