"""Many questions to one server.

One that is refused costs no other its answer, and a server that is gone is soon left.
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

# A server that did not answer so many questions in a row is gone.
MAX_FAILURES_IN_A_ROW = 3


def ask_each(
    questions: Sequence[Question], ask: Callable[[Question], Answer], at_a_time: int = 1
) -> Iterator[tuple[Question, Answer | None]]:
    """Questions with their answers, as these come; ``None`` where the server refused or gave none.

    Args:
        questions: in the order in which they are asked, and answered where it is one at a time.
        ask: gives one answer, after all retries.
        at_a_time: questions under way; a server whose etiquette wants serial requests gets one.

    Raises:
        EndpointError: ``MAX_FAILURES_IN_A_ROW`` queries in a row failed. A server that is gone is
            no reason to end a run with nothing but failures; started again, the run goes on.
    """
    lost = 0  # questions in a row
    stop: UserError | None = None

    def one(question: Question) -> Answer | None:
        nonlocal lost, stop
        if stop:
            return None
        try:
            answer = ask(question)
            lost = 0
            return answer
        except EndpointError as error:
            lost += 1
            if lost >= MAX_FAILURES_IN_A_ROW:
                stop = stop or error
        except RefusedError:
            lost = 0
        except UserError as error:
            stop = stop or error
        return None

    bar = tqdm(total=len(questions), desc="asked", unit="query", leave=False, disable=None)
    with bar, ThreadPoolExecutor(at_a_time) as pool:
        if at_a_time == 1:  # here, where an interrupt need not wait for another thread
            come = ((question, one(question)) for question in questions)
        else:
            waits = {pool.submit(one, question): question for question in questions}
            come = ((waits[done], done.result()) for done in as_completed(waits))
        try:
            for question, answer in come:
                if stop and at_a_time == 1:
                    break
                bar.update()
                yield question, answer
        except BaseException as error:  # the loop was left early: the rest is not asked
            stop = stop or UserError(str(error))
            raise
    if stop:
        raise stop
