"""Generate sentences from predicates and arguments with a language model.

``one_by_one`` is the published method (2403.11903, appendix B): one prompt per structure, as a line
of words without its sentence. The model has to guess references, tense and the meaning of
fragments, which contributes to the incoherence that the paper measures. ``together`` is ours: one
prompt per sentence, with the sentence and all its structures.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eval.decompose.by_sentence import Failed
from eval.decompose.claim_lists import ask_for_claims, parse_statement
from eval.decompose.predpatt.show import format_inline, format_predicates
from eval.decompose.predpatt.structures import Predicate
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt


class Structures(NamedTuple):
    """The predicates of a sentence, in the order of their roots."""

    sentence: str
    predicates: Sequence[Predicate]


def one_by_one(
    asker: Asker, prompt: Prompt, structures: Sequence[Structures]
) -> list[list[str | Failed]]:
    """Generate a statement for each structure, in one batch.

    The prompt's field is ``structure``.
    """
    lines = [format_inline(predicate) for s in structures for predicate in s.predicates]
    readings = asker.ask([prompt.messages(structure=line) for line in lines], parse_statement)
    statements = iter([Failed(r.failed) if r.failed else r.value for r in readings])
    return [[next(statements) for _ in s.predicates] for s in structures]


def together(
    asker: Asker, prompt: Prompt, structures: Sequence[Structures]
) -> list[list[str] | Failed]:
    """Generate the statements of each sentence with one prompt, in one batch.

    The prompt's fields are ``sentence`` and ``structures``.
    """
    messages = [
        prompt.messages(sentence=s.sentence, structures=format_predicates(s.predicates))
        for s in structures
    ]
    answers = ask_for_claims(asker, messages, [s.sentence for s in structures])
    return [
        _limit_count(len(s.predicates), claims)
        for s, claims in zip(structures, answers, strict=True)
    ]


METHODS = {"one_by_one": one_by_one, "together": together}


def drop_duplicates(statements: Sequence[str | Failed]) -> list[str | Failed]:
    """Return the statements without repeats of an earlier one; failures are kept."""
    seen: set[str] = set()
    distinct: list[str | Failed] = []
    for statement in statements:
        if isinstance(statement, Failed) or statement not in seen:
            distinct.append(statement)
        if isinstance(statement, str):
            seen.add(statement)
    return distinct


def _limit_count(limit: int, claims: list[str] | Failed) -> list[str] | Failed:
    if isinstance(claims, Failed) or len(claims) <= limit:
        return claims
    return Failed(f"{len(claims)} sentences for {limit} predicates")
