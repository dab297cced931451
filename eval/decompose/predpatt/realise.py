"""Generate sentences from predicates and arguments by rules.

The rules are ours; 2403.11903, which uses PredPatt as a decomposer, uses a language model. They
keep the words, order and tense of the sentence and add missing words: "is" for appositions and
adjectives, "has" for possession, the auxiliary of a participle or conjunct, the antecedent of a
relative pronoun.
"""

from collections.abc import Sequence
from dataclasses import replace

from eval.decompose.predpatt.dependency_labels import NOMINAL_SUBJECT, OBJECT, SUBJECT
from eval.decompose.predpatt.english import (
    as_owned,
    as_owner,
    as_subject,
    be,
    feature,
    has_morphology,
    is_finite,
    is_past,
    is_plural,
    text_of,
    third_person,
    verb_form,
    word,
)
from eval.decompose.predpatt.structures import Argument, Predicate, head_of
from eval.decompose.ud.tree import Token, Tree

_RELATIVE = {"that", "which", "who", "whom", "whose", "where", "when"}
_QUESTION_ADVERBS = {"when", "why", "where", "how", "whether", "because", "although", "if"}
_QUESTION_WORDS = _QUESTION_ADVERBS | {"who", "whom", "whose", "what", "which"}
_HELPER_LABELS = {"aux", "aux:pass", "auxpass", "cop", "neg"}
_END = 10**6

# A position (ids of words, or between two ids) and the words to insert there
_Part = tuple[float, list[Token]]


def realise(tree: Tree, predicates: Sequence[Predicate]) -> list[str]:
    """Write a sentence for each predicate, in order, without duplicates.

    Questions ("who painted it"), conditions ("if it rains"), and infinitives and participles
    without a subject are skipped.
    """
    antecedents = {a.root.id: a for p in predicates if (a := _antecedent(tree, p))}
    texts = []
    for predicate in predicates:
        if predicate.kind == "poss":
            words = _possession(tree, predicate, antecedents)
        elif predicate.kind == "normal":
            words = [] if _is_conditional(tree, predicate) else _clause(tree, predicate)
        else:
            words = _attribution(predicate)
        if words and words[0].form.lower() not in _QUESTION_WORDS:
            texts.append(text_of(tree, words))
    return list(dict.fromkeys(text for text in texts if text))


def _possession(tree: Tree, predicate: Predicate, antecedents: dict[int, Argument]) -> list[Token]:
    owner, owned = predicate.arguments
    if predicate.root.id not in (owner.root.id, owner.root.head):
        owner, owned = owned, owner
    above: Token | None = owner.root
    while owner.root.form.lower() == "whose" and above:
        above = head_of(tree, above)
        owner = antecedents.get(above.id, owner) if above else owner
    subject = as_owner(owner.tokens)
    root = subject[0] if len(subject) == 1 else owner.root
    return [*subject, word("have" if is_plural(root, subject) else "has"), *as_owned(owned)]


def _attribution(predicate: Predicate) -> list[Token]:
    arguments = predicate.arguments
    modified = next((a for a in arguments if a.root.id == predicate.root.head), arguments[0])
    parts: list[_Part] = [(token.id, [token]) for token in predicate.tokens]
    parts += [(a.root.id, a.tokens) for a in arguments if a is not modified]
    subject = as_subject(modified.tokens)
    if is_plural(modified.root, subject):  # "a few" without "few"
        articles = {
            t for t in subject if t.head == modified.root.id and t.form.lower() in {"a", "an"}
        }
        subject = [token for token in subject if token not in articles]
    return [*subject, word(be(modified.root, subject, past=False)), *_join(parts)]


def _clause(tree: Tree, predicate: Predicate) -> list[Token]:
    antecedent = _antecedent(tree, predicate)
    pronoun = _relative_pronoun(tree, predicate) if antecedent else None
    parts: list[_Part] = []
    subject = _subject(tree, predicate, antecedent, pronoun)
    for argument in predicate.arguments:
        if argument is subject:
            continue
        if argument is antecedent:
            parts += _gap(tree, predicate, argument, pronoun)
        elif pronoun is None or argument.root != pronoun:
            parts.append(_argument(tree, predicate, argument, antecedent, pronoun, subject))
    moved = {token.id for _, tokens in parts for token in tokens} | {pronoun and pronoun.id}
    verbs = [t for t in predicate.tokens if t.id not in moved and not _is_question_word(t)]
    finite = not has_morphology(tree) or any(is_finite(token) for token in predicate.tokens)
    if subject is None:
        return _join([*parts, *((t.id, [t]) for t in verbs)]) if finite else []
    position = _subject_position(tree, predicate, subject, antecedent, pronoun)
    if any(index == _END and tokens[0].id < position for index, tokens in parts):
        position = -1  # it followed the clause that moved to the end
    words = (
        as_subject(subject.tokens) if position < 0 else _with_marks(tree, subject, subject.tokens)
    )
    words = _with_antecedent(words, antecedent, pronoun) if subject is not antecedent else words
    if finite:
        helpers, verbs = [], _agree(tree, verbs, subject)
    else:
        helpers, verbs = _make_finite(tree, predicate, verbs, subject)
    parts += [(position, words), (position + 0.1, helpers)]
    return _join([*parts, *((token.id, [token]) for token in verbs)])


