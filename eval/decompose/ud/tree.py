"""Dependency trees in CoNLL-U: reading, writing, and telling what is not Universal Dependencies.

The format is that of https://universaldependencies.org/format.html, version 2; the labels are those
of Universal Dependencies v1 and v2. conllu reads comments and cells; its readers of whole files
tell no lines and take rows of any number of columns, so both are counted here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conllu.exceptions import ParseException
from conllu.parser import parse_comment_line, parse_id_value, parse_int_value

from records import BadInput, UserError

_UPOS = re.compile(
    "ADJ|ADP|ADV|AUX|CCONJ|CONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X"
)  # CONJ is v1's CCONJ
_BOTH = re.compile(
    "acl|advcl|advmod|amod|appos|aux|case|cc|ccomp|compound|conj|cop|csubj|dep|det|discourse|"
    "dislocated|expl|goeswith|iobj|list|mark|nmod|nsubj|nummod|parataxis|punct|reparandum|root|"
    "vocative|xcomp"
)
_ONLY_V1 = re.compile("auxpass|csubjpass|dobj|foreign|mwe|name|neg|nsubjpass|remnant")
_ONLY_V2 = re.compile("clf|fixed|flat|obj|obl|orphan")
_V2_SUBTYPES = re.compile("(aux|csubj|nsubj):pass|(csubj|nsubj):outer")
_LABEL = re.compile(r"[a-z]+(:[a-z]+)*")
_COLUMNS = 10


@dataclass(frozen=True)
class Token:
    """One syntactic word: a row of CoNLL-U without its enhanced dependencies.

    Attributes:
        id: 1-based place in the tree.
        form: the word as it stands.
        lemma: its base form.
        upos: the universal part of speech.
        xpos: the treebank's own tag.
        feats: morphological features, ``Name=Value|…`` or ``_``.
        head: id of the head, 0 for the root.
        deprel: relation to the head.
        misc: ``SpaceAfter=No`` and whatever else the file says.
    """

    id: int
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: int
    deprel: str
    misc: str = "_"

    @property
    def space_after(self) -> bool:
        """Whether a blank follows in the text."""
        return "SpaceAfter=No" not in self.misc.split("|")


@dataclass(frozen=True)
class Tree:
    """A parsed sentence.

    Attributes:
        tokens: the words in order; ``tokens[i].id == i + 1``.
        text: the sentence as it was written.
    """

    tokens: tuple[Token, ...]
    text: str

    @property
    def root(self) -> Token:
        """The word that depends on no other."""
        return next(token for token in self.tokens if token.head == 0)

    def children(self, id: int) -> list[Token]:
        """The words that depend on word ``id``, in order."""
        return [token for token in self.tokens if token.head == id]

    def conllu(self) -> str:
        """The tree as CoNLL-U, with its text and the blank line that ends it."""
        rows = [
            (t.id, t.form, t.lemma, t.upos, t.xpos, t.feats, t.head, t.deprel, "_", t.misc)
            for t in self.tokens
        ]
        lines = ["\t".join(str(cell) for cell in row) for row in rows]
        return "\n".join([f"# text = {self.text}", *lines, "", ""])


def read_conllu(source: str | Path | Iterable[str]) -> Iterator[Tree]:
    """Read the trees of a CoNLL-U file one by one.

    Multiword ranges (``3-4``) and empty nodes (``5.1``) are no tokens; the words of a range carry
    its spacing where they spell it (``do`` + ``n't``).

    Args:
        source: a path, or lines.

    Raises:
        BadInput: a tree that is not well formed or not Universal Dependencies, as
            ``file:line: field: what is wrong``.
    """
    if isinstance(source, (str, Path)):
        try:
            with Path(source).open(encoding="utf-8-sig") as file:
                yield from _trees(file, str(source))
        except FileNotFoundError:
            raise UserError(f"{source}: no such file; give the path of a CoNLL-U file") from None
        except UnicodeDecodeError as error:
            raise BadInput([f"{source}:1: file: not UTF-8 ({error.reason})"]) from None
    else:
        yield from _trees(source, "conllu")


def check_ud(tree: Tree) -> str | None:
    """Why a tree is not Universal Dependencies, or ``None`` where it is.

    A tree has one root, heads within the sentence and no cycle; its labels and parts of speech are
    those of v1 or those of v2. The labels of spaCy's English models (``pobj``, ``prep``, ``ROOT``)
    are not.
    """
    faults = _faults(tree.tokens)
    return f"{faults[0][1]}: {faults[0][2]}" if faults else None


def ud_version(tree: Tree) -> int:
    """1 or 2, told by the labels; 2 where they are those that both have."""
    return 1 if any(_version(token.deprel) == 1 for token in tree.tokens) else 2


def written(tokens: Sequence[Token]) -> str:
    """The words as text, blanks where they stood."""
    return "".join(t.form + " " * t.space_after for t in tokens).rstrip()


def _version(label: str) -> int | None:
    base = label.split(":")[0]
    if not _LABEL.fullmatch(label):
        return None
    if _ONLY_V1.fullmatch(label):
        return 1
    if _ONLY_V2.fullmatch(base) or _V2_SUBTYPES.fullmatch(label):
        return 2
    return 0 if _BOTH.fullmatch(base) else None


def _faults(tokens: Sequence[Token]) -> list[tuple[int, str, str]]:
    found: list[tuple[int, str, str]] = []
    odd = [index for index, token in enumerate(tokens) if token.id != index + 1]
    if odd:  # the numbers behind it are wrong with it
        first = odd[0]
        new = "; an empty line goes between sentences" if tokens[first].id == 1 else ""
        found.append((first, "id", f"expected {first + 1} (got {tokens[first].id}){new}"))
    for index, token in enumerate(tokens):
        if not 0 <= token.head <= len(tokens) or token.head == token.id:
            found.append((index, "head", f"{token.head} is no other word of the sentence"))
        if (token.head == 0) != (token.deprel.split(":")[0] == "root"):
            found.append((index, "deprel", f"head {token.head} with `{token.deprel}`"))
        if _version(token.deprel) is None:
            wrong = f"`{token.deprel}` is not a relation of Universal Dependencies"
            found.append((index, "deprel", wrong))
        if not _UPOS.fullmatch(token.upos):
            wrong = f"`{token.upos}` is not a part of speech of Universal Dependencies"
            found.append((index, "upos", wrong))
    if found:
        return found
    roots = [index for index, token in enumerate(tokens) if token.head == 0]
    if len(roots) != 1:
        return [(roots[-1] if roots else 0, "head", f"{len(roots)} roots, expected one")]
    return _cycle(tokens) + _mixed(tokens)


def _cycle(tokens: Sequence[Token]) -> list[tuple[int, str, str]]:
    safe = {0}
    for index, token in enumerate(tokens):
        path: list[int] = []
        at = token.id
        while at not in safe:
            if at in path:
                return [(index, "head", f"a cycle through word {at}")]
            path.append(at)
            at = tokens[at - 1].head
        safe.update(path)
    return []


def _mixed(tokens: Sequence[Token]) -> list[tuple[int, str, str]]:
    versions = [_version(token.deprel) for token in tokens]
    if 1 not in versions or 2 not in versions:
        return []
    old, new = versions.index(1), versions.index(2)
    labels = f"`{tokens[old].deprel}` is of v1, `{tokens[new].deprel}` of v2"
    return [(max(old, new), "deprel", f"{labels}: a tree is one or the other")]


def _trees(lines: Iterable[str], name: str) -> Iterator[Tree]:
    block: list[tuple[int, str]] = []
    number = 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n")
        if line.strip():
            block.append((number, line))
        elif block:
            yield from _tree(block, name)
            block = []
    if block:
        yield from _tree(block, name)


def _tree(block: Sequence[tuple[int, str]], name: str) -> Iterator[Tree]:
    text = None
    words: list[tuple[int, Token]] = []
    ranges: list[tuple[int, int, str, str]] = []
    for number, line in block:
        if line.startswith("#"):
            text = dict(parse_comment_line(line)).get("text", text)
            continue
        cells = line.split("\t")
        where = f"{name}:{number}"
        if len(cells) != _COLUMNS:
            raise BadInput([f"{where}: row: expected 10 columns with tabs (got {len(cells)})"])
        match _number(parse_id_value, "id", cells[0], where):
            case (first, "-", last):
                ranges.append((first, last, cells[1], cells[9]))
            case int():
                words.append((number, _token(cells, where)))
    if not words:
        return
    tokens = _spaced([token for _, token in words], ranges)
    faults = _faults(tokens)
    if faults:
        shown = [f"{name}:{words[i][0]}: {field}: {wrong}" for i, field, wrong in faults]
        raise BadInput(shown[:10], max(0, len(shown) - 10))
    yield Tree(tuple(tokens), text or _surface(tokens, ranges))


def _token(cells: Sequence[str], where: str) -> Token:
    id, form, lemma, upos, xpos, feats, head, deprel, _, misc = cells
    if not form:
        raise BadInput([f"{where}: form: empty"])
    governor = _number(parse_int_value, "head", head, where)
    return Token(int(id), form, lemma, upos, xpos, feats, governor, deprel, misc)


def _number(parse: Callable[[str], Any], column: str, cell: str, where: str) -> Any:
    with suppress(ParseException):
        if (value := parse(cell)) is not None:
            return value
    raise BadInput([f"{where}: {column}: expected a whole number (got {cell!r})"])


def _spaced(tokens: Sequence[Token], ranges: Sequence[tuple[int, int, str, str]]) -> list[Token]:
    spaced = list(tokens)
    for first, last, form, misc in ranges:
        inside = spaced[first - 1 : last]
        if "".join(token.form for token in inside) != form:
            continue
        for token in inside:
            glued = token.id < last or "SpaceAfter=No" in misc.split("|")
            if glued and token.space_after:
                parts = [part for part in token.misc.split("|") if part != "_"]
                misc_of = "|".join([*parts, "SpaceAfter=No"])
                spaced[token.id - 1] = replace(token, misc=misc_of)
    return spaced


def _surface(tokens: Sequence[Token], ranges: Sequence[tuple[int, int, str, str]]) -> str:
    starts = {first: (last, form, misc) for first, last, form, misc in ranges}
    parts: list[str] = []
    end = 0
    for token in tokens:
        if token.id in starts:
            end, form, misc = starts[token.id]
            parts.append(form if "SpaceAfter=No" in misc.split("|") else form + " ")
        elif token.id > end:
            parts.append(token.form + " " * token.space_after)
    return "".join(parts).rstrip()
