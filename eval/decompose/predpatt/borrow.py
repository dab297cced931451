"""Which arguments a predicate has from others (rules l, relcl, borrow and cut)."""

from __future__ import annotations

from eval.decompose.predpatt.rules import CLAUSAL_SUBJECT, LIKE_ADJECTIVE
from eval.decompose.predpatt.structures import Argument, Options, Predicate, head_of
from eval.decompose.ud.tree import Token, Tree

# "kept him from leaving": the object of the verb, not its subject, is who would leave.
_OBJECT_CONTROL = {"from", "for"}


class Borrowing:
    """Share arguments among the predicates of a tree, whose own arguments are known.

    The order of the steps matters, as one may lend what it borrowed.

    Args:
        tree: the sentence.
        found: its predicates by the id of their root.
        options: the flags.
    """

    def __init__(self, tree: Tree, found: dict[int, Predicate], options: Options):
        self.tree = tree
        self.found = found
        self.options = options

    def __call__(self) -> list[Predicate]:
        predicates = [self.found[id] for id in sorted(self.found)]
        if not self.options.cut:
            predicates = [p for p in predicates if not self._merged(p)]
        for predicate in predicates:
            self._of_modified_word(predicate)
            self._across_conjunction(predicate)
            if not self._object_control(predicate):
                self._across_adverbial_clause(predicate)
        for predicate in predicates if self.options.cut else []:
            self._for_open_complement(predicate)
        for predicate in predicates:
            if self._object_control(predicate):
                self._across_adverbial_clause(predicate)
        for predicate in predicates:
            self._where_none_is(predicate)
        for predicate in predicates:
            predicate.arguments.sort(key=lambda argument: argument.root.id)
        return predicates

    def top_of_complements(self, predicate: Predicate) -> Predicate | None:
        """The predicate above, past any that are open clausal complements themselves."""
        token = head_of(self.tree, predicate.root)
        while token and token.deprel == "xcomp" and token.id in self.found:
            token = head_of(self.tree, token)
        return self.found.get(token.id) if token else None

    def _merged(self, predicate: Predicate) -> bool:
        top = self.top_of_complements(predicate)
        if predicate.root.deprel != "xcomp" or top is None:
            return False
        for argument in predicate.arguments:
            argument.rules.append("l")
        top.arguments += predicate.arguments
        top.rules.append("l")
        return True

    def _of_modified_word(self, predicate: Predicate) -> None:
        wanted = self.options.resolve_relcl and self.options.borrow_arg_for_relcl
        head = head_of(self.tree, predicate.root)
        if wanted and head and predicate.root.deprel.startswith("acl"):
            predicate.arguments.append(Argument(head, ["arg_resolve_relcl"]))
            predicate.rules.append("pred_resolve_relcl")

    def _across_conjunction(self, predicate: Predicate) -> None:
        above = self.found.get(predicate.root.head)
        if predicate.root.deprel != "conj" or above is None:
            return
        if predicate.subject is None:
            self._take_subject(predicate, above, self.top_of_complements(above))
        if not predicate.arguments and above.object:
            predicate.arguments.append(above.object.lend("borrow_obj"))

    def _across_adverbial_clause(self, predicate: Predicate) -> None:
        above = self.found.get(predicate.root.head)
        if predicate.root.deprel != "advcl" or predicate.subject or above is None:
            return
        lender = above.object if self._object_control(predicate) else above.subject
        if lender:
            predicate.arguments.append(lender.lend("borrow_subj"))

    def _object_control(self, predicate: Predicate) -> bool:
        return any(
            token.deprel == "mark" and token.form in _OBJECT_CONTROL
            for token in self.tree.children(predicate.root.id)
        )

    def _for_open_complement(self, predicate: Predicate) -> None:
        if predicate.root.deprel != "xcomp":
            return
        for above in self._predicates_above(predicate.root):
            if above.object:
                predicate.arguments.append(above.object.lend("cut_borrow_obj"))
            elif above.subject:
                predicate.arguments.append(above.subject.lend("cut_borrow_subj"))
            elif above.root.deprel in LIKE_ADJECTIVE:
                modified = self.tree.tokens[above.root.head - 1]
                predicate.arguments.append(Argument(modified, ["cut_borrow_other"]))
            else:
                continue
            return

    def _predicates_above(self, token: Token) -> list[Predicate]:
        above = []
        while head := head_of(self.tree, token):
            token = head
            if token.id in self.found:
                above.append(self.found[token.id])
        return above

    def _where_none_is(self, predicate: Predicate) -> None:
        above = self.found.get(predicate.root.head)
        label = predicate.root.deprel
        if (
            above
            and predicate.kind == "normal"
            and predicate.subject is None
            and label not in CLAUSAL_SUBJECT
            and not label.startswith("acl")
            and not any(argument.borrowed for argument in predicate.arguments)
        ):
            self._take_subject(predicate, above, self.top_of_complements(predicate))

    def _take_subject(
        self, predicate: Predicate, above: Predicate, further: Predicate | None
    ) -> None:
        lender = above.subject or (further and further.subject)
        if lender:
            predicate.arguments.append(lender.lend("borrow_subj"))
