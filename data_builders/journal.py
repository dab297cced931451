"""Resumable loops over a model's outputs, written to a journal.

An interrupted build loses at most one batch. Each text depends only on the seed and its input, so a
resumed build gives the same texts as an uninterrupted one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from clients.polite import chunks
from components.identity import identity
from eval.models.chat import Answer, Message, Writer
from records import JsonlAppender

V = TypeVar("V")
# Maps batches of named inputs to their journal rows, in any order.
Each = Callable[[Sequence[Mapping[str, V]]], Iterable[list[dict]]]
BATCH_SIZE = 16  # an interrupted build loses at most one batch


def journal_rows(
    journal: Path,
    things: Mapping[str, V],
    make: Callable[[Mapping[str, V]], Iterable[dict]],
    *,
    unit: str,
    batch_size: int | None = None,
    each: Each | None = None,
) -> dict[str, dict]:
    """Map each name to its row; rows in the journal are not computed again.

    Args:
        journal: a JSONL file; its name must depend on everything that decides the rows.
        things: name to the input of a row.
        make: maps some inputs to their rows, in order.
        unit: unit of the progress bar.
        batch_size: rows computed per write; ``BATCH_SIZE`` by default.
        each: computes batches elsewhere; by default ``make`` runs here, in order.
    """
    each = each or partial(map, partial(named_rows, make))
    with JsonlAppender(journal, key="name") as kept:
        todo = [name for name in things if name not in kept.done]
        ready = len(things) - len(todo)
        with tqdm(total=len(things), initial=ready, unit=unit, disable=None) as bar:
            parts = chunks(todo, batch_size or BATCH_SIZE)
            for rows in each([{name: things[name] for name in names} for names in parts]):
                kept.append(rows)
                bar.update(len(rows))
        return {name: kept.done[name] for name in things}


def named_rows(
    make: Callable[[Mapping[str, V]], Iterable[dict]], things: Mapping[str, V]
) -> list[dict]:
    """Compute the journal rows of a batch."""
    return [{"name": n} | row for n, row in zip(things, make(things), strict=True)]


def write_texts(
    writer: Writer,
    prompts: Mapping[str, Sequence[Message]],
    sampling: Mapping[str, object],
    journal: Path,
    unit: str = "topic",
    batch_size: int | None = None,
    each: Each | None = None,
) -> dict[str, list[Answer]]:
    """Answer named prompts (name to messages) with a language model; resumable.

    Args:
        sampling: keyword arguments of ``Writer.answer``.
        journal, unit, batch_size, each: as in :func:`journal_rows`.
    """
    make = partial(answer_rows, writer, sampling)
    rows = journal_rows(journal, prompts, make, unit=unit, batch_size=batch_size, each=each)
    return {name: [Answer(*answer) for answer in row["answers"]] for name, row in rows.items()}


def answer_rows(
    writer: Writer, sampling: Mapping[str, object], prompts: Mapping[str, Sequence[Message]]
) -> Iterable[dict]:
    """Answer prompts; yield one journal row per prompt."""
    return ({"answers": answers} for answers in writer.answer(list(prompts.values()), **sampling))


def model_name(writer: Writer) -> str:
    """Return the model's name for records and plans."""
    described = identity(writer)
    model = described.get("model", described["class"])
    return str(model["id"] if isinstance(model, Mapping) else model)
