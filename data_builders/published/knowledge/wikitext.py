"""Convert wikitext to the plain text of its prose.

mwparserfromhell (0.7) parses the wikitext. Tables, infoboxes, references, galleries and files are
skipped, and so are the final sections with sources and links. Templates that stand for words,
numbers or dates are replaced by them; a sentence with another template of this kind is left out.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import yaml

from components.english import MONTHS
from components.sentences import split_sentences
from records.cleaning import normalise, raise_numbers

_WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_FORMULAS = frozenset(("math", "chem", "ce", "hiero"))
# Stands for words that are unknown here.
_HOLE = "\ufffc"
_ASIDE_WITH_HOLE = re.compile(rf"\s*\([^()\n]*{_HOLE}[^()\n]*\)")
# Namespaces of links that are not displayed in the text.
_HIDDEN_LINK = re.compile(r"\s*(?:file|image|media|category|wikipedia|template):", re.I)
# Range separators of ``convert``.
_RANGE = {"to", "-", "–", "and", "or", "by", "x", "×", "±", "+/-"}
_QUOTES = re.compile(r"'{2,}")  # bold and italic
_RULES = (
    (re.compile(r"__[A-Z]+__"), ""),  # behaviour switches
    (re.compile(r"\(\s*(?:[,;:]\s*)+"), "("),  # remains of removed templates
    (re.compile(r"\s*\(\s*\)"), ""),
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r" (?=[.,;](?:\s|$))"), ""),
    (re.compile(r" ?\n ?"), "\n"),
    (re.compile(r"\n{3,}"), "\n\n"),
)


def plain_text(wikitext: str) -> tuple[str | None, int]:
    """Return the prose of a page, and the number of sentences left out.

    The prose is ``None`` for wikitext that cannot be parsed.
    """
    import mwparserfromhell
    from mwparserfromhell.parser import ParserError

    try:
        text = "".join(_prose(mwparserfromhell.parse(wikitext, skip_style_tags=True).nodes))
    except (ParserError, RecursionError):
        return None, 0
    left_out, lines = 0, []
    for line in _ASIDE_WITH_HOLE.sub("", text).split("\n"):
        if _HOLE in line:
            sentences = split_sentences(line)
            whole = [sentence for sentence in sentences if _HOLE not in sentence]
            left_out, line = left_out + max(1, len(sentences) - len(whole)), " ".join(whole)
        lines.append(line)
    text = "\n".join(lines)
    for pattern, put in _RULES:
        text = pattern.sub(put, text)
    return normalise(text), left_out


def _prose(nodes: Iterable) -> Iterable[str]:
    from mwparserfromhell import nodes as kinds

    skipped = None  # heading level of the skipped section
    nodes = list(nodes)
    for index, node in enumerate(nodes):
        if isinstance(node, kinds.Heading):
            skipped = None if skipped is None or node.level <= skipped else skipped
            if str(node.title).strip().lower() in _WORDS["skipped_sections"]:
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
            yield _template(node, *_around(nodes, index))
        elif isinstance(node, kinds.Argument):
            yield _HOLE


def _tag(tag: object) -> Iterable[str]:
    name = str(tag.tag).strip().lower()
    if name == "br":
        yield "\n"
    elif name in _FORMULAS:
        yield _HOLE
    elif name not in _WORDS["no_prose"] and tag.contents is not None:
        text = "".join(_prose(tag.contents.nodes))
        raised = raise_numbers(f"<sup>{text}</sup>")
        yield raised if name == "sup" and not raised.startswith("<") else text


def _around(nodes: Sequence, index: int) -> tuple[str, str]:
    """Return the characters before and after a template, ignoring adjacent templates."""
    from mwparserfromhell.nodes import Template

    before, after = nodes[:index][::-1], nodes[index + 1 :]
    left = next((str(node) for node in before if not isinstance(node, Template)), "\n")
    right = next((str(node) for node in after if not isinstance(node, Template)), "\n")
    return left[-1:], right.lstrip(" ")[:1] if left[-1:] == "\n" else right[:1]


def _template(template: object, before: str, after: str) -> str:
    raw = "".join(_prose(template.name.nodes)).strip().replace("_", " ")
    name, _, first = raw.partition(":")  # parser functions have a colon
    name = name.strip().lower()
    if name in _WORDS["separators"]:
        return _WORDS["separators"][name]
    arguments = [first] if first else []
    named = {str(p.name).strip(): "".join(_prose(p.value.nodes)).strip() for p in template.params}
    while (number := str(len(arguments) + 1 - bool(first))) in named:
        arguments.append("".join(_prose(template.get(number).value.nodes)))
    words = _KEPT["first"] if name.startswith("lang-") else _KEPT_OF.get(name)
    if currency := _WORDS["currencies"].get(name):
        text = currency + _number(arguments[0]) if arguments else ""
    elif name == "height":
        text = " ".join(
            f"{named[unit]} {unit}" for unit in ("m", "cm", "ft", "in") if unit in named
        )
    elif name in ("convert", "cvt") and named.get("abbr") == "off":
        text = " ".join(
            _WORDS["units"].get(word.strip(), word) for word in _convert_words(arguments)
        )
    elif name == "as of":
        as_of = "as of" if named.get("lc") else "As of"
        text = f"{as_of} {_date(arguments)}" if arguments else ""
    else:
        arguments = [named[n] for n in ("text", "quote") if n in named] or arguments
        unit = [named[n] for n in ("u", "ul") if n in named and name == "val"]
        text = " ".join([*words(arguments), *unit]) if words and arguments else ""
    if text.strip() or _NOTES.match(name):
        return text
    # Footnotes follow a word without a space, and boxes and notices fill a line.
    is_note = re.match(r"[\w.,;:!?)\]”\"'»%>}]", before) and not after.isalnum()
    is_box = before == "\n" and not (after.islower() or after.isdigit() or after in ",.;:)")
    return "" if is_note or is_box else _HOLE


def _number(text: str) -> str:
    digits = re.fullmatch(r"\s*([-−]?)(\d{5,})(\.\d+)?\s*", text)
    text = f"{digits[1]}{int(digits[2]):,}{digits[3] or ''}" if digits else text.strip()
    return text.replace("-", "−", 1) if text.startswith("-") else text


def _date(arguments: Sequence[str]) -> str:
    parts = [part.strip() for part in arguments[:3]]
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", parts[0] if parts else ""):
        parts = parts[0].split("-")
    if len(parts) < 2 or not parts[0].isdigit() or len(parts[0]) < 3:
        return " ".join(part for part in parts if part)  # a text, or day, month and year
    if parts[1].isdigit() and 1 <= int(parts[1]) <= 12:
        parts[1] = MONTHS[int(parts[1]) - 1]
    elif not parts[1].isalpha():
        parts = parts[:1]
    return " ".join(part.lstrip("0") for part in reversed(parts))


def _fraction(arguments: Sequence[str]) -> list[str]:
    *whole, over, under = (
        [a.strip() for a in arguments] if len(arguments) > 1 else ["1", *arguments]
    )
    return [*whole, f"{over}/{under}"]


def _convert_words(arguments: Sequence[str]) -> Sequence[str]:
    end = 2
    while end < len(arguments) and arguments[end - 1].strip() in _RANGE:
        end += 2
    rest = [argument.strip() for argument in arguments[end : end + 2]]
    # A final number without a unit is the rounding of the converted value.
    parts = len(rest) == 2 and rest[0][:1].isdigit() and not rest[1][:1].isdigit()
    return arguments[: end + 2] if parts else arguments[:end]


# Which arguments of a template of ``words`` are words of the sentence.
_KEPT: dict[str, Callable[[Sequence[str]], Sequence[str]]] = {
    "first": lambda arguments: arguments[:1],
    "second": lambda arguments: arguments[1:2],
    "last": lambda arguments: arguments[1:][-1:],
    "quantity": _convert_words,
    "circa": lambda arguments: [" – ".join(f"c. {argument}" for argument in arguments)],
    "number": lambda arguments: [_number(argument) for argument in arguments[:1]],
    "number_and_unit": lambda arguments: [_number(arguments[0]), *arguments[1:2]],
    "fraction": _fraction,
    "date": lambda arguments: [_date(arguments)],
    "century": lambda arguments: [f"{arguments[0]}e siècle"],
}
_KEPT_OF = {name: _KEPT[kind] for kind, names in _WORDS["words"].items() for name in names}
# Templates without words in the text: sources, remarks, pronunciations, boxes and notices.
_NOTES = re.compile(
    r"(?:cit|efn|sfn|ref|harv|note|clarif|dubious|better|verif|failed|page needed|primary|ipa|pron"
    r"|respell|audio|listen|coord|anchor|clear|icon|flagicon|short desc|use |pp-|toc|portal|commons"
    r"|image|multiple image|infobox|defaultsort|displaytitle|isbn|issn|doi|oclc|pmid|#tag|by whom"
    r"|according|(?:cn|fact|rp?|who|whom|when|where|which|vague|main|see|for|-|zh)$)"
)
