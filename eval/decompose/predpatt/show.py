"""Format predicates as the original PredPatt prints them."""

from collections.abc import Sequence

from eval.decompose.predpatt.structures import Argument, Predicate
from eval.decompose.ud.tree import Token

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def format_predicates(predicates: Sequence[Predicate]) -> str:
    """Format each predicate with ``?a``, ``?b`` for its arguments, and one line per argument.

    Predicates are indented by one tab, arguments by two. ``SOMETHING :=`` marks a clausal argument.
    """
    return "\n".join(_lines(predicate) for predicate in predicates)


def format_pattern(predicate: Predicate) -> str:
    """The predicate with placeholders (``?a``) for its arguments, in sentence order."""
    return _format(predicate, _names(predicate.arguments))


def format_inline(predicate: Predicate) -> str:
    """The predicate with its arguments' phrases: ``the city is/are large``."""
    return _format(predicate, {argument: argument.phrase for argument in predicate.arguments})


def _format(predicate: Predicate, names: dict[Argument, str]) -> str:
    if predicate.kind == "poss":
        first, second = predicate.arguments
        return f"{names[first]} poss {names[second]}"
    arguments = list(predicate.arguments)
    words: list[str] = []
    if predicate.kind != "normal":
        modified = [a for a in arguments if a.root.id == predicate.root.head] or arguments[:1]
        subject = modified[-1]
        arguments = [a for a in arguments if a not in modified]
        words = [names[subject], "is/are"]
    return " ".join(words + _in_order(predicate, arguments, names))


def _in_order(
    predicate: Predicate, arguments: Sequence[Argument], names: dict[Argument, str]
) -> list[str]:
    root = predicate.root
    parts: list[tuple[int, Token | Argument]] = [(token.id, token) for token in predicate.tokens]
    parts += [(argument.root.id, argument) for argument in arguments]
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
    lines = [f"\t{format_pattern(predicate)}"]
    for argument, name in _names(predicate.arguments).items():
        clause = "SOMETHING := " if argument.clausal else ""
        lines.append(f"\t\t{name}: {clause}{argument.phrase}")
    return "\n".join(lines)
