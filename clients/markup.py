"""What an HTML page says, in plain text.

FactReasoner's released code (2502.18573) takes the text of a page's ``<p>`` elements, without
numbers of notes, and so do we. That needs no library for guessing a page's main part, only one that
finds the tags. Python's own ``html.parser`` will not do for pages of strangers: under Python 3.11.7
a quarter of a megabyte of ``<!--`` takes it three quarters of a minute, and ``<![<![`` ends it with
an AssertionError. Here every step goes on behind the last one, so that the time grows with the
length of the page, and nothing in a page is an error.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

# Elements that begin and end a block of text; an open paragraph ends with any of them.
_BLOCKS = frozenset(
    """address article aside blockquote body caption center dd details dialog div dl dt fieldset
    figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav
    ol option p pre section select summary table tbody td tfoot th thead tr ul""".split()  # noqa: SIM905
)
# Elements whose content is no markup, or is not shown where scripts do not run.
_UNSHOWN = frozenset(
    """iframe noembed noframes noscript script style svg template textarea title""".split()  # noqa: SIM905
)
# What begins a tag, a comment or a declaration; "1 < 2" does not.
_OPENS = re.compile(r"<(?=/?[a-z]|[!?/])", re.IGNORECASE)
# A ">" within quotes does not end a tag. The possessive parts never look back.
_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[a-z][^\s/>]*+)(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""", re.IGNORECASE
)
_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _UNSHOWN}
# Python refuses to read a number of some thousand digits.
_LONG_NUMBER = re.compile(r"&#\d{8,};?")
_NOTE = re.compile(r"\[\d+\]")


class _Piece(NamedTuple):
    """Text as it stands in the page, and the tag behind it, with its name in small letters."""

    text: str
    tag: str = ""
    begins: bool = False


def page_text(markup: str) -> str:
    """The text of a page's paragraphs in their order; without any, all that the page shows.

    Args:
        markup: the page; what is broken in it is read as far as it can be.
    """
    paragraphs, shown = [], []
    parts: list[str] = []
    inside = False
    for text, tag, begins in _pieces(markup):
        parts.append(text)
        if tag == "br":
            parts.append(" ")
        if tag in _BLOCKS:
            block = plain("".join(parts))
            parts.clear()
            if block:
                shown.append(block)
                paragraphs += [block] if inside else []
            inside = tag == "p" and begins
    return " ".join(paragraphs or shown)


def plain(text: str) -> str:
    """Text without character references, numbers of notes and runs of white space."""
    whole = html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
    return " ".join(_NOTE.sub("", whole).split())


def _pieces(markup: str) -> Iterator[_Piece]:
    place = 0
    while opens := _OPENS.search(markup, place):
        start = opens.start()
        before = markup[place:start]
        tag = _TAG.match(markup, start)
        if tag:
            place = tag.end()
            name = tag["name"].lower()
            yield _Piece(before, name, not tag["end"])
            if name in _UNSHOWN and not tag["end"]:
                end = _END[name].search(markup, place)
                place = end.start() if end else len(markup)
        else:
            # Also a tag with an open quotation mark, which would swallow the rest of the page
            comment = markup.startswith("<!--", start)
            mark, least = ("-->", start + 4) if comment else (">", start)
            found = markup.find(mark, least)
            place = found + len(mark) if found >= 0 else len(markup)
            yield _Piece(before)
    yield _Piece(markup[place:], "html")
