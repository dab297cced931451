"""Collect the words of predicate and argument phrases (rules n, o and u)."""

from collections.abc import Callable, Collection, Iterator

from eval.decompose.predpatt.dependency_labels import (
    LEFT_BY_MODIFIER,
    LIKE_ADJECTIVE,
    OUTSIDE_PREDICATE,
    TRIVIAL,
)
from eval.decompose.predpatt.structures import Argument, Predicate, head_of
from eval.decompose.ud.tree import Token, Tree


def collect_predicate(tree: Tree, predicate: Predicate, roots: Collection[int]) -> None:
    """Fill in the phrase of a predicate with known arguments.

    ``roots`` are the ids of the roots of all predicates.
    """
    if predicate.kind == "poss":
        predicate.tokens.append(predicate.root)
        return
    arguments = {argument.root.id for argument in predicate.arguments}

    def belongs(token: Token) -> bool:
        # Rules n2 to n5: exclude arguments, other predicates except adjectives, clauses, and
        # conjuncts of the root or of an open complement.
        head = head_of(tree, token)
        top_level = head is not None and (head == predicate.root or head.deprel == "xcomp")
        return not (
            token.id in arguments
            or (token.id in roots and token.deprel != "amod")
            or token.deprel in OUTSIDE_PREDICATE
            or (top_level and token.deprel in {"cc", "conj"})
        )

    predicate.tokens += _below(tree, predicate.root, belongs)
    for argument in predicate.arguments:
        if not _is_modified(argument, predicate):
            for token in tree.children(argument.root.id):
                if token.deprel == "case":  # n6, o2
                    predicate.tokens += _below(tree, token, lambda _: True)


def collect_argument(tree: Tree, predicate: Predicate, argument: Argument) -> None:
    """Fill in the phrase of an argument in place: borrowed arguments share the list."""
    taken = {token.id for token in predicate.tokens}
    of_modified = argument.root.id == predicate.root.head

    def belongs(token: Token) -> bool:
        # Rules o3 to o7 and special_arg_drop_direct_dep: exclude words of the predicate, appos,
        # unknown relations and, below the root, case markers, conjuncts, and the clause of a
        # modified word.
        label = token.deprel
        if token.id in taken or label in {"dep", "appos"}:
            return False
        if token.head != argument.root.id:
            return True
        outside = label in {"case", "cc", "cc:preconj", "conj"}
        return not (outside or (of_modified and label in LEFT_BY_MODIFIER))

    argument.tokens += _below(tree, argument.root, belongs)


def join_conjunct(
    tree: Tree, predicate: Predicate, above: Predicate | None, top: Predicate | None
) -> None:
    """Add to a conjunct of ``above`` the words that it shares with an earlier predicate.

    ``top`` is the predicate that it completes, if it is an open clausal complement.
    """
    root, subject = predicate.root, predicate.subject
    shared = above and above.subject
    if above and subject and shared and subject.root == shared.root:
        for token in tree.children(above.root.id):
            if token.deprel == "neg":
                predicate.tokens.append(token)
    head = head_of(tree, root)
    if head is None or head.deprel != "xcomp" or top is None:
        return
    for token in list(top.tokens):
        is_adverb = token.head == head.id and token.deprel == "advmod"
        if token != head and not is_adverb and token.deprel != "case":
            predicate.tokens.append(token)


def strip_trivial(phrase: Predicate | Argument) -> list[Token]:
    """The words in order without trivial outer words (rule u); "to" of "to win" is kept."""
    tokens = sorted(phrase.tokens, key=lambda token: token.id)
    while tokens and tokens[0].deprel in TRIVIAL:
        if isinstance(phrase, Argument) and tokens[0].deprel == "mark":
            if len(tokens) == 1:  # the original drops the whole phrase
                break
            if tokens[1].upos == "VERB":
                break
        tokens.pop(0)
    while tokens and tokens[-1].deprel in TRIVIAL:
        tokens.pop()
    after = [token.deprel for token in tokens[1:]] + ["punct"]
    return [
        token
        for token, label in zip(tokens, after, strict=False)
        if token.deprel != "punct" or label != "punct"
    ]


def _is_modified(argument: Argument, predicate: Predicate) -> bool:
    return predicate.root.deprel in LIKE_ADJECTIVE and predicate.root.head == argument.root.id


def _below(tree: Tree, root: Token, follow: Callable[[Token], bool]) -> Iterator[Token]:
    stack = [root]
    while stack:
        token = stack.pop()
        yield token
        stack += [child for child in tree.children(token.id) if follow(child)]
