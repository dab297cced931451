"""Sentences from predicates and arguments, by a language model.

``one_by_one`` is the published way (2403.11903, appendix B): each structure in a prompt of its own,
as one line of words, without the sentence that it is from. What the model has to guess (who "they"
are, which tense, what a fragment means) makes part of the incoherence that the paper measures.
Where two structures of a sentence give one statement, it counts once; the paper does not say so.
``together`` is ours: all structures of a sentence in one prompt, with the sentence.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eval.decompose.answers import ask_for_claims, parse_statement
from eval.decompose.by_sentence import Failed
from eval.decompose.predpatt.show import flat, show
from eval.decompose.predpatt.structures import Predicate
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt


class Structures(NamedTuple):
    """The predicates of a sentence, in the order of their roots."""

    sentence: str
    predicates: Sequence[Predicate]


def one_by_one(
    asker: Asker, prompt: Prompt, asked: Sequence[Structures]
) -> list[list[str | Failed]]:
    """A statement for each structure, each once, and why others have none.

    Args:
        asker: asks the language model; one call for all structures.
        prompt: its field is ``structure``.
        asked: of each sentence.
    """
    lines = [flat(predicate) for own in asked for predicate in own.predicates]
    readings = asker.ask([prompt.messages(structure=line) for line in lines], parse_statement)
    said = iter([Failed(one.failed) if one.failed else one.value for one in readings])
    return [_each_once([next(said) for _ in own.predicates]) for own in asked]


def together(asker: Asker, prompt: Prompt, asked: Sequence[Structures]) -> list[list[str] | Failed]:
    """The statements of each sentence, or why it has none.

    Args:
        asker: asks the language model; one call for all sentences.
        prompt: its fields are ``sentence`` and ``structures``.
        asked: of each sentence.
    """
    messages = [
        prompt.messages(sentence=own.sentence, structures=show(own.predicates)) for own in asked
    ]
    written = ask_for_claims(asker, messages, [own.sentence for own in asked])
    return [
        _no_more_than(len(own.predicates), claims)
        for own, claims in zip(asked, written, strict=True)
    ]


WAYS = {"one_by_one": one_by_one, "together": together}


def _each_once(said: Sequence[str | Failed]) -> list[str | Failed]:
    seen: set[str] = set()
    found: list[str | Failed] = []
    for one in said:
        if isinstance(one, Failed) or one not in seen:
            found.append(one)
        if isinstance(one, str):
            seen.add(one)
    return found


def _no_more_than(count: int, own: list[str] | Failed) -> list[str] | Failed:
    if isinstance(own, Failed) or len(own) <= count:
        return own
    return Failed(f"{len(own)} sentences for {count} predicates")
