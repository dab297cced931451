"""Wikitext to plain text: what a reader of the page reads as prose.

Parsing is mwparserfromhell's (0.7); here is only what of the parse is kept. Tables, infoboxes,
references, galleries and files are left out, and so are the sections at a page's end that list
sources and links.
"""

import re
from collections.abc import Callable, Iterable, Sequence

# Sections that hold no prose; matched without case.
LISTS = {
    *("references", "external links", "see also", "further reading", "notes", "bibliography"),
    *("sources", "citations", "footnotes", "notes and references", "references and notes"),
}
_NO_PROSE = frozenset(
    """ref references table gallery math chem timeline imagemap score syntaxhighlight source
    templatestyles style graph mapframe hiero""".split()  # noqa: SIM905 (a list is longer)
)
# Links that show nothing in the text, by what stands before their first colon.
_NO_LINK = re.compile(r"\s*(?:file|image|media|category|wikipedia|template):", re.I)
# Templates that stand for what is between two words, which without it would be one.
_BETWEEN = {
    **dict.fromkeys(("snd", "spnd", "spaced ndash", "spaced en dash"), " – "),
    **dict.fromkeys(("ndash", "en dash", "endash"), "–"),
    **dict.fromkeys(("mdash", "em dash", "emdash"), "—"),
    **dict.fromkeys(("nbsp", "spaces", "thinsp", "thin space", "hair space"), " "),
    **{"'": "'", "'s": "'s"},
}
# What stands between the figures of a range, as ``convert`` takes it.
_RANGE = {"to", "-", "–", "and", "or", "by", "x", "×", "±", "+/-"}
_QUOTES = re.compile(r"'{2,}")  # bold and italic
_RULES = (
    (re.compile(r"__[A-Z]+__"), ""),  # behaviour switches
    (re.compile(r"\(\s*(?:[,;:]\s*)+"), "("),  # what templates left of a bracket
    (re.compile(r"\s*\(\s*\)"), ""),
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r" ?\n ?"), "\n"),
    (re.compile(r"\n{3,}"), "\n\n"),
)


def plain_text(wikitext: str) -> str | None:
    """The prose of a page; ``None`` for wikitext that cannot be parsed."""
    import mwparserfromhell
    from mwparserfromhell.parser import ParserError

    try:
        text = "".join(_prose(mwparserfromhell.parse(wikitext, skip_style_tags=True).nodes))
    except (ParserError, RecursionError):
        return None
    for pattern, put in _RULES:
        text = pattern.sub(put, text)
    return text.strip()


def _prose(nodes: Iterable) -> Iterable[str]:
    from mwparserfromhell import nodes as kinds

    skipped = None  # level of the heading of a section that is left out
    for node in nodes:
        if isinstance(node, kinds.Heading):
            skipped = None if skipped is None or node.level <= skipped else skipped
            if str(node.title).strip().lower() in LISTS:
                skipped = node.level if skipped is None else skipped
        if skipped is not None:
            continue
        if isinstance(node, kinds.Text):
            yield _QUOTES.sub("", node.value)  # here, before a template gives an apostrophe
        elif isinstance(node, kinds.Heading):
            yield "\n\n" + "".join(_prose(node.title.nodes)).strip() + "\n\n"
        elif isinstance(node, kinds.HTMLEntity):
            yield node.normalize()
        elif isinstance(node, kinds.Wikilink):
            if not _NO_LINK.match(str(node.title)):
                shown = str(node.title).lstrip(": ") if node.text is None else None
                yield from (shown,) if shown is not None else _prose(node.text.nodes)
        elif isinstance(node, kinds.ExternalLink):
            yield from _prose(node.title.nodes if node.title is not None else ())
        elif isinstance(node, kinds.Tag):
            yield from _tag(node)
        elif isinstance(node, kinds.Template):
            yield from _template(node)


def _tag(tag: object) -> Iterable[str]:
    name = str(tag.tag).strip().lower()
    if name == "br":
        yield "\n"
    elif name not in _NO_PROSE and tag.contents is not None:
        yield from _prose(tag.contents.nodes)


def _template(template: object) -> Iterable[str]:
    name = str(template.name).strip().lower()
    if name in _BETWEEN:
        yield _BETWEEN[name]
    elif name in _WORDS:
        given: list[str] = []
        while template.has(number := str(len(given) + 1)):
            given.append("".join(_prose(template.get(number).value.nodes)))
        yield " ".join(_WORDS[name](given))


def _measure(given: Sequence[str]) -> Sequence[str]:
    end = 2
    while end < len(given) and given[end - 1].strip() in _RANGE:
        end += 2
    rest = [one.strip() for one in given[end : end + 2]]
    # A number that no unit follows says how the other unit's is rounded.
    parts = len(rest) == 2 and rest[0][:1].isdigit() and not rest[1][:1].isdigit()
    return given[: end + 2] if parts else given[:end]


# Templates that stand for words of the sentence: which of their arguments are the words.
_WORDS: dict[str, Callable[[Sequence[str]], Sequence[str]]] = {
    **dict.fromkeys(
        ("nowrap", "nobr", "nobold", "small", "abbr", "ill", "interlanguage link"),
        lambda given: given[:1],
    ),
    "lang": lambda given: given[1:2],
    **dict.fromkeys(("transl", "transliteration"), lambda given: given[1:][-1:]),
    **dict.fromkeys(("convert", "cvt"), _measure),
    **dict.fromkeys(
        ("circa", "c."), lambda given: [" – ".join(f"c. {one}" for one in given or [""])]
    ),
}
