"""Borrow arguments from other predicates (rules l, relcl and borrow)."""

from eval.decompose.predpatt.dependency_labels import CLAUSAL_SUBJECT
from eval.decompose.predpatt.structures import Argument, Predicate, head_of
from eval.decompose.ud.tree import Tree

# "kept him from leaving": the object of "kept" is the subject of "leaving".
_OBJECT_CONTROL = {"from", "for"}


class Borrowing:
    """Share arguments among predicates. The order matters: borrowed arguments can be lent.

    Args:
        tree: the sentence.
        by_root: its predicates, with the arguments they govern, by the id of their root.
    """

    def __init__(self, tree: Tree, by_root: dict[int, Predicate]):
        self.tree = tree
        self.by_root = by_root

    def __call__(self) -> list[Predicate]:
        candidates = [self.by_root[id] for id in sorted(self.by_root)]
        predicates = [predicate for predicate in candidates if not self._merge_into_top(predicate)]
        for predicate in predicates:
            self._add_modified_word(predicate)
            self._borrow_across_conjunction(predicate)
            if not self._has_object_control(predicate):
                self._borrow_across_adverbial_clause(predicate)
        for predicate in predicates:
            if self._has_object_control(predicate):
                self._borrow_across_adverbial_clause(predicate)
        for predicate in predicates:
            self._borrow_missing_subject(predicate)
        for predicate in predicates:
            predicate.arguments.sort(key=lambda argument: argument.root.id)
        return predicates

    def top_of_complements(self, predicate: Predicate) -> Predicate | None:
        """The closest predicate above that is not an open clausal complement."""
        token = head_of(self.tree, predicate.root)
        while token and token.deprel == "xcomp" and token.id in self.by_root:
            token = head_of(self.tree, token)
        return self.by_root.get(token.id) if token else None

    def _merge_into_top(self, predicate: Predicate) -> bool:
        top = self.top_of_complements(predicate)
        if predicate.root.deprel != "xcomp" or top is None:
            return False
        top.arguments += predicate.arguments
        return True

    def _add_modified_word(self, predicate: Predicate) -> None:
        head = head_of(self.tree, predicate.root)
        if head and predicate.root.deprel.startswith("acl"):
            predicate.arguments.append(Argument(head))
            predicate.relative = True

    def _borrow_across_conjunction(self, predicate: Predicate) -> None:
        above = self.by_root.get(predicate.root.head)
        if predicate.root.deprel != "conj" or above is None:
            return
        if predicate.subject is None:
            _take_subject(predicate, above, self.top_of_complements(above))
        if not predicate.arguments and above.object:
            predicate.arguments.append(above.object.lend("borrowed object"))

    def _borrow_across_adverbial_clause(self, predicate: Predicate) -> None:
        above = self.by_root.get(predicate.root.head)
        if predicate.root.deprel != "advcl" or predicate.subject or above is None:
            return
        lender = above.object if self._has_object_control(predicate) else above.subject
        if lender:
            predicate.arguments.append(lender.lend("borrowed subject"))

    def _has_object_control(self, predicate: Predicate) -> bool:
        return any(
            token.deprel == "mark" and token.form in _OBJECT_CONTROL
            for token in self.tree.children(predicate.root.id)
        )

    def _borrow_missing_subject(self, predicate: Predicate) -> None:
        above = self.by_root.get(predicate.root.head)
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