def _antecedent(tree: Tree, predicate: Predicate) -> Argument | None:
    if not predicate.relative:
        return None
    heads = {a: _first(tree, a.root).id for a in predicate.arguments}
    return next((a for a, id in heads.items() if predicate.root.head in (a.root.id, id)), None)


def _is_conditional(tree: Tree, predicate: Predicate) -> bool:
    marks = [t for t in tree.children(predicate.root.id) if t.deprel == "mark"]
    return any(mark.form.lower() in {"if", "whether", "unless"} for mark in marks)


def _is_question_word(token: Token) -> bool:
    return token.deprel in {"advmod", "mark"} and token.form.lower() in _QUESTION_ADVERBS


def _relative_pronoun(tree: Tree, predicate: Predicate) -> Token | None:
    between = tree.tokens[predicate.root.head : predicate.root.id - 1]
    return next(
        (t for t in between if t.form.lower() in _RELATIVE and t.deprel not in {"det", "mark"}),
        None,
    )


def _subject(
    tree: Tree, predicate: Predicate, antecedent: Argument | None, pronoun: Token | None
) -> Argument | None:
    if antecedent and pronoun and pronoun.deprel in SUBJECT:
        return antecedent
    candidates = [a for a in predicate.arguments if a is not antecedent]
    subjects = [a for a in candidates if _first(tree, a.root).deprel in SUBJECT]
    borrowed = [a for a in candidates if _is_borrowed(tree, predicate, a)]
    return next(iter(borrowed + subjects), None if pronoun else antecedent)


def _subject_position(
    tree: Tree,
    predicate: Predicate,
    subject: Argument,
    antecedent: Argument | None,
    pronoun: Token | None,
) -> float:
    if subject is antecedent:
        return pronoun.id if pronoun else -1
    return -1 if _is_borrowed(tree, predicate, subject) else subject.root.id


def _first(tree: Tree, token: Token) -> Token:
    while token.deprel == "conj" and token.head:
        token = tree.tokens[token.head - 1]
    return token


def _is_borrowed(tree: Tree, predicate: Predicate, argument: Argument) -> bool:
    if "borrowed subject" in argument.origin:
        return True
    first = _first(tree, argument.root)
    predicate_ids = {token.id for token in [predicate.root, *predicate.tokens]}
    subject = first.deprel in SUBJECT or predicate.root.deprel in {"xcomp", "advcl"}
    return "conjunct" in argument.origin and first.head not in predicate_ids and subject


def _gap(
    tree: Tree, predicate: Predicate, antecedent: Argument, pronoun: Token | None
) -> list[_Part]:
    if pronoun and any(pronoun in a.tokens and len(a.tokens) > 1 for a in predicate.arguments):
        return []  # _argument inserts it: "whose car", "one of which"
    if pronoun and pronoun.deprel not in OBJECT:
        cases = [t for t in tree.children(pronoun.id) if t.deprel == "case"]
        preposition = [word("in")] if pronoun.form.lower() in {"where", "when"} else cases
        return [(_END, [*preposition, *antecedent.tokens])]
    root, children = predicate.root, tree.children(predicate.root.id)
    if pronoun is None and any(t.deprel == "mark" and t.upos != "PART" for t in children):
        return []  # "the hope that it works": nothing is missing
    after = [t.id for t in children if t.deprel.startswith("compound")]
    last = predicate.tokens[-1]
    if last.upos == "ADP" and last.head == root.id:  # "the town he lived in"
        after.append(last.id)
    return [(max([root.id, *after]) + 0.5, antecedent.tokens)]


def _argument(
    tree: Tree,
    predicate: Predicate,
    argument: Argument,
    antecedent: Argument | None,
    pronoun: Token | None,
    subject: Argument | None,
) -> _Part:
    tokens = _with_antecedent(argument.tokens, antecedent, pronoun)
    root = argument.root
    if "borrowed object" in argument.origin:
        return predicate.root.id + 0.5, tokens
    in_front = root.deprel == "ccomp" and subject and root.id < predicate.root.id
    return _END if in_front else root.id, _with_marks(tree, argument, tokens)


