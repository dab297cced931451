"""Rules that convert the labels of spaCy's English models to Universal Dependencies v2.

spaCy's English models use the CLEAR labels (Choi and Palmer 2012), in which prepositions and
copulas are heads; in Universal Dependencies (https://universaldependencies.org/en/) they depend on
the content word. :data:`RELATIONS` renames labels; the functions change heads, in the order of
:func:`convert`. The input is :class:`Token` with spaCy's label in ``deprel`` and optionally
``Entity=B-PERSON`` or ``I-PERSON`` in ``misc``; spaCy is not imported.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from components.english import MONTHS
from eval.decompose.ud.tree import Token, Tree

# Labels that are only renamed; _relation() handles the others.
RELATIONS = {
    "ROOT": "root",
    "acomp": "xcomp",
    "agent": "obl:agent",
    "attr": "xcomp",
    "auxpass": "aux:pass",
    "csubjpass": "csubj:pass",
    "dative": "iobj",
    "dobj": "obj",
    "intj": "discourse",
    "meta": "dep",
    "neg": "advmod",
    "nsubjpass": "nsubj:pass",
    "oprd": "xcomp",
    "pcomp": "advcl",
    "pobj": "obl",
    "poss": "nmod:poss",
    "preconj": "cc:preconj",
    "predet": "det:predet",
    "prt": "compound:prt",
    "quantmod": "advmod",
    "relcl": "acl:relcl",
}

# Fixed expressions of English to the relation of their first word.
FIXED = {
    ("according", "to"): "case",
    ("as", "well", "as"): "cc",
    ("as", "well"): "advmod",
    ("at", "least"): "advmod",
    ("at", "most"): "advmod",
    ("because", "of"): "case",
    ("due", "to"): "case",
    ("fewer", "than"): "advmod",
    ("instead", "of"): "case",
    ("less", "than"): "advmod",
    ("more", "than"): "advmod",
    ("of", "course"): "advmod",
    ("prior", "to"): "case",
    ("rather", "than"): "cc",
    ("such", "as"): "case",
    ("up", "to"): "advmod",
}

_PREDICATES = ("VERB", "AUX", "ADJ", "ADV")
_NOMINALS = ("nsubj", "nsubjpass", "dobj", "pobj")  # many [of them]
_FINITE = ("VBD", "VBZ", "VBP", "MD")
_PLACES = re.compile("here|there|home|abroad|away|back|in|out|up|down|over|off|together|alone")
_ASKS = re.compile("how|where|here")
_UNITS = re.compile("acl(:relcl)?|advcl|appos|conj|dep|nmod(:unmarked)?|obl|parataxis")
_SEPARATORS = (",", ";", ":", "(", ")", "–", "—", "-")


@dataclass
class _Word:
    token: Token
    upos: str
    head: int
    dep: str

    @property
    def id(self) -> int:
        return self.token.id

    @property
    def form(self) -> str:
        return self.token.form.lower()


class _Sentence:
    """The mutable words of a sentence; ids are 1-based."""

    def __init__(self, tokens: Sequence[Token]):
        self.words = [_Word(t, t.upos, t.head, t.deprel) for t in tokens]

    def __getitem__(self, id: int) -> _Word:
        return self.words[id - 1]

    def kids(self, id: int, *deps: str) -> list[_Word]:
        return [w for w in self.words if w.head == id and (not deps or w.dep in deps)]

    def lift(self, low: _Word, high: _Word, dep: str, below: str) -> None:
        for kid in self.kids(high.id):
            kid.head = low.id
        low.head, low.dep = high.head, dep
        high.head, high.dep = low.id, below

    def deepest_first(self) -> list[_Word]:
        depth: dict[int, int] = {}
        level = {0}
        while level := {word.id for word in self.words if word.head in level}:
            depth |= dict.fromkeys(level, len(depth))
        return sorted(self.words, key=lambda word: (-depth[word.id], word.id))

    def below(self, id: int) -> set[int]:
        ids, stack = {id}, [id]
        while stack:
            children = [w.id for w in self.kids(stack.pop())]
            ids.update(children)
            stack.extend(children)
        return ids


def convert(tokens: Sequence[Token], text: str) -> Tree:
    """Convert a parse with spaCy's English tags, heads and labels to Universal Dependencies v2."""
    sentence = _Sentence(tokens)
    _one_root(sentence)
    _run_ons(sentence)
    _money(sentence)
    _prepositions(sentence)
    _small_clauses(sentence)
    _copulas(sentence)
    _expletives(sentence)
    _coordination(sentence)
    for word in sentence.words:
        word.dep = _relation(sentence, word)
    _names(sentence)
    _fixed(sentence)
    _punctuation(sentence)
    for word in sentence.words:
        word.upos = _part_of_speech(word)
    converted = tuple(
        replace(
            w.token,
            upos=w.upos,
            head=w.head,
            deprel=w.dep,
            misc="_" if w.token.space_after else "SpaceAfter=No",
        )
        for w in sentence.words
    )
    return Tree(converted, text)


