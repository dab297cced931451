"""PredPatt's extraction, step by step in the order of the original."""

from __future__ import annotations

from itertools import product

from eval.decompose.predpatt.borrow import Borrowing
from eval.decompose.predpatt.phrases import (
    collect_argument,
    collect_predicate,
    is_core,
    join_conjunct,
    stripped,
)
from eval.decompose.predpatt.roots import argument_roots, predicate_roots
from eval.decompose.predpatt.rules import CLAUSAL
from eval.decompose.predpatt.structures import Argument, Options, Predicate, head_of
from eval.decompose.ud.tree import Tree

_RELATIVE_PRONOUNS = {"that", "which", "who"}
_ALL = Options()


def extract(tree: Tree, options: Options = _ALL) -> list[Predicate]:
    """The predicates of a sentence with their arguments, in the order of their roots.

    They are those of the original (github.com/hltcoe/PredPatt, at its last version), whose rules
    are named in ``RULES``. A sentence may have none.
    """
    found = predicate_roots(tree, options)
    for predicate in found.values():
        predicate.arguments = argument_roots(tree, predicate, options)
    borrowing = Borrowing(tree, found, options)
    predicates = borrowing()
    roots = {predicate.root.id for predicate in predicates}
    instances: list[Predicate] = []
    for predicate in predicates:
        # One is done before the next begins: a borrowed phrase is there if its owner came first.
        collect_predicate(tree, predicate, roots, options)
        for argument in predicate.arguments:
            if not argument.borrowed and not argument.tokens:
                collect_argument(tree, predicate, argument, options)
        if options.simple:
            own = [a for a in predicate.arguments if is_core(tree, predicate, a)]
            predicate.arguments = own
        if predicate.root.deprel == "conj":
            above = found.get(predicate.root.head)
            top = borrowing.top_of_complements(predicate)
            join_conjunct(tree, predicate, above, top, options.cut)
        instances += _expanded(tree, predicate, options)
    for instance in instances:
        _finish(tree, instance, options)
    instances.sort(key=lambda instance: instance.root.id)
    return [instance for instance in instances if _whole(instance)]


def _expanded(tree: Tree, predicate: Predicate, options: Options) -> list[Predicate]:
    if not options.resolve_conj or predicate.kind == "amod":
        predicate.arguments = [a for a in predicate.arguments if a.tokens]
        return [predicate] if predicate.arguments else []
    predicate.tokens = stripped(predicate, options)
    for argument in predicate.arguments:
        if not argument.borrowed:
            argument.tokens = stripped(argument, options)
    choices = [
        _conjuncts(tree, predicate, argument, options)
        for argument in predicate.arguments
        if argument.borrowed or argument.tokens
    ]
    # The first argument changes fastest.
    chosen = [list(choice) for choice in product(*reversed(choices)) if choice]
    if chosen:  # the original goes on with the last choice: a later conjunct looks here for its
        predicate.arguments = chosen[-1]  # subject, and a conjunct of a subject is none
    return [
        Predicate(
            predicate.root,
            predicate.kind,
            list(predicate.rules),
            list(predicate.tokens),
            [argument.lend() for argument in arguments],
        )
        for arguments in chosen
    ]


def _conjuncts(
    tree: Tree, predicate: Predicate, argument: Argument, options: Options
) -> list[Argument]:
    found = [argument]
    if argument.root.deprel not in {"ccomp", "csubj"}:
        for token in tree.children(argument.root.id):
            if token.deprel == "conj":
                conjunct = Argument(token, ["m"])
                collect_argument(tree, predicate, conjunct, options)
                found.append(conjunct)
    return sorted(found, key=lambda a: a.root.id)


def _finish(tree: Tree, predicate: Predicate, options: Options) -> None:
    arguments = sorted(predicate.arguments, key=lambda argument: argument.root.id)
    if "pred_resolve_relcl" in predicate.rules:
        kept = [a for a in arguments if a.phrase not in _RELATIVE_PRONOUNS]
        if len(kept) < len(arguments):
            predicate.rules.append("en_relcl_dummy_arg_filter")
        arguments = kept
    predicate.tokens = stripped(predicate, options)
    for argument in arguments:
        argument.tokens = stripped(argument, options)
        argument.rules = list(dict.fromkeys(argument.rules))
        argument.clausal = (
            predicate.kind == "normal"
            and argument.root.deprel in CLAUSAL
            and head_of(tree, argument.root) in predicate.tokens
        )
    predicate.arguments = arguments
    predicate.rules += {"appos": ["s"], "amod": ["t"]}.get(predicate.kind, [])
    predicate.rules = list(dict.fromkeys(predicate.rules))


def _whole(predicate: Predicate) -> bool:
    sides = predicate.kind != "poss" or len(predicate.arguments) == 2
    return bool(predicate.tokens) and all(a.tokens for a in predicate.arguments) and sides
