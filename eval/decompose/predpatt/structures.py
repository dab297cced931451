"""Predicates and arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from eval.decompose.predpatt.dependency_labels import OBJECT, SUBJECT
from eval.decompose.ud.tree import Token, Tree

Kind = Literal["normal", "poss", "appos", "amod"]
# A subject or an object of another predicate, or a conjunct of an argument.
Origin = Literal["borrowed subject", "borrowed object", "conjunct"]


@dataclass(eq=False)
class Argument:
    """An argument of a predicate.

    Attributes:
        root: its head word.
        origin: where it is from, if not the predicate's own.
        tokens: its phrase.
        borrowed: another predicate's; the phrase is then the very list of the other.
        clausal: a clause that completes the predicate.
    """

    root: Token
    origin: tuple[Origin, ...] = ()
    tokens: list[Token] = field(default_factory=list)
    borrowed: bool = False
    clausal: bool = False

    @property
    def phrase(self) -> str:
        """The words, with blanks between."""
        return " ".join(token.form for token in self.tokens)

    def lend(self, *origin: Origin) -> Argument:
        """The same for another predicate. Its phrase may still be empty, and fills with this."""
        return Argument(self.root, (*self.origin, *origin), self.tokens, borrowed=True)


@dataclass(eq=False)
class Predicate:
    """A predicate with its arguments.

    Attributes:
        root: its head word.
        kind: ``appos`` and ``amod`` are statements of what something is, ``poss`` of what it has.
        relative: the clause of an argument, of the word that the clause modifies.
        tokens: its phrase.
        arguments: in the order of their roots.
    """

    root: Token
    kind: Kind
    relative: bool = False
    tokens: list[Token] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)

    @property
    def subject(self) -> Argument | None:
        """The first argument that is a subject, of whatever."""
        return next((a for a in self.arguments if a.root.deprel in SUBJECT), None)

    @property
    def object(self) -> Argument | None:
        """The first argument that is an object, of whatever."""
        return next((a for a in self.arguments if a.root.deprel in OBJECT), None)


def head_of(tree: Tree, token: Token) -> Token | None:
    """The word that a word depends on; none for the root."""
    return tree.tokens[token.head - 1] if token.head else None