def _with_marks(tree: Tree, argument: Argument, tokens: Sequence[Token]) -> list[Token]:
    marks = tree.children(argument.root.id) if argument.clausal else []
    return [*(t for t in marks if t.deprel == "mark" and t.id < tokens[0].id), *tokens]


def _with_antecedent(
    tokens: Sequence[Token], antecedent: Argument | None, pronoun: Token | None
) -> list[Token]:
    if antecedent is None or pronoun not in tokens:
        return list(tokens)
    index = tokens.index(pronoun)
    owner = [word("'s")] if pronoun.form.lower() == "whose" else []
    return [*tokens[:index], *antecedent.tokens, *owner, *tokens[index + 1 :]]


def _make_finite(
    tree: Tree, predicate: Predicate, verbs: list[Token], subject: Argument
) -> tuple[list[Token], list[Token]]:
    root, past = predicate.root, is_past(tree)
    helpers = [t for t in verbs if t.head == root.id and t.deprel in _HELPER_LABELS]
    head = head_of(tree, root)
    if root.deprel == "conj" and head and _is_borrowed(tree, predicate, subject) and not helpers:
        helping = [replace(t, id=0) for t in _helpers(tree, head) if t not in verbs]
        if helping:
            return [*helping, *_shared_article(tree, root, head)], verbs
    if not helpers and verb_form(root) == "VBN" and _is_active(tree, root, subject):
        return [], verbs
    form = be(subject.root, subject.tokens, past)
    if helpers and helpers[0].form.lower() in {"being", "having"}:
        if helpers[0].form.lower() == "having":
            form = "had" if past else "have" if is_plural(subject.root, subject.tokens) else "has"
        return [word(form)], [t for t in verbs if t is not helpers[0]]
    infinitive = (helpers[0] if helpers else root).upos in {"VERB", "AUX"} and (
        verb_form(helpers[0] if helpers else root) == "VB"
    )
    to = infinitive and not any(token.form.lower() == "to" for token in verbs)
    return [word(form), word("to")] if to else [word(form)], verbs


def _is_active(tree: Tree, root: Token, subject: Argument) -> bool:
    if root.form.lower().endswith("n") and root.form.lower() != "won":
        return False  # born, known, written
    head = head_of(tree, root)
    if root.upos == "VERB" and root.deprel == "conj" and head and _first(tree, root).id != root.id:
        return is_finite(head) and head.upos == "VERB" and not _helpers(tree, head)
    is_main = root.deprel.split(":")[0] in {"root", "ccomp", "parataxis"}
    is_main = is_main or root.deprel == "acl:relcl"
    return is_main and root.upos == "VERB" and _first(tree, subject.root).deprel == "nsubj"


def _shared_article(tree: Tree, root: Token, head: Token) -> list[Token]:
    articles = [t for t in tree.children(head.id) if t.form.lower() in {"a", "an"}]
    bare = not any(t.deprel.split(":")[0] in {"det", "nmod"} for t in tree.children(root.id))
    return [word("a")] if articles and bare and root.upos == "NOUN" else []


def _helpers(tree: Tree, token: Token | None) -> list[Token]:
    while token:
        helpers = [
            t
            for t in tree.children(token.id)
            if t.deprel in _HELPER_LABELS
            or (t.form.lower() in {"not", "n't"} and t.deprel == "advmod")
        ]
        if helpers or token.deprel != "conj":
            return helpers
        token = head_of(tree, token)
    return []


def _agree(tree: Tree, verbs: list[Token], subject: Argument) -> list[Token]:
    root = subject.root
    several = "conjunct" in subject.origin or any(
        t.deprel == "conj" for t in tree.children(root.id)
    )
    if not several or _first(tree, root).deprel not in NOMINAL_SUBJECT:
        return verbs
    if is_plural(root, subject.tokens):
        return verbs
    verb = next((t for t in sorted(verbs, key=lambda t: t.id) if is_finite(t)), None)
    plural = verb and (
        verb.xpos == "VBP" or verb.form.lower() == "were" or feature(verb, "Number") == "Plur"
    )
    if not verb or not plural:
        return verbs
    return [replace(t, form=third_person(t.form)) if t is verb else t for t in verbs]


def _join(parts: Sequence[_Part]) -> list[Token]:
    words: list[Token] = []
    seen: set[int] = set()
    for _, tokens in sorted(parts, key=lambda part: part[0]):
        words += [t for t in tokens if t.id == 0 or t.id not in seen]
        seen |= {t.id for t in tokens}
    return words
