"""Which words make up the phrases of predicates and arguments (rules n, o, p, q, r, u)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from eval.decompose.predpatt.rules import (
    LEFT_BY_MODIFIER,
    LIKE_ADJECTIVE,
    NOMINAL_MODIFIER,
    OUTSIDE_PREDICATE,
    SUBJECT,
    TRIVIAL,
)
from eval.decompose.predpatt.structures import Argument, Options, Predicate, head_of
from eval.decompose.ud.tree import Token, Tree


def collect_predicate(
    tree: Tree, predicate: Predicate, roots: Collection[int], options: Options
) -> None:
    """Fill in the phrase of a predicate whose arguments are known.

    Args:
        tree: the sentence.
        predicate: without a phrase.
        roots: ids of the roots of all predicates.
        options: the flags.
    """
    if predicate.kind == "poss":
        predicate.tokens.append(predicate.root)
        return
    arguments = {argument.root.id for argument in predicate.arguments}

    def belongs(token: Token) -> bool:
        rule = _predicate_rule(tree, predicate, token, arguments, roots, options)
        predicate.rules.append(rule)
        return rule == "n1"

    predicate.tokens += _below(tree, predicate.root, belongs)
    for argument in [] if options.simple else predicate.arguments:
        if not _is_modified(argument, predicate):
            for token in tree.children(argument.root.id):
                if token.deprel == "case":
                    argument.rules.append("o2")
                    predicate.rules.append("n6")
                    predicate.tokens += _below(tree, token, lambda _: True)


def collect_argument(
    tree: Tree, predicate: Predicate, argument: Argument, options: Options
) -> None:
    """Fill in the phrase of an argument of a predicate whose own phrase is known.

    The list is filled, not replaced: those who borrowed the argument have the same one.
    """
    taken = {token.id for token in predicate.tokens}

    def belongs(token: Token) -> bool:
        rule = _argument_rule(predicate, argument, token, taken, options)
        if not options.big_args:
            argument.rules.append(rule)
        return rule == "o1"

    argument.tokens += _below(tree, argument.root, belongs)


def join_conjunct(
    tree: Tree, predicate: Predicate, above: Predicate | None, top: Predicate | None, cut: bool
) -> None:
    """Give a conjunct the words that its predicate leaves out because it said them before.

    Args:
        tree: the sentence.
        predicate: the conjunct.
        above: the predicate that it is a conjunct of.
        top: the predicate that this one completes, if it is an open clausal complement.
        cut: the flag.
    """
    root, subject = predicate.root, predicate.subject
    shared = above and above.subject
    if above and subject and shared and subject.root == shared.root:
        for token in tree.children(above.root.id):
            if token.deprel == "neg":
                predicate.tokens.append(token)
                predicate.rules.append("pred_conj_borrow_aux_neg")
    head = head_of(tree, root)
    if cut or head is None or head.deprel != "xcomp" or top is None:
        return
    for token in list(top.tokens):
        own_adverb = token.head == head.id and token.deprel == "advmod"
        if token != head and not own_adverb and token.deprel != "case":
            predicate.tokens.append(token)
            predicate.rules.append("pred_conj_borrow_tokens_xcomp")


def is_core(tree: Tree, predicate: Predicate, argument: Argument) -> bool:
    """Whether an argument stays with the flag ``simple`` (else rule p1 or p2)."""
    if predicate.kind == "poss" or _is_modified(argument, predicate):
        return True
    if argument.root.deprel in SUBJECT:
        return True
    if argument.root.deprel in NOMINAL_MODIFIER:
        predicate.rules.append("p1")
        return False
    head = head_of(tree, argument.root)
    core = head is not None and (head == predicate.root or head.deprel == "xcomp")
    if not core:
        predicate.rules.append("p2")
    return core


def stripped(phrase: Predicate | Argument, options: Options) -> list[Token]:
    """The words in order without trivial ones at the ends (rule u).

    A marker before a verb stays in an argument ("to win").
    """
    if options.big_args:
        return phrase.tokens
    tokens = sorted(phrase.tokens, key=lambda token: token.id)
    if not options.strip:
        return tokens
    while tokens and tokens[0].deprel in TRIVIAL:
        if isinstance(phrase, Argument) and tokens[0].deprel == "mark":
            if len(tokens) == 1:  # the original loses all of such a phrase
                break
            if tokens[1].upos == "VERB":
                break
        tokens.pop(0)
    while tokens and tokens[-1].deprel in TRIVIAL:
        tokens.pop()
    after = [token.deprel for token in tokens[1:]] + ["punct"]
    kept = [
        token
        for token, label in zip(tokens, after, strict=False)
        if token.deprel != "punct" or label != "punct"
    ]
    if len(kept) != len(phrase.tokens):
        phrase.rules.append("u")
    return kept


def _predicate_rule(
    tree: Tree,
    predicate: Predicate,
    token: Token,
    arguments: Collection[int],
    roots: Collection[int],
    options: Options,
) -> str:
    head = head_of(tree, token)
    top_level = head is not None and (head == predicate.root or head.deprel == "xcomp")
    if token.id in arguments:
        return "n2"
    if token.id in roots and token.deprel != "amod":
        return "n3"
    if token.deprel in OUTSIDE_PREDICATE:
        return "n4"
    if top_level and token.deprel in {"cc", "conj"}:
        return "n5"
    if options.simple and token.deprel in {"advmod", "aux"}:
        return "q" if token.deprel == "advmod" else "r"
    return "n1"


def _argument_rule(
    predicate: Predicate,
    argument: Argument,
    token: Token,
    taken: Collection[int],
    options: Options,
) -> str:
    label = token.deprel
    top_level = token.head == argument.root.id
    if options.big_args:
        return "o1"
    if token.id in taken:
        return "o3"
    if top_level and label == "case":
        return "o7"
    if label == "dep" or (options.resolve_appos and label == "appos"):
        return "o4"
    if top_level and argument.root.id == predicate.root.head and label in LEFT_BY_MODIFIER:
        return "special_arg_drop_direct_dep"
    if top_level and options.resolve_conj and label in {"cc", "cc:preconj"}:
        return "o5"
    if top_level and options.resolve_conj and label == "conj":
        return "o6"
    return "o1"


def _is_modified(argument: Argument, predicate: Predicate) -> bool:
    return predicate.root.deprel in LIKE_ADJECTIVE and predicate.root.head == argument.root.id


def _below(tree: Tree, root: Token, follow: Callable[[Token], bool]) -> Iterator[Token]:
    stack = [root]
    while stack:
        token = stack.pop()
        yield token
        stack += [child for child in tree.children(token.id) if follow(child)]
