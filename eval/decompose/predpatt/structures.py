"""Predicates and arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from eval.decompose.predpatt.dependency_labels import OBJECT, SUBJECT
from eval.decompose.ud.tree import Token, Tree

Kind = Literal["normal", "poss", "appos", "amod"]
Origin = Literal["borrowed subject", "borrowed object", "conjunct"]


@dataclass(eq=False)
class Argument:
    """An argument of a predicate.

    Attributes:
        root: its head word.
        origin: how the predicate got the argument; empty if it governs it.
        tokens: its phrase.
        borrowed: whether it belongs to another predicate; both then share the list ``tokens``.
        clausal: whether it is a clausal complement.
    """

    root: Token
    origin: tuple[Origin, ...] = ()
    tokens: list[Token] = field(default_factory=list)
    borrowed: bool = False
    clausal: bool = False

    @property
    def phrase(self) -> str:
        return " ".join(token.form for token in self.tokens)

    def lend(self, *origin: Origin) -> Argument:
        """A copy for another predicate; the copy shares the list ``tokens``."""
        return Argument(self.root, (*self.origin, *origin), self.tokens, borrowed=True)


@dataclass(eq=False)
class Predicate:
    """A predicate with its arguments.

    Attributes:
        root: its head word.
        kind: ``appos`` and ``amod`` state what something is, ``poss`` what it has.
        relative: whether it is the predicate of a clause that modifies an argument.
    """

    root: Token
    kind: Kind
    relative: bool = False
    tokens: list[Token] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)

    @property
    def subject(self) -> Argument | None:
        return next((a for a in self.arguments if a.root.deprel in SUBJECT), None)

    @property
    def object(self) -> Argument | None:
        return next((a for a in self.arguments if a.root.deprel in OBJECT), None)


def head_of(tree: Tree, token: Token) -> Token | None:
    return tree.tokens[token.head - 1] if token.head else None
