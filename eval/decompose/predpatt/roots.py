"""Find the roots of predicates and of their arguments (rules a to k)."""

from eval.decompose.predpatt.dependency_labels import (
    ARGUMENTS_HIDDEN,
    COMPLETING,
    LIKE_ARGUMENT,
    MODIFYING_CLAUSE,
    NOMINAL_SUBJECT,
    OBJECT,
    OBLIQUE,
    SUBJECT,
)
from eval.decompose.predpatt.structures import Argument, Kind, Predicate, head_of
from eval.decompose.ud.tree import Token, Tree


def predicate_roots(tree: Tree) -> dict[int, Predicate]:
    """The predicates by the id of their root; the first matching rule determines the kind."""
    predicates: dict[int, Predicate] = {}

    def nominate(token: Token, kind: Kind = "normal") -> Predicate:
        return predicates.setdefault(token.id, Predicate(token, kind))

    for token in tree.tokens:
        head = head_of(tree, token)
        if head is None or token.upos == "PUNCT":
            continue
        if token.deprel == "appos":  # rule d
            nominate(token, "appos")
        if token.deprel == "nmod:poss":  # v
            nominate(token, "poss")
        if token.deprel == "amod" and token.upos == "ADJ" and head.upos != "ADJ":  # e
            nominate(token, "amod")
        if head.deprel == "dep":  # an unknown relation, usually a parser error
            continue
        if token.deprel in COMPLETING | MODIFYING_CLAUSE | {"xcomp"}:  # a1, b, a2
            nominate(token)
        if _governs(tree, head, token):  # c
            nominate(head)

    unvisited = list(predicates.values())
    while unvisited:
        root = unvisited.pop().root
        for token in tree.children(root.id):
            if (
                token.deprel == "conj"
                and token.upos != "PUNCT"
                and (root.upos != "VERB" or token.upos == "VERB")
            ):  # f
                unvisited.append(nominate(token))
    return predicates


def argument_roots(tree: Tree, predicate: Predicate) -> list[Argument]:
    """The arguments that the predicate governs or modifies."""
    root, kind = predicate.root, predicate.kind
    arguments: list[Token] = []
    for token in tree.children(root.id):
        label = token.deprel
        if label in NOMINAL_SUBJECT | OBJECT:  # rule g1
            arguments.append(token)
        if label.startswith(("nmod", "obl")) and kind != "amod":  # h1
            arguments.append(token)
        if label == "advmod":  # h2
            below = tree.children(token.id)
            arguments += [t for t in below if t.deprel.startswith("nmod") or t.deprel == "obl"]
        if label in COMPLETING:  # k
            arguments.append(token)
    head = head_of(tree, root)
    if kind != "normal" and head is not None:  # i, j, w1
        arguments.append(head)
    if kind == "poss":  # w2
        arguments.append(root)
    return [Argument(token) for token in arguments]


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
