"""Plain text of an HTML page.

As FactReasoner's released code (2502.18573): the text of the ``<p>`` elements without note numbers.
Python's ``html.parser`` is unsuitable for untrusted pages: in Python 3.11.7, 250 kB of ``<!--``
take 45 s, and ``<![<![`` raises an AssertionError. This parser takes linear time and accepts any
input.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from records.cleaning import normalise, raise_numbers

# Block elements; each ends an open paragraph.
_BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "header",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "select",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    }
)
# Elements whose content is not displayed, or not markup.
_HIDDEN = frozenset(
    {
        "iframe",
        "noembed",
        "noframes",
        "noscript",
        "script",
        "style",
        "svg",
        "template",
        "textarea",
        "title",
    }
)
# Start of a tag, comment or declaration.
_OPENS = re.compile(r"<(?=/?[a-z]|[!?/])", re.IGNORECASE)
# ">" in quotes does not end a tag. Possessive quantifiers prevent backtracking.
_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[a-z][^\s/>]*+)(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""", re.IGNORECASE
)
_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _HIDDEN}
# Python rejects integers of thousands of digits.
_LONG_NUMBER = re.compile(r"&#\d{8,};?")
_NOTE = re.compile(r"\[\d+\]")


class _Piece(NamedTuple):
    """Text of the page and the following tag, with its name in lower case."""

    text: str
    tag: str = ""
    begins: bool = False


def page_text(markup: str) -> str:
    """Return the text of a page's paragraphs, or all visible text if there are none."""
    paragraphs, blocks = [], []
    parts: list[str] = []
    inside = False
    for text, tag, begins in _pieces(raise_numbers(markup)):
        parts.append(text)
        if tag == "br":
            parts.append(" ")
        if tag in _BLOCKS:
            block = plain("".join(parts))
            parts.clear()
            if block:
                blocks.append(block)
                paragraphs += [block] if inside else []
            inside = tag == "p" and begins
    return " ".join(paragraphs or blocks)


def plain(text: str) -> str:
    """Resolve character references, remove note marks and collapse white space."""
    resolved = html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
    return normalise(" ".join(_NOTE.sub("", resolved).split()))


def _pieces(markup: str) -> Iterator[_Piece]:
    position = 0
    while opens := _OPENS.search(markup, position):
        start = opens.start()
        before = markup[position:start]
        tag = _TAG.match(markup, start)
        if tag:
            position = tag.end()
            name = tag["name"].lower()
            yield _Piece(before, name, not tag["end"])
            if name in _HIDDEN and not tag["end"]:
                end = _END[name].search(markup, position)
                position = end.start() if end else len(markup)
        else:
            # Includes tags with an unclosed quotation mark.
            comment = markup.startswith("<!--", start)
            mark, start_at = ("-->", start + 4) if comment else (">", start)
            index = markup.find(mark, start_at)
            position = index + len(mark) if index >= 0 else len(markup)
            yield _Piece(before)
    yield _Piece(markup[position:], "html")