def _one_root(sentence: _Sentence) -> None:
    first, *extra_roots = sentence.kids(0)
    for word in extra_roots:
        word.head, word.dep = first.id, "parataxis"


def _run_ons(sentence: _Sentence) -> None:
    for word in sentence.words:
        if word.dep != "ccomp" or word.id > word.head or sentence.kids(word.id, "mark", "complm"):
            continue
        head = sentence[word.head]
        if max(sentence.below(word.id)) < head.id:
            word.head, word.dep = head.head, head.dep
            head.head, head.dep = word.id, "parataxis"
            for kid in sentence.kids(head.id, "punct"):
                if kid.id < head.id and kid.token.xpos in ("``", "''"):
                    kid.head = word.id


def _money(sentence: _Sentence) -> None:
    for word in sentence.words:
        head = sentence[word.head] if word.head else word
        if word.token.xpos == "$" and head is not word and head.upos == "NUM":
            label = "compound" if head.dep == "nummod" else head.dep
            sentence.lift(word, head, label, "nummod")
            for kid in sentence.kids(word.id, "compound", "quantmod"):
                kid.head = head.id


def _prepositions(sentence: _Sentence) -> None:
    for word in sentence.deepest_first():
        inside = sentence.kids(word.id, "pobj", "pcomp")
        if not inside:
            continue
        low = min(inside, key=lambda kid: (kid.dep != "pobj", kid.id))
        clause = low.dep == "pcomp" and low.upos in ("VERB", "AUX")
        clause = clause and not sentence.kids(low.id, "case")
        label = _oblique(sentence, word, clause)
        for kid in inside:
            if kid is low:
                continue
            if kid.upos in ("ADP", "SCONJ"):  # due to illness: both mark the noun
                kid.head, kid.dep = low.id, "case"
            else:  # from 1950 to 1972
                kid.head, kid.dep = (word.head, label) if word.head else (low.id, "dep")
        sentence.lift(low, word, label, "mark" if clause else "case")


def _oblique(sentence: _Sentence, word: _Word, clause: bool) -> str:
    if word.dep == "agent" and not clause:
        return "obl:agent"
    if word.dep in ("conj", "ROOT", "ccomp", "pcomp", "appos", "parataxis", "relcl", "acl"):
        return word.dep
    head = sentence[word.head]
    if word.dep in ("attr", "acomp") and head.token.lemma == "be":
        return word.dep
    if head.upos in ("ADP", "SCONJ") or head.dep == "prep":
        return "pcomp"  # out of school, according to him: one phrase with two cases
    verbal = head.upos in _PREDICATES and head.dep not in _NOMINALS
    if clause:
        return "advcl" if verbal else "acl"
    return "obl" if verbal else "nmod"


def _small_clauses(sentence: _Sentence) -> None:
    for word in sentence.words:
        subjects = sentence.kids(word.id, "nsubj")
        if word.dep != "ccomp" or not subjects or subjects[0].id < word.head:
            continue
        helpers = sentence.kids(word.id, "aux", "auxpass", "mark")
        tags = [word.token.xpos, *(helper.token.xpos for helper in helpers)]
        if "IN" in tags[1:] or any(tag in _FINITE for tag in tags):
            continue
        subjects[0].head, subjects[0].dep = word.head, "dobj"
        word.dep = "xcomp"


def _copulas(sentence: _Sentence) -> None:
    for word in sentence.deepest_first():
        if word.token.lemma != "be" or word.dep in ("aux", "auxpass", "cop"):
            continue
        if any(kid.form == "there" for kid in sentence.kids(word.id, "expl")):
            for kid in sentence.kids(word.id, "attr"):
                kid.dep = "nsubj"
            continue
        predicate = _predicate(sentence, word)
        if predicate is not None:
            sentence.lift(predicate, word, word.dep, "cop")


def _predicate(sentence: _Sentence, be: _Word) -> _Word | None:
    for dep in ("attr", "acomp"):
        predicates = sentence.kids(be.id, dep)
        if predicates:
            return min(predicates, key=lambda kid: (kid.id < be.id, kid.id))
    if sentence.kids(be.id, "ccomp", "xcomp") or not sentence.kids(be.id, "nsubj", "csubj"):
        return None
    modifiers = sentence.kids(be.id, "obl", "advmod")
    after = [k for k in modifiers if k.id > be.id and (k.dep == "obl" or _PLACES.fullmatch(k.form))]
    before = [k for k in modifiers if k.id < be.id and _ASKS.fullmatch(k.form)]
    return next(iter([*after, *before]), None)


def _expletives(sentence: _Sentence) -> None:
    for cop in [word for word in sentence.words if word.dep == "cop"]:
        clauses = [k for k in sentence.kids(cop.head, "ccomp", "xcomp") if k.id > cop.head]
        for kid in sentence.kids(cop.head, "nsubj"):
            if kid.form == "it" and clauses and sentence[cop.head].upos == "ADJ":
                kid.dep, clauses[0].dep = "expl", "csubj"


