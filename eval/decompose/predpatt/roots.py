"""Which words are roots of predicates, and of their own arguments (rules a to k)."""

from __future__ import annotations

from eval.decompose.predpatt.rules import (
    ARGUMENTS_HIDDEN,
    COMPLETING,
    LIKE_ARGUMENT,
    MODIFYING_CLAUSE,
    NOMINAL_SUBJECT,
    OBJECT,
    OBLIQUE,
    SUBJECT,
)
from eval.decompose.predpatt.structures import Argument, Kind, Options, Predicate, head_of
from eval.decompose.ud.tree import Token, Tree


def predicate_roots(tree: Tree, options: Options) -> dict[int, Predicate]:
    """The predicates by the id of their root. The first rule that finds a root says its kind."""
    found: dict[int, Predicate] = {}

    def nominate(token: Token, rule: str, kind: Kind = "normal") -> Predicate:
        predicate = found.setdefault(token.id, Predicate(token, kind))
        predicate.rules.append(rule)
        return predicate

    for token in tree.tokens:
        head = head_of(tree, token)
        if head is None or token.upos == "PUNCT":
            continue
        if options.resolve_appos and token.deprel == "appos":
            nominate(token, "d", "appos")
        if options.resolve_poss and token.deprel == "nmod:poss":
            nominate(token, "v", "poss")
        if options.resolve_amod and _modifies(token, head):
            nominate(token, "e", "amod")
        if head.deprel == "dep":  # an unknown relation is most often a mistake of the parser
            continue
        if token.deprel in COMPLETING:
            nominate(token, "a1")
        if options.resolve_relcl and token.deprel in MODIFYING_CLAUSE:
            nominate(token, "b")
        if token.deprel == "xcomp":
            nominate(token, "a2")
        if _governs(tree, head, token):
            nominate(head, "c")

    open_ = list(found.values())
    while open_:
        root = open_.pop().root
        for token in tree.children(root.id):
            if token.deprel == "conj" and _conjoined(root, token):
                open_.append(nominate(token, "f"))
    return found


def argument_roots(tree: Tree, predicate: Predicate, options: Options) -> list[Argument]:
    """The arguments that the predicate itself governs or, as a modifier, is about."""
    root, kind = predicate.root, predicate.kind
    found: list[tuple[Token, str]] = []
    for token in tree.children(root.id):
        label = token.deprel
        if label in NOMINAL_SUBJECT | OBJECT:
            found.append((token, "g1"))
        if label.startswith(("nmod", "obl")) and kind != "amod":
            found.append((token, "h1"))
        if label == "advmod":
            below = tree.children(token.id)
            found += [(t, "h2") for t in below if t.deprel.startswith("nmod") or t.deprel == "obl"]
        if label in COMPLETING or (options.cut and label == "xcomp"):
            found.append((token, "k"))
    head = head_of(tree, root)
    if kind != "normal" and head is not None:
        found.append((head, {"amod": "i", "appos": "j", "poss": "w1"}[kind]))
    if kind == "poss":
        found.append((root, "w2"))
    return [Argument(token, [rule]) for token, rule in found]


def _modifies(token: Token, head: Token) -> bool:
    return token.deprel == "amod" and token.upos == "ADJ" and head.upos != "ADJ"


def _governs(tree: Tree, head: Token, token: Token) -> bool:
    label = token.deprel
    if not (
        label in SUBJECT | OBJECT | {"ccomp", "xcomp", "advcl"}
        or (head.upos == "VERB" and label in OBLIQUE)
    ):
        return False
    if label == "ccomp" and head.deprel in LIKE_ARGUMENT:  # "the hope that …" is an argument
        return False
    if head.deprel == "xcomp":
        above = head_of(tree, head)
        return above is not None and not _hides_arguments(tree, above)
    return not _hides_arguments(tree, head)


def _hides_arguments(tree: Tree, token: Token) -> bool:
    return token.deprel in ARGUMENTS_HIDDEN and not any(
        child.deprel in SUBJECT | OBJECT for child in tree.children(token.id)
    )


def _conjoined(root: Token, token: Token) -> bool:
    return token.upos != "PUNCT" and (root.upos != "VERB" or token.upos == "VERB")
