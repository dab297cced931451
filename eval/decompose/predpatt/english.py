"""English number, verb forms, pronouns, articles and spacing for ``realise.py``."""

from collections.abc import Sequence
from dataclasses import replace

from eval.decompose.predpatt.structures import Argument
from eval.decompose.ud.tree import Token, Tree

_FINITE = {"VBD", "VBP", "VBZ", "MD"}
_SUBJECT_FORM = {"me": "I", "him": "he", "her": "she", "us": "we", "them": "they"}
_OWNER_FORM = {"my": "I", "your": "you", "his": "he", "her": "she", "its": "it", "our": "we"}
_OWNER_FORM |= {"their": "they", "mine": "I", "yours": "you", "hers": "she", "ours": "we"}
_OWNER_FORM |= {"theirs": "they"}
_AS_PLURAL = {"i", "you", "we", "they", "these", "those", "both", "many", "several", "few"}
_THIRD_PERSON = {"are": "is", "were": "was", "have": "has", "do": "does", "'re": "'s", "’re": "’s"}
_ATTACHED = {".", ",", ";", ":", "!", "?", ")", "]", "}", "%", "'s", "’s", "'", "’", "n't", "n’t"}
_ATTACHED |= {"'m", "'re", "'ve", "'ll", "'d", "’m", "’re", "’ve", "’ll", "’d", "-RRB-", "”"}
_OPEN = {"(", "[", "{", "$", "£", "€", "#", "“", "-LRB-"}
_PAIRS = [("(", ")"), ("[", "]"), ("“", "”"), ("``", "''"), ("-LRB-", "-RRB-")]
_CLOSES = {closing: opening for opening, closing in _PAIRS} | {",": ","}


def word(form: str) -> Token:
    """A new word, which is not in the sentence; its id is 0."""
    return Token(0, form, form, "X", "_", "_", 0, "dep")


def feature(token: Token, name: str) -> str | None:
    pairs = (pair.partition("=") for pair in token.feats.split("|"))
    return next((value for key, _, value in pairs if key == name), None)


def is_finite(token: Token) -> bool:
    return token.xpos in _FINITE or feature(token, "VerbForm") == "Fin"


def verb_form(token: Token) -> str:
    """``VBN``, ``VBG`` or ``VB``, by the tag, else the features, else the ending."""
    if token.xpos in {"VBN", "VBG", "VB"}:
        return token.xpos
    form, tense = feature(token, "VerbForm"), feature(token, "Tense")
    if form in {"Ger", "Part"} or form is None:
        present = tense == "Pres" or form == "Ger" or (tense is None and token.form.endswith("ing"))
        return "VBG" if present else "VBN"
    return "VB"


def has_morphology(tree: Tree) -> bool:
    """Whether the parse marks finite verbs."""
    return any(is_finite(t) or feature(t, "VerbForm") for t in tree.tokens) or any(
        t.xpos.startswith("VB") for t in tree.tokens
    )


def is_plural(root: Token, phrase: Sequence[Token]) -> bool:
    """Whether a subject, including "I" and "you", takes a plural verb."""
    joined = any(t.deprel == "conj" and t.head == root.id for t in phrase)
    tagged = root.xpos in {"NNS", "NNPS"} or feature(root, "Number") == "Plur"
    return joined or tagged or root.form.lower() in _AS_PLURAL


def be(root: Token, phrase: Sequence[Token], past: bool) -> str:
    """The form of "be" for a subject."""
    if [t.form.lower() for t in phrase] == ["i"]:
        return "was" if past else "am"
    plural = is_plural(root, phrase)
    return ("were" if plural else "was") if past else ("are" if plural else "is")


def is_past(tree: Tree) -> bool:
    heads = [tree.root, *tree.children(tree.root.id)]
    verbs = [t for t in heads if t is tree.root or t.deprel.startswith(("aux", "cop"))]
    return any(t.xpos == "VBD" or feature(t, "Tense") == "Past" for t in verbs if is_finite(t))


def third_person(form: str) -> str:
    """Convert a plural verb in the present tense to singular: "are" to "is", "buy" to "buys"."""
    low = form.lower()
    if low in _THIRD_PERSON:
        return _THIRD_PERSON[low]
    if low.endswith(("s", "x", "z", "ch", "sh", "o")):
        return form + "es"
    if low.endswith("y") and low[-2:-1] not in set("aeiou"):
        return form[:-1] + "ies"
    return form + "s"


