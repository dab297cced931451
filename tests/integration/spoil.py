"""What can go wrong with an answer: the kinds of faults, and the spoiling of a real answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

KINDS = (
    "429",  # too many requests
    "503",  # overloaded
    "maxlag",  # MediaWiki's own answer where its database lags; a client that sends no maxlag
    #            gets what it asked for
    "html",  # 200, but an error page for people
    "drop",  # the connection ends without an answer
    "cut",  # the body ends before its Content-Length; with keep=0 right after the headers
    "cut_unseen",  # the body ends early and Content-Length fits
    "cut_json",  # the same with a Java error behind, as Wikidata's query service does on time-out
    "slow",  # the whole body, but a little at a time
    "silent_cut",  # SPARQL: whole JSON with fewer rows, as DBpedia does beyond its limit
    "dup_continue",  # MediaWiki: the batch before once more, so that ``continue`` stands still
)
PAGE = (
    "<!DOCTYPE html>\n<html><head><title>Error</title></head>"
    "<body><h1>Our servers are under maintenance</h1></body></html>"
)
JAVA = (
    "\nSPARQL-QUERY: queryStr=SELECT\njava.util.concurrent.TimeoutException\n"
    "\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)\n"
)


@dataclass(frozen=True)
class Fault:
    """One way to spoil an answer.

    Attributes:
        kind: one of ``KINDS``.
        retry_after: the header of that name: seconds, an HTTP date, or none. A ``maxlag`` answer
            keeps MediaWiki's own, 5, unless it is given.
        keep: share of the body that a cut leaves.
        seconds: how long a slow body takes.
        rows: how many rows ``silent_cut`` leaves.
    """

    kind: str
    retry_after: int | str | None = None
    keep: float = 0.5
    seconds: float = 0.2
    rows: int = 1

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is none of {', '.join(KINDS)}")


@dataclass
class Answer:
    """What goes back to the client."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    length: int | None = None  # Content-Length where it is not the body's
    seconds: float = 0.0


def spoil(answer: Answer, fault: Fault) -> Answer | None:
    """A real answer, spoiled; ``None`` where the fault does not apply to it."""
    kind, body = fault.kind, answer.body
    kept = body[: int(len(body) * fault.keep)]
    if kind == "cut" and body:
        return replace(answer, body=kept, length=len(body))
    if kind == "cut_unseen" and body:
        return replace(answer, body=kept)
    if kind == "cut_json":
        return replace(answer, body=kept + JAVA.encode())
    if kind == "slow":
        return replace(answer, seconds=fault.seconds)
    if kind == "silent_cut" and len(_rows(answer)) > fault.rows:
        whole = json.loads(body)
        whole["results"]["bindings"] = _rows(answer)[: fault.rows]
        return replace(answer, body=json.dumps(whole).encode())
    if kind == "maxlag" and answer.headers.get("MediaWiki-API-Error") == "maxlag":
        return answer
    return None


def parsed(answer: Answer) -> dict:
    """The body's JSON object; empty where it is none."""
    try:
        content = json.loads(answer.body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _rows(answer: Answer) -> list[dict]:
    return parsed(answer).get("results", {}).get("bindings", [])
