"""Plain text of an HTML page.

As FactReasoner's released code (2502.18573): the text of the ``<p>`` elements without note numbers.
selectolax reads any input in linear time; Python's ``html.parser`` does not: 250 kB of ``<!--``
take 45 s.
"""

import re

from selectolax.lexbor import LexborHTMLParser

from records.cleaning import normalise, raise_numbers

# Elements whose content is not displayed.
_HIDDEN = "iframe, noembed, noframes, noscript, script, style, svg, template, textarea, title"
_NOTE = re.compile(r"\[\d+\]")


def page_text(markup: str) -> str:
    """Return the text of a page's paragraphs, or all visible text if there are none."""
    tree = LexborHTMLParser(raise_numbers(markup))
    for node in tree.css(_HIDDEN):
        node.decompose()
    for line_break in tree.css("br"):
        line_break.replace_with(" ")
    paragraphs = filter(None, (plain(node.text()) for node in tree.css("p")))
    return " ".join(paragraphs) or plain(tree.root.text(separator=" ") if tree.root else "")


def plain(text: str) -> str:
    """Remove note marks and collapse white space."""
    return normalise(" ".join(_NOTE.sub("", text).split()))
