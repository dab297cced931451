"""Seeded sampling of rows that does not depend on their order."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable

from data_builders.published.longform.longform_formats import Source
from records import Document, UserError, json_line, sha256_text

AnyRow = Document | dict


def draw(
    source: Source, rows: Iterable[AnyRow], seed: int, limit: int | None, dropped: Counter[str]
) -> list[AnyRow]:
    """Sample rows of a source; return them in the order of the files.

    Rows and topics are ranked by a hash of the seed and their content; the lowest are drawn.
    """
    by_topic = bool(source.per_topic or source.topics)
    most = source.per_topic if by_topic else source.sample
    heaps: dict[str, list] = defaultdict(list)
    seen: set[str] = set()
    for index, row in enumerate(rows):
        rank = sha256_text(f"{seed}:{source.name}:{_content(row)}")
        if rank in seen:
            dropped[f"{source.name}: duplicate row"] += 1
            continue
        seen.add(rank)
        heap = heaps[_topic(row) if by_topic else ""]
        # Ranks are negated: the root of the heap is the highest rank.
        heapq.heappush(heap, (-int(rank, 16), index, row))
        if most and len(heap) > most:
            heapq.heappop(heap)
            dropped[f"{source.name}: row that was not drawn"] += 1
    chosen = sorted(heaps, key=lambda topic: sha256_text(f"{seed}:{source.name}:topic:{topic}"))
    if source.topics and limit is None and len(chosen) < source.topics:
        raise UserError(f"{source.name}: {len(chosen)} topics; lower topics: {source.topics}")
    for topic in chosen[source.topics :] if source.topics else ():
        dropped[f"{source.name}: row of a topic that was not drawn"] += len(heaps.pop(topic))
    for topic, heap in heaps.items() if most and limit is None else ():
        if len(heap) < most:
            of_topic = f" of topic {topic!r}" if topic else ""
            option = "per_topic" if by_topic else "sample"
            raise UserError(
                f"{source.name}: {len(heap)} rows{of_topic}; lower {option}: {most} or add files"
            )
    items = [item for heap in heaps.values() for item in heap]
    return [row for _, _, row in sorted(items, key=lambda item: item[1])]


def _topic(row: AnyRow) -> str:
    return row.topic if isinstance(row, Document) else row["group"]


def _content(row: AnyRow) -> str:
    if isinstance(row, Document):
        row = row.model_dump(mode="json", exclude={"id"})
    return json_line({name: value for name, value in row.items() if name != "id"})