def as_subject(phrase: Sequence[Token]) -> list[Token]:
    """A phrase as a subject: a lone object pronoun changes its form."""
    if len(phrase) != 1:
        return list(phrase)
    (token,) = phrase
    return [replace(token, form=_SUBJECT_FORM.get(token.form.lower(), token.form))]


def as_owner(tokens: Sequence[Token]) -> list[Token]:
    """A possessor as a subject: "his" becomes "he", and "'s" is removed."""
    kept = [t for t in tokens if t.form not in {"'s", "’s", "'", "’"}]
    if len(kept) == 1 and kept[0].upos in {"PRON", "DET"}:
        return [replace(t, form=_OWNER_FORM.get(t.form.lower(), t.form)) for t in kept]
    return kept


def as_owned(argument: Argument) -> list[Token]:
    """What is owned: without "his", and with "a" before a singular common noun."""
    root = argument.root
    tokens = [t for t in argument.tokens if t.form.lower() not in _OWNER_FORM or t == root]
    determined = any(
        t.head == root.id and t.deprel.split(":")[0] in {"det", "nummod", "nmod"} and t.id < root.id
        for t in tokens
    )
    is_single = root.upos == "NOUN" and not is_plural(root, tokens)
    return [word("a"), *tokens] if is_single and not determined else tokens


def text_of(tree: Tree, tokens: Sequence[Token]) -> str:
    """Join words to a sentence with punctuation, spacing, articles, capital and full stop."""
    tokens = _without_stray_marks(_with_marks_between(tree, tokens))
    if not tokens:
        return ""
    first = next((token for token in tree.tokens if token.upos != "PUNCT"), None)
    parts = [_in_place(tokens, index, first) for index in range(len(tokens))]
    text = parts[0]
    for before, after, part in zip(tokens, tokens[1:], parts[1:], strict=False):
        text += part if _glued(before, after) else f" {part}"
    text = f"{text[0].upper()}{text[1:]}"
    return text if text.endswith(".") else f"{text}."


def _glued(before: Token, after: Token) -> bool:
    if before.id and after.id == before.id + 1 and not before.space_after:
        return True
    return after.form in _ATTACHED or before.form in _OPEN


def _in_place(tokens: Sequence[Token], index: int, first: Token | None) -> str:
    token = tokens[index]
    form = token.form
    if (
        first
        and token.id == first.id
        and index
        and token.upos != "PROPN"
        and form not in {"I", "I'm"}
    ):
        form = form[0].lower() + form[1:] if form[1:] == form[1:].lower() else form
    if form.lower() in {"a", "an"} and index + 1 < len(tokens):
        after = tokens[index + 1]
        if not token.id or after.id != token.id + 1:
            form = form[0] + ("n" if after.form[0].lower() in set("aeiou") else "")
    return form


def _with_marks_between(tree: Tree, tokens: Sequence[Token]) -> list[Token]:
    words: list[Token] = []
    for before, after in zip(tokens, [*tokens[1:], None], strict=True):
        words.append(before)
        mark = tree.tokens[before.id] if 0 < before.id < len(tree.tokens) else None
        if mark is None or mark.upos != "PUNCT" or mark in tokens:
            continue
        opened = sum(t.form == _CLOSES.get(mark.form) for t in words)
        closed = sum(t.form == mark.form for t in words)
        pending = opened % 2 if mark.form == "," else opened > closed
        follows = after is not None and after.id == mark.id + 1
        if follows or (pending and (after is None or after.id == 0)):
            words.append(mark)
    return words


def _without_stray_marks(tokens: Sequence[Token]) -> list[Token]:
    """Remove outer punctuation, commas with removed neighbours, and unpaired brackets."""
    kept = list(tokens)
    while kept and kept[-1].upos == "PUNCT" and kept[-1].form not in {")", "]", "”", "''", '"'}:
        kept.pop()
    while kept and kept[0].upos == "PUNCT" and kept[0].form not in {"(", "[", "“", "``", '"'}:
        kept.pop(0)
    cleaned = []
    for index, token in enumerate(kept):
        if token.upos == "PUNCT" and token.form in {",", ";", ":", "-", "--", "–", "—"}:
            before, after = kept[index - 1].id, kept[index + 1].id
            if before != token.id - 1 or after not in {token.id + 1, 0}:
                continue
        cleaned.append(token)
    for opening, closing in _PAIRS:
        forms = [token.form for token in cleaned]
        if forms.count(opening) != forms.count(closing):
            cleaned = [token for token in cleaned if token.form not in {opening, closing}]
    if sum(token.form == '"' for token in cleaned) % 2:
        cleaned = [token for token in cleaned if token.form != '"']
    return cleaned
