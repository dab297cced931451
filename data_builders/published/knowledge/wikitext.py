"""Convert wikitext to the plain text of its prose.

mwparserfromhell (0.7) parses the wikitext. Tables, infoboxes, references, galleries and files are
skipped, and so are the final sections with sources and links.
"""

import re
from collections.abc import Callable, Iterable, Sequence

# Titles of skipped sections, lower-case.
SKIPPED_SECTIONS = {
    *("references", "external links", "see also", "further reading", "notes", "bibliography"),
    *("sources", "citations", "footnotes", "notes and references", "references and notes"),
}
_NO_PROSE = frozenset(
    """ref references table gallery math chem timeline imagemap score syntaxhighlight source
    templatestyles style graph mapframe hiero""".split()  # noqa: SIM905 (a list is longer)
)
# Namespaces of links that are not displayed in the text.
_HIDDEN_LINK = re.compile(r"\s*(?:file|image|media|category|wikipedia|template):", re.I)
# Templates for separators between words.
_SEPARATORS = {
    **dict.fromkeys(("snd", "spnd", "spaced ndash", "spaced en dash"), " – "),
    **dict.fromkeys(("ndash", "en dash", "endash"), "–"),
    **dict.fromkeys(("mdash", "em dash", "emdash"), "—"),
    **dict.fromkeys(("nbsp", "spaces", "thinsp", "thin space", "hair space"), " "),
    **{"'": "'", "'s": "'s"},
}
# Range separators of ``convert``.
_RANGE = {"to", "-", "–", "and", "or", "by", "x", "×", "±", "+/-"}
_QUOTES = re.compile(r"'{2,}")  # bold and italic
_RULES = (
    (re.compile(r"__[A-Z]+__"), ""),  # behaviour switches
    (re.compile(r"\(\s*(?:[,;:]\s*)+"), "("),  # remains of removed templates
    (re.compile(r"\s*\(\s*\)"), ""),
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r" ?\n ?"), "\n"),
    (re.compile(r"\n{3,}"), "\n\n"),
)


def plain_text(wikitext: str) -> str | None:
    """Return the prose of a page; ``None`` for wikitext that cannot be parsed."""
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

    skipped = None  # heading level of the skipped section
    for node in nodes:
        if isinstance(node, kinds.Heading):
            skipped = None if skipped is None or node.level <= skipped else skipped
            if str(node.title).strip().lower() in SKIPPED_SECTIONS:
                skipped = node.level if skipped is None else skipped
        if skipped is not None:
            continue
        if isinstance(node, kinds.Text):
            yield _QUOTES.sub("", node.value)  # before templates add apostrophes
        elif isinstance(node, kinds.Heading):
            yield "\n\n" + "".join(_prose(node.title.nodes)).strip() + "\n\n"
        elif isinstance(node, kinds.HTMLEntity):
            yield node.normalize()
        elif isinstance(node, kinds.Wikilink):
            if not _HIDDEN_LINK.match(str(node.title)):
                title = str(node.title).lstrip(": ") if node.text is None else None
                yield from (title,) if title is not None else _prose(node.text.nodes)
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
    if name in _SEPARATORS:
        yield _SEPARATORS[name]
    elif name in _WORDS:
        arguments: list[str] = []
        while template.has(number := str(len(arguments) + 1)):
            arguments.append("".join(_prose(template.get(number).value.nodes)))
        yield " ".join(_WORDS[name](arguments))


def _convert_words(arguments: Sequence[str]) -> Sequence[str]:
    end = 2
    while end < len(arguments) and arguments[end - 1].strip() in _RANGE:
        end += 2
    rest = [argument.strip() for argument in arguments[end : end + 2]]
    # A final number without a unit is the rounding of the converted value.
    parts = len(rest) == 2 and rest[0][:1].isdigit() and not rest[1][:1].isdigit()
    return arguments[: end + 2] if parts else arguments[:end]


# Templates whose arguments are words of the sentence, and the arguments to keep.
_WORDS: dict[str, Callable[[Sequence[str]], Sequence[str]]] = {
    **dict.fromkeys(
        ("nowrap", "nobr", "nobold", "small", "abbr", "ill", "interlanguage link"),
        lambda arguments: arguments[:1],
    ),
    "lang": lambda arguments: arguments[1:2],
    **dict.fromkeys(("transl", "transliteration"), lambda arguments: arguments[1:][-1:]),
    **dict.fromkeys(("convert", "cvt"), _convert_words),
    **dict.fromkeys(
        ("circa", "c."),
        lambda arguments: [" – ".join(f"c. {argument}" for argument in arguments or [""])],
    ),
}
