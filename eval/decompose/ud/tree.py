"""Read, write and validate dependency trees in CoNLL-U.

The format is https://universaldependencies.org/format.html, version 2, with the labels of Universal
Dependencies v1 or v2. The package conllu parses comments and cells; its file readers report no line
numbers and accept any number of columns, so both are checked here.
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
        id: 1-based index in the tree.
        xpos: the treebank-specific tag.
        feats: morphological features, ``Name=Value|…`` or ``_``.
        head: id of the head, 0 for the root.
        misc: ``SpaceAfter=No`` and other fields of the file.
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
        """Whether a space follows in the text."""
        return "SpaceAfter=No" not in self.misc.split("|")


@dataclass(frozen=True)
class Tree:
    """A parsed sentence.

    Attributes:
        tokens: the words in order; ``tokens[i].id == i + 1``.
        text: the original sentence.
    """

    tokens: tuple[Token, ...]
    text: str

    @property
    def root(self) -> Token:
        return next(token for token in self.tokens if token.head == 0)

    def children(self, id: int) -> list[Token]:
        """The dependents of word ``id``, in order."""
        return [token for token in self.tokens if token.head == id]

    def conllu(self) -> str:
        """The tree as CoNLL-U, with its text and the final blank line."""
        rows = [
            (t.id, t.form, t.lemma, t.upos, t.xpos, t.feats, t.head, t.deprel, "_", t.misc)
            for t in self.tokens
        ]
        lines = ["\t".join(str(cell) for cell in row) for row in rows]
        return "\n".join([f"# text = {self.text}", *lines, "", ""])


def read_conllu(source: str | Path | Iterable[str]) -> Iterator[Tree]:
    """Read the trees of a CoNLL-U file one by one.

    Multiword ranges (``3-4``) and empty nodes (``5.1``) are skipped. If the words of a range spell
    its form (``do`` + ``n't``), they get its spacing.

    Args:
        source: a path, or lines.

    Raises:
        BadInput: a tree that is malformed or not Universal Dependencies.
    """
    if isinstance(source, (str, Path)):
        try:
            with Path(source).open(encoding="utf-8-sig") as file:
                yield from _trees(file, str(source))
        except FileNotFoundError:
            raise UserError(f"{source}: no such file; expected a CoNLL-U file") from None
        except UnicodeDecodeError as error:
            raise BadInput([f"{source}:1: file: not UTF-8 ({error.reason})"]) from None
    else:
        yield from _trees(source, "conllu")


def check_ud(tree: Tree) -> str | None:
    """Return why a tree is not Universal Dependencies, or ``None`` if it is valid.

    A valid tree has one root, heads within the sentence, no cycle, and the labels and parts of
    speech of v1 or of v2. The labels of spaCy's English models (``pobj``, ``prep``) are invalid.
    """
    faults = _faults(tree.tokens)
    return f"{faults[0][1]}: {faults[0][2]}" if faults else None


def join_words(tokens: Sequence[Token]) -> str:
    """Join the words with their original spacing."""
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
    faults: list[tuple[int, str, str]] = []
    misnumbered = [index for index, token in enumerate(tokens) if token.id != index + 1]
    if misnumbered:  # all later ids are wrong, too
        first = misnumbered[0]
        hint = "; separate sentences with an empty line" if tokens[first].id == 1 else ""
        faults.append((first, "id", f"expected {first + 1} (got {tokens[first].id}){hint}"))
    for index, token in enumerate(tokens):
        if not 0 <= token.head <= len(tokens) or token.head == token.id:
            faults.append((index, "head", f"{token.head} is not another word of the sentence"))
        if (token.head == 0) != (token.deprel.split(":")[0] == "root"):
            faults.append((index, "deprel", f"head {token.head} with `{token.deprel}`"))
        if _version(token.deprel) is None:
            wrong = f"`{token.deprel}` is not a relation of Universal Dependencies"
            faults.append((index, "deprel", wrong))
        if not _UPOS.fullmatch(token.upos):
            wrong = f"`{token.upos}` is not a part of speech of Universal Dependencies"
            faults.append((index, "upos", wrong))
    if faults:
        return faults
    roots = [index for index, token in enumerate(tokens) if token.head == 0]
    if len(roots) != 1:
        return [(roots[-1] if roots else 0, "head", f"{len(roots)} roots, expected one")]
    return _cycle(tokens) + _mixed(tokens)


def _cycle(tokens: Sequence[Token]) -> list[tuple[int, str, str]]:
    safe = {0}
    for index, token in enumerate(tokens):
        path: list[int] = []
        id = token.id
        while id not in safe:
            if id in path:
                return [(index, "head", f"a cycle through word {id}")]
            path.append(id)
            id = tokens[id - 1].head
        safe.update(path)
    return []


def _mixed(tokens: Sequence[Token]) -> list[tuple[int, str, str]]:
    versions = [_version(token.deprel) for token in tokens]
    if 1 not in versions or 2 not in versions:
        return []
    old, new = versions.index(1), versions.index(2)
    labels = f"`{tokens[old].deprel}` is a label of v1, `{tokens[new].deprel}` of v2"
    return [(max(old, new), "deprel", f"{labels}; expected labels of one version")]


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
        messages = [f"{name}:{words[i][0]}: {field}: {wrong}" for i, field, wrong in faults]
        raise BadInput(messages[:10], max(0, len(messages) - 10))
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
