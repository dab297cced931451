"""Send a list of queries to one server.

Rejected queries do not affect others. The run stops early if the server is unreachable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from tqdm import tqdm

from clients.polite import EndpointError, RefusedError
from records import UserError

Question = TypeVar("Question")
Answer = TypeVar("Answer")

# Consecutive failures after which a server counts as unreachable.
MAX_FAILURES_IN_A_ROW = 3


def ask_each(
    questions: Sequence[Question], ask: Callable[[Question], Answer], at_a_time: int = 1
) -> Iterator[tuple[Question, Answer | None]]:
    """Yield queries with their answers as they complete; ``None`` for failed queries.

    Args:
        questions: in the order in which they are sent.
        ask: returns one answer, after all retries.
        at_a_time: concurrent queries; 1 for servers that require serial requests.

    Raises:
        EndpointError: ``MAX_FAILURES_IN_A_ROW`` queries in a row failed; the run can be resumed.
    """
    failures = 0  # in a row
    stop: UserError | None = None

    def ask_or_none(question: Question) -> Answer | None:
        nonlocal failures, stop
        if stop:
            return None
        try:
            answer = ask(question)
            failures = 0
            return answer
        except EndpointError as error:
            failures += 1
            if failures >= MAX_FAILURES_IN_A_ROW:
                stop = stop or error
        except RefusedError:
            failures = 0
        except UserError as error:
            stop = stop or error
        return None

    bar = tqdm(total=len(questions), desc="queries", unit="query", leave=False, disable=None)
    with bar, ThreadPoolExecutor(at_a_time) as pool:
        if at_a_time == 1:  # in this thread, so that an interrupt takes effect at once
            answers = ((question, ask_or_none(question)) for question in questions)
        else:
            futures = {pool.submit(ask_or_none, question): question for question in questions}
            answers = ((futures[future], future.result()) for future in as_completed(futures))
        try:
            for question, answer in answers:
                if stop and at_a_time == 1:
                    break
                bar.update()
                yield question, answer
        except BaseException as error:  # also if the caller leaves the loop early
            stop = stop or UserError(str(error))
            raise
    if stop:
        raise stop
