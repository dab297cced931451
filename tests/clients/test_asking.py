"""Many questions to one server."""

from __future__ import annotations

import pytest

from clients.asking import ask_each
from clients.polite import EndpointError, RefusedError


def test_three_failures_in_a_row_stop_the_run():
    sent = []

    def ask(query):
        sent.append(query)
        if query == "refused":
            raise RefusedError("no such query")
        if query == "lost":
            raise EndpointError("no answer")
        return query

    queries = ["a", "lost", "lost", "refused", "lost", "lost", "b"]
    answers = [answer for _, answer in ask_each(queries, ask)]
    assert answers == ["a", *[None] * 5, "b"]
    sent.clear()
    queries[5:] = ["lost", "lost", "b"]
    with pytest.raises(EndpointError, match="no answer"):
        list(ask_each(queries, ask))
    assert sent == queries[:7]
