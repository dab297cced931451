"""Which arguments a predicate has from others (rules l, relcl and borrow)."""

from eval.decompose.predpatt.dependency_labels import CLAUSAL_SUBJECT
from eval.decompose.predpatt.structures import Argument, Predicate, head_of
from eval.decompose.ud.tree import Tree

# "kept him from leaving": the object of the verb, not its subject, is who would leave.
_OBJECT_CONTROL = {"from", "for"}


class Borrowing:
    """Share arguments among the predicates of a tree, whose own arguments are known.

    The order of the steps matters, as one may lend what it borrowed.

    Args:
        tree: the sentence.
        found: its predicates by the id of their root.
    """

    def __init__(self, tree: Tree, found: dict[int, Predicate]):
        self.tree = tree
        self.found = found

    def __call__(self) -> list[Predicate]:
        every = [self.found[id] for id in sorted(self.found)]
        predicates = [predicate for predicate in every if not self._merged(predicate)]
        for predicate in predicates:
            self._of_modified_word(predicate)
            self._across_conjunction(predicate)
            if not self._object_control(predicate):
                self._across_adverbial_clause(predicate)
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
        top.arguments += predicate.arguments
        return True

    def _of_modified_word(self, predicate: Predicate) -> None:
        head = head_of(self.tree, predicate.root)
        if head and predicate.root.deprel.startswith("acl"):
            predicate.arguments.append(Argument(head))
            predicate.relative = True

    def _across_conjunction(self, predicate: Predicate) -> None:
        above = self.found.get(predicate.root.head)
        if predicate.root.deprel != "conj" or above is None:
            return
        if predicate.subject is None:
            _take_subject(predicate, above, self.top_of_complements(above))
        if not predicate.arguments and above.object:
            predicate.arguments.append(above.object.lend("borrowed object"))

    def _across_adverbial_clause(self, predicate: Predicate) -> None:
        above = self.found.get(predicate.root.head)
        if predicate.root.deprel != "advcl" or predicate.subject or above is None:
            return
        lender = above.object if self._object_control(predicate) else above.subject
        if lender:
            predicate.arguments.append(lender.lend("borrowed subject"))

    def _object_control(self, predicate: Predicate) -> bool:
        return any(
            token.deprel == "mark" and token.form in _OBJECT_CONTROL
            for token in self.tree.children(predicate.root.id)
        )

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
            _take_subject(predicate, above, self.top_of_complements(predicate))


def _take_subject(predicate: Predicate, above: Predicate, further: Predicate | None) -> None:
    lender = above.subject or (further and further.subject)
    if lender:
        predicate.arguments.append(lender.lend("borrowed subject"))