def _coordination(sentence: _Sentence) -> None:
    conjuncts = [word for word in sentence.words if word.dep == "conj"]
    for word in sentence.words:
        after = [c for c in conjuncts if c.head == word.head and c.id > word.id]
        if word.dep == "cc" and after and word.id > word.head:
            word.head = after[0].id
    tops = []
    for word in conjuncts:
        top = sentence[word.head]
        while top.dep == "conj":
            top = sentence[top.head]
        tops.append(top.id)
    for word, top in zip(conjuncts, tops, strict=True):
        word.head = top


def _relation(sentence: _Sentence, word: _Word) -> str:
    head = sentence[word.head] if word.head else None
    tag = word.token.xpos
    if head is None:
        return "root"
    if word.dep in ("aux", "prep") and tag == "TO":
        return "mark"
    if word.dep == "prep":  # without an object: particle, adverb or stranded
        bare = "obl" if head.upos in _PREDICATES else "nmod"
        return {"RP": "compound:prt", "RB": "advmod"}.get(tag, bare)
    if word.dep == "npadvmod":
        return "obl:unmarked" if head.upos in _PREDICATES else "nmod:unmarked"
    if word.dep == "appos" and word.upos == "NUM":  # Rough Cut (2008)
        return "nmod:unmarked"
    if word.dep == "punct" and (word.upos, head.upos) == ("SYM", "NUM"):  # 1803-1871
        return "case"
    if word.dep == "nmod":
        return "compound" if word.id < head.id and word.upos in ("NOUN", "PROPN") else "nmod"
    if word.dep in ("amod", "compound") and tag[:2] in ("JJ", "NN"):
        return "amod" if tag[:2] == "JJ" else "compound"
    if word.dep == "nummod" and head.token.form in MONTHS and len(word.token.form) == 4:
        return "nmod:unmarked"
    return RELATIONS.get(word.dep, word.dep)


def _names(sentence: _Sentence) -> None:
    for last in sentence.words:
        span = [last]
        while "Entity=I-PERSON" in span[0].token.misc and span[0].id > 1:
            span.insert(0, sentence[span[0].id - 1])
        ends = last.id == len(sentence.words) or (
            "Entity=I-PERSON" not in sentence[last.id + 1].token.misc
        )
        if not ends or "-PERSON" not in last.token.misc:
            continue
        while span[-1].token.xpos == "POS" and len(span) > 1:
            span.pop()
        last = span[-1]
        before = sentence[span[0].id - 1] if span[0].id > 1 else None
        if before and before.dep == "compound" and before.head == last.id:
            span.insert(0, before)
        if len(span) == 1 or any(w.head != last.id or w.dep != "compound" for w in span[:-1]):
            continue
        first = span[0]
        sentence.lift(first, last, last.dep, "flat")
        for word in span[1:]:
            word.dep = "flat"
        determiners = sentence.kids(first.id, "det", "nmod:poss")
        if first is before and any(kid.id < first.id for kid in determiners):
            span[1].dep = "appos"  # the sculptor Jean Morel, but Professor Morel
            for word in span[2:]:
                word.head = span[1].id


def _fixed(sentence: _Sentence) -> None:
    forms = [word.form for word in sentence.words]
    for phrase, label in FIXED.items():
        for start in range(len(forms) - len(phrase) + 1):
            if tuple(forms[start : start + len(phrase)]) != phrase:
                continue
            span = sentence.words[start : start + len(phrase)]
            ids = {word.id for word in span}
            outside = {word.head for word in span} - ids
            outside_words = [w for w in sentence.words if w.id not in ids and w.head in ids]
            if len(outside) != 1 or outside_words or any(w.dep == "fixed" for w in span):
                continue
            for word in span:
                word.head, word.dep = span[0].id, "fixed"
            span[0].head, span[0].dep = outside.pop(), label


def _punctuation(sentence: _Sentence) -> None:
    for word in sentence.words:
        if word.dep != "punct" or word.form not in _SEPARATORS:
            continue
        units = [kid for kid in sentence.kids(word.head) if _UNITS.fullmatch(kid.dep)]
        spans = [(kid, sentence.below(kid.id)) for kid in units]
        opens = [kid for kid, ids in spans if min(ids) == word.id + 1]
        closes = [kid for kid, ids in spans if max(ids) == word.id - 1]
        sides = {"(": opens, ")": closes}.get(word.form, [*opens, *closes])
        for kid in sides[:1]:
            word.head = kid.id
    last = sentence.words[-1]
    if last.dep == "punct" and last.token.form in (".", "!", "?"):
        last.head = sentence.kids(0)[0].id


def _part_of_speech(word: _Word) -> str:
    dep, tag = word.dep, word.token.xpos
    if dep.split(":")[0] in ("aux", "cop"):
        return "AUX"
    if word.upos == "AUX":
        return "VERB"
    if tag in ("WDT", "WP", "WP$") and dep not in ("det", "det:predet"):
        return "PRON"
    if word.form == "that" and dep.split(":")[0] in ("nsubj", "obj", "obl"):
        return "PRON"
    if tag == "WRB" and dep != "mark":
        return "ADV"
    if dep == "case" and word.upos == "SCONJ":
        return "ADP"
    if dep == "mark" and word.upos == "ADP":
        return "SCONJ"
    return word.upos
