"""PredPatt's extraction, step by step in the order of the original."""

from itertools import product

from eval.decompose.predpatt.borrow import Borrowing
from eval.decompose.predpatt.dependency_labels import CLAUSAL
from eval.decompose.predpatt.phrases import (
    collect_argument,
    collect_predicate,
    join_conjunct,
    strip_trivial,
)
from eval.decompose.predpatt.roots import argument_roots, predicate_roots
from eval.decompose.predpatt.structures import Argument, Predicate, head_of
from eval.decompose.ud.tree import Tree

_RELATIVE_PRONOUNS = {"that", "which", "who"}


def extract(tree: Tree) -> list[Predicate]:
    """The predicates of a sentence with their arguments, in the order of their roots.

    As the last version of github.com/hltcoe/PredPatt with the flags of 2403.11903: all of
    ``resolve_*``, ``borrow_arg_for_relcl`` and ``strip``; not ``cut``, ``simple``, ``big_args``.
    """
    by_root = predicate_roots(tree)
    for predicate in by_root.values():
        predicate.arguments = argument_roots(tree, predicate)
    borrowing = Borrowing(tree, by_root)
    predicates = borrowing()
    roots = {predicate.root.id for predicate in predicates}
    instances: list[Predicate] = []
    for predicate in predicates:
        # In this order, a borrowed phrase is filled only if its owner comes first.
        collect_predicate(tree, predicate, roots)
        for argument in predicate.arguments:
            if not argument.borrowed and not argument.tokens:
                collect_argument(tree, predicate, argument)
        if predicate.root.deprel == "conj":
            above = by_root.get(predicate.root.head)
            top = borrowing.top_of_complements(predicate)
            join_conjunct(tree, predicate, above, top)
        instances += _expanded(tree, predicate)
    for instance in instances:
        _finish(tree, instance)
    instances.sort(key=lambda instance: instance.root.id)
    return [instance for instance in instances if _is_complete(instance)]


def _expanded(tree: Tree, predicate: Predicate) -> list[Predicate]:
    if predicate.kind == "amod":
        predicate.arguments = [a for a in predicate.arguments if a.tokens]
        return [predicate] if predicate.arguments else []
    predicate.tokens = strip_trivial(predicate)
    for argument in predicate.arguments:
        if not argument.borrowed:
            argument.tokens = strip_trivial(argument)
    choices = [
        _conjuncts(tree, predicate, argument)
        for argument in predicate.arguments
        if argument.borrowed or argument.tokens
    ]
    # The first argument changes fastest.
    chosen = [list(choice) for choice in product(*reversed(choices)) if choice]
    if chosen:  # as the original: later conjuncts look for their subject in the last choice
        predicate.arguments = chosen[-1]
    return [
        Predicate(
            predicate.root,
            predicate.kind,
            predicate.relative,
            list(predicate.tokens),
            [argument.lend() for argument in arguments],
        )
        for arguments in chosen
    ]


def _conjuncts(tree: Tree, predicate: Predicate, argument: Argument) -> list[Argument]:
    arguments = [argument]
    if argument.root.deprel not in {"ccomp", "csubj"}:
        for token in tree.children(argument.root.id):
            if token.deprel == "conj":
                conjunct = Argument(token, ("conjunct",))
                collect_argument(tree, predicate, conjunct)
                arguments.append(conjunct)
    return sorted(arguments, key=lambda a: a.root.id)


def _finish(tree: Tree, predicate: Predicate) -> None:
    predicate.arguments.sort(key=lambda argument: argument.root.id)
    if predicate.relative:
        predicate.arguments = [a for a in predicate.arguments if a.phrase not in _RELATIVE_PRONOUNS]
    predicate.tokens = strip_trivial(predicate)
    for argument in predicate.arguments:
        argument.tokens = strip_trivial(argument)
        argument.clausal = (
            predicate.kind == "normal"
            and argument.root.deprel in CLAUSAL
            and head_of(tree, argument.root) in predicate.tokens
        )


def _is_complete(predicate: Predicate) -> bool:
    sides = predicate.kind != "poss" or len(predicate.arguments) == 2
    return bool(predicate.tokens) and all(a.tokens for a in predicate.arguments) and sides
