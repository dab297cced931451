"""The resumable loop: what a model makes of some things, kept while it grows.

A killed build loses at most one batch. A text depends on the seed and on what it is about alone, so
a build that goes on makes the very texts that it would have made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from clients.polite import chunks
from eval.models.chat import Answer, Message, Writer
from records import JsonlAppender

V = TypeVar("V")
# Takes chunks of named things, and gives the journal's rows of each when ready, in any order.
Each = Callable[[Sequence[Mapping[str, V]]], Iterable[list[dict]]]
# What a kill loses at most.
BATCH_SIZE = 16


def journal_rows(
    journal: Path,
    things: Mapping[str, V],
    make: Callable[[Mapping[str, V]], Iterable[dict]],
    *,
    unit: str,
    batch_size: int | None = None,
    each: Each | None = None,
) -> dict[str, dict]:
    """Name to the row that is made of each thing.

    Args:
        journal: a JSONL file; its name must depend on everything that decides the rows.
        things: name to what a row is made of.
        make: some of the things to their rows, in order.
        unit: what the things are, for the bar.
        batch_size: how many are made before they are written; ``BATCH_SIZE`` where not given.
        each: makes them elsewhere; by default ``make`` does here, in order.
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
    """The journal's rows of a chunk of things."""
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
    """A language model's answers to named prompts.

    Args:
        writer: who writes.
        prompts: name to the messages.
        sampling: the keywords of ``Writer.answer``.
        journal: as for :func:`journal_rows`.
        unit: what the names are.
        batch_size: how many prompts are answered before they are written.
        each: as for :func:`journal_rows`.
    """
    make = partial(answer_rows, writer, sampling)
    rows = journal_rows(journal, prompts, make, unit=unit, batch_size=batch_size, each=each)
    return {name: [Answer(*answer) for answer in row["answers"]] for name, row in rows.items()}


def answer_rows(
    writer: Writer, sampling: Mapping[str, object], prompts: Mapping[str, Sequence[Message]]
) -> Iterable[dict]:
    """A row a prompt, with a language model's answers."""
    return ({"answers": own} for own in writer.answer(list(prompts.values()), **sampling))


def model_name(writer: Writer) -> str:
    """The model's name, as records and plans show it."""
    model = writer.identity.get("model", type(writer).__name__)
    return str(model.get("id", model) if isinstance(model, Mapping) else model)


def identity_of(model: object) -> object:
    """What decides a model's judgements, for journals."""
    return None if model is None else getattr(model, "identity", type(model).__name__)
