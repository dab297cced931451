"""Notes and warnings about scored documents, for the terminal."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from components.words import WORD, to_nfc
from eval.decompose.pronouns import begins_with_pronoun
from eval.metrics.document import Scored, named
from eval.pipeline import Pipeline
from eval.report.terminal import unread_pages
from eval.run.parts import find_parts
from records import Document, Passage

MAX_REASONS = 3
# Share of a text's words whose removal is reported with the document's id.
MAX_REMOVED = 0.3


def misspelt_fields(documents: Sequence[Document]) -> list[str]:
    """Return one line per unknown field that resembles a missing field of the record."""
    lines = []
    for name in sorted({name for document in documents for name in document.model_extra or {}}):
        for similar in get_close_matches(name, Document.model_fields, n=1, cutoff=0.8):
            having = (d for d in documents if name in (d.model_extra or {}))
            if n := sum(getattr(document, similar) is None for document in having):
                lines.append(
                    f"{n:,} of {len(documents):,} documents have the unknown field `{name}`, which "
                    f"is ignored; did you mean `{similar}`?"
                )
    return lines


def evidence_warnings(pipeline: Pipeline, scored: Sequence[Scored]) -> list[str]:
    """Return one line per sign that documents were judged by unexpected passages.

    If the retriever reads the documents' passages (its attribute ``reads_own_passages``), the only
    warning is about pages that could not be read.
    """
    lines = unread_pages(passage for row in scored for passage in row.passages)
    parts = find_parts(pipeline.retrieve)
    if any(getattr(part, "reads_own_passages", False) for part in parts):
        return lines
    if ignored := sum(_are_passages_ignored(row.document, row.passages) for row in scored):
        lines.append(
            f"{ignored:,} of {len(scored):,} documents have `passages`, which "
            f"{type(pipeline.retrieve).__name__} ignores; pass --pipeline.retrieve null to judge "
            "by them"
        )
    off_topic = [row for row in scored if _are_off_topic(row.document, row.passages)]
    if off_topic:
        first = off_topic[0]
        lines.append(
            f"{len(off_topic):,} of {len(scored):,} documents were judged by passages whose titles "
            f"do not match the topic, e.g. {first.document.topic!r} by "
            f"{first.passages[0].title!r}; the passages may be about other topics"
        )
    return lines


def failure_reasons(scored: Sequence[Scored]) -> list[str]:
    """Return the most frequent reasons for failed claims and sentences, one line each."""
    times = Counter(
        (named(verdict.assessor, verdict.name), verdict.reason or "no reason given")
        for row in scored
        for verdict in row.verdicts
        if verdict.label == "failed"
    )
    times.update(
        ("decompose", claim.failed) for row in scored for claim in row.claims if claim.failed
    )
    lines = [f"failed {n:,} x {stage}: {_shorten(why)}" for (stage, why), n in times.most_common()]
    rest = sum(n for _, n in times.most_common()[MAX_REASONS:])
    return lines[:MAX_REASONS] + ([f"failed {rest:,} x for other reasons"] if rest else [])


def abstention_note(scored: Sequence[Scored]) -> list[str]:
    """Return a line about documents that do not respond, if there are any."""
    silent = sum(any(not score.responded for score in row.scores) for row in scored)
    if not silent:
        return []
    return [
        f"{silent:,} of {len(scored):,} documents do not respond (empty, or a refusal) and have no "
        "precision; respond_ratio and F1@K count them"
    ]


def removal_notes(scored: Sequence[Scored]) -> list[str]:
    """Return lines about words removed before decomposition, and texts that lost a large share."""
    removed = sum((Counter(row.removed) for row in scored), Counter())
    if not removed:
        return []
    total = sum(len(row.document.text.split()) for row in scored)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in removed.most_common())
    lines = [
        f"{removed.total():,} of {total:,} words make no claims and were removed before "
        f"decomposition: {kinds}"
    ]
    shares = {
        row.document.id: sum(row.removed.values()) / len(row.document.text.split())
        for row in scored
        if row.removed
    }
    if large := {name: share for name, share in shares.items() if share > MAX_REMOVED}:
        named_shares = [f"{name} ({share:.0%})" for name, share in large.items()]
        names = ", ".join(named_shares[:MAX_REASONS]) + ", …" * (len(large) > MAX_REASONS)
        lines.append(
            f"{len(large):,} of {len(scored):,} documents lost more than {MAX_REMOVED:.0%} of "
            f"their words, see `removed` in scored.jsonl: {names}"
        )
    return lines


def empty_selection_note(scored: Sequence[Scored]) -> list[str]:
    """Return a line about documents of which Core selects no claim, if there are any."""
    if not (empty := sum(any(score.empty_selection for score in row.scores) for row in scored)):
        return []
    return [
        f"{empty:,} of {len(scored):,} documents have no selected claim; with Core they count 0"
    ]


def pronoun_note(scored: Sequence[Scored]) -> list[str]:
    """Return a line about claims whose subject is an unresolved pronoun, if there are any."""
    claims = [(row.document.id, claim) for row in scored for claim in row.claims]
    unresolved = [(name, c.text) for name, c in claims if begins_with_pronoun(c.text)]
    if not unresolved:
        return []
    examples = "; ".join(f"{name}: {_shorten(text)}" for name, text in unresolved[:MAX_REASONS])
    resolved = sum(getattr(claim, "resolved", None) is not None for _, claim in claims)
    return [
        f"{len(unresolved):,} of {len(claims):,} claims begin with an unresolved pronoun "
        f"({resolved:,} resolved); a passage about another subject may support them: {examples}"
    ]


def has_only_failures(scored: Sequence[Scored]) -> bool:
    """Whether there are claims to judge, but all of them failed."""
    scores = [score for row in scored for score in row.scores]
    return any(score.failed for score in scores) and not any(
        score.judged or score.irrelevant for score in scores
    )


def _are_passages_ignored(document: Document, passages: Sequence[Passage]) -> bool:
    # Compares texts, since a custom retriever may read them without ``reads_own_passages``.
    texts = [passage.text for passage in document.passages or []]
    return bool(texts) and not any(used.text in text for used in passages for text in texts)


def _are_off_topic(document: Document, passages: Sequence[Passage]) -> bool:
    topic = _words(document.topic)
    titles = [_words(passage.title) for passage in passages if passage.title]
    return bool(topic and titles) and not any(t <= topic or topic <= t for t in titles)


def _words(name: str) -> set[str]:
    plain = re.sub(r"\(.*?\)", " ", name.replace("_", " "))
    return set(re.findall(WORD, to_nfc(plain).casefold()))


def _shorten(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= 120 else f"{line[:119]}…"
