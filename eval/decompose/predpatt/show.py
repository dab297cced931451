"""Predicates as text, in the form in which the original prints them."""

from collections.abc import Sequence

from eval.decompose.predpatt.structures import Argument, Predicate
from eval.decompose.ud.tree import Token

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def show(predicates: Sequence[Predicate]) -> str:
    """Each predicate with ``?a``, ``?b`` for its arguments, and below it a line for each of them.

    Lines begin with tabs: one for a predicate, two for an argument. A clause that completes the
    predicate follows ``SOMETHING :=``.
    """
    return "\n".join(_lines(predicate) for predicate in predicates)


def pattern(predicate: Predicate) -> str:
    """The predicate with names for its arguments, in the order of the sentence."""
    return _worded(predicate, _names(predicate.arguments))


def flat(predicate: Predicate) -> str:
    """The same with its arguments' phrases in the place of names: ``the city is/are large``."""
    return _worded(predicate, {argument: argument.phrase for argument in predicate.arguments})


def _worded(predicate: Predicate, names: dict[Argument, str]) -> str:
    if predicate.kind == "poss":
        first, second = predicate.arguments
        return f"{names[first]} poss {names[second]}"
    rest = list(predicate.arguments)
    words: list[str] = []
    if predicate.kind != "normal":
        modified = [a for a in rest if a.root.id == predicate.root.head] or rest[:1]
        about = modified[-1]
        rest = [a for a in rest if a not in modified]
        words = [names[about], "is/are"]
    return " ".join(words + _mixed(predicate, rest, names))


def _mixed(predicate: Predicate, rest: Sequence[Argument], names: dict[Argument, str]) -> list[str]:
    root = predicate.root
    parts: list[tuple[int, Token | Argument]] = [(token.id, token) for token in predicate.tokens]
    parts += [(argument.root.id, argument) for argument in rest]
    words: list[str] = []
    for _, part in sorted(parts, key=lambda part: part[0]):
        words.append(part.form if isinstance(part, Token) else names[part])
        nominal = root.deprel == "xcomp" and root.upos not in {"VERB", "ADJ"}
        if nominal and len(words) == 1 and isinstance(part, Argument):
            words.append("is/are")
    return words


def _names(arguments: Sequence[Argument]) -> dict[Argument, str]:
    size = len(_LETTERS)
    return {
        argument: f"?{_LETTERS[index % size]}{index // size or ''}"
        for index, argument in enumerate(arguments)
    }


def _lines(predicate: Predicate) -> str:
    lines = [f"\t{pattern(predicate)}"]
    for argument, name in _names(predicate.arguments).items():
        clause = "SOMETHING := " if argument.clausal else ""
        lines.append(f"\t\t{name}: {clause}{argument.phrase}")
    return "\n".join(lines)
