"""A journal of finished documents, so that a killed run goes on where it was.

Documents are done chunk by chunk; stages batch across the documents of a chunk, and a chunk is what
a kill loses. Each chunk's line says what it took from the language models.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from tqdm import tqdm

from clients.polite import PoliteClient
from eval.models.chat import CachedWriter
from eval.retrieve.serper import Serper
from eval.run.inside import parts, writers
from records import JsonlAppender, UserError

CHUNK = 128
_USAGE = "usage of the documents from "


def resumably(
    root: object,
    work: Callable[[Sequence[Any]], Sequence[BaseModel]],
    documents: Sequence[Any],
    journal: Path,
    chunk: int = CHUNK,
) -> list[dict]:
    """Do the documents chunk by chunk, keeping what is done in ``journal``.

    Args:
        root: what holds the language models, e.g. the pipeline.
        work: takes the documents of a chunk and gives one record each.
        documents: or other records with unique ids.
        journal: the JSONL file of finished documents; its name must depend on everything that
            changes the answer.
        chunk: documents a chunk.

    Returns:
        The records as JSON has them, one a document, in order.

    Raises:
        UserError: two documents have the same id.
    """
    twice, times = (Counter(document.id for document in documents).most_common(1) or [("", 0)])[0]
    if times > 1:
        raise UserError(f"document id {twice!r} occurs more than once; ids must be unique")
    models = writers(root)
    with JsonlAppender(journal, key="id") as done:
        # A chunk that was cut is done again whole: its answers are kept, and the tokens that it
        # took are then those of a run that was never cut.
        whole = {i for row in done.done.values() for i in row.get("documents", [])}
        todo = [document for document in documents if document.id not in whole]
        there = len(documents) - len(todo)
        bar = tqdm(total=len(documents), initial=there, unit="document", disable=None)
        for start in range(0, len(todo), chunk):
            own = todo[start : start + chunk]
            before = [copy(model.usage) for model in models]
            found = work(own)
            rows = [
                {"id": document.id, "done": record.model_dump(mode="json")}
                for document, record in zip(own, found, strict=True)
            ]
            used = [m.usage.since(b) for m, b in zip(models, before, strict=True)]
            ends = {"id": f"{_USAGE}{own[0].id}", "documents": [d.id for d in own], "usage": used}
            done.append([*rows, ends])
            bar.update(len(own))
        bar.close()
        return [done.done[document.id]["done"] for document in documents]


def usage(root: object, *journals: Path) -> list[dict]:
    """What each language model was used for by the run that wrote the journals.

    Args:
        root: what was given to :func:`resumably`, the same for all of them.

    Returns:
        A row a model: its identity; ``answers`` (new or kept), ``failed`` ones among them,
        ``prompt_tokens``, ``completion_tokens``; ``cost`` where the model has prices. Parts of
        ``root`` that have the same model share a row.
    """
    chunks = []
    for journal in journals:
        with JsonlAppender(journal, key="id") as done:
            chunks += [row["usage"] for row in done.done.values() if "usage" in row]
    rows: dict[str, dict] = {}
    for place, model in enumerate(writers(root)):
        used = Counter()
        for chunk in chunks:
            used.update(chunk[place])
        cost = model.cost(used["prompt_tokens"], used["completion_tokens"])
        if used and cost is not None:
            used["cost"] = cost
        name = json.dumps(model.identity, sort_keys=True)
        row = rows.setdefault(name, {"model": model.identity})
        for key, value in used.items():
            row[key] = round(row.get(key, 0) + value, 6)
    return list(rows.values())


def keep_answers(root: object, output: Path) -> None:
    """Give models and searchers without a cache one in the run's folder: nothing is asked twice."""
    for part in parts(root, object):
        if isinstance(part, CachedWriter | Serper) and part.cache_path is None:
            part.cache_path = output / ".answers.sqlite"
        if isinstance(part, PoliteClient) and part.cache_dir is None:
            part.cache_dir = output / ".pages"
