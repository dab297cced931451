"""Predicates, arguments, and the flags that decide which there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from eval.decompose.predpatt.rules import OBJECT, SUBJECT
from eval.decompose.ud.tree import Token, Tree

Kind = Literal["normal", "poss", "appos", "amod"]


@dataclass(frozen=True)
class Options:
    """What PredPatt extracts. The original starts with all of ``resolve_*`` off.

    Args:
        resolve_relcl: clauses that modify a word (relative, participial, adverbial) are predicates.
        resolve_appos: appositions are predicates.
        resolve_amod: adjectives that modify a noun are predicates.
        resolve_conj: an argument of several conjuncts makes a predicate for each of them.
        resolve_poss: possession is a predicate.
        borrow_arg_for_relcl: the word that a clause modifies is an argument of the clause.
        strip: phrases do not begin or end with punctuation, a conjunction or a marker.
        simple: no adverbs and auxiliaries in predicates, and only their core arguments.
        cut: an open clausal complement is a predicate, not part of the one that it completes.
        big_args: an argument is all that depends on its root.
    """

    resolve_relcl: bool = True
    resolve_appos: bool = True
    resolve_amod: bool = True
    resolve_conj: bool = True
    resolve_poss: bool = True
    borrow_arg_for_relcl: bool = True
    strip: bool = True
    simple: bool = False
    cut: bool = False
    big_args: bool = False


@dataclass(eq=False)
class Argument:
    """An argument of a predicate.

    Attributes:
        root: its head word.
        rules: names from ``RULES``, of those that made it.
        tokens: its phrase.
        borrowed: another predicate's; the phrase is then the very list of the other.
        clausal: a clause that completes the predicate.
    """

    root: Token
    rules: list[str]
    tokens: list[Token] = field(default_factory=list)
    borrowed: bool = False
    clausal: bool = False

    @property
    def phrase(self) -> str:
        """The words, with blanks between."""
        return " ".join(token.form for token in self.tokens)

    def lend(self, *rules: str) -> Argument:
        """The same for another predicate. Its phrase may still be empty, and fills with this."""
        return Argument(self.root, [*self.rules, *rules], self.tokens, borrowed=True)


@dataclass(eq=False)
class Predicate:
    """A predicate with its arguments.

    Attributes:
        root: its head word.
        kind: ``appos`` and ``amod`` are statements of what something is, ``poss`` of what it has.
        rules: names from ``RULES``, of those that made it.
        tokens: its phrase.
        arguments: in the order of their roots.
    """

    root: Token
    kind: Kind
    rules: list[str] = field(default_factory=list)
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
