"""Odd texts, and answers of models with odd pieces in them."""

from hypothesis import strategies as st

# Pieces that a model can write: NUL, right to left, byte order mark, joined emoji, a mark without a
# letter, line ends of every kind, a long word, digits that are not ASCII, open brackets.
WRITTEN = (
    "",
    " ",
    "\x00",
    "\u202eeno\u202c",
    "\ufeffone",
    "👩\u200d👩\u200d👧",
    "\u0301",
    "a\r\nb",
    "\r",
    "a\x85b\u2028c",
    "x" * 70_000,
    "9" * 5000,
    "٣",
    "½",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "[]",
    "{}",
    '"',
    "``",
    "```",
    "####",
    "$\\boxed{",
    "[[",
    "]]",
    "===",
    "\n",
    "\n\n",
    "not ",
    "n't ",
    ":",
    "\\",
)
ODD = (*WRITTEN, "\ud800", "\udc00 x", "NaN", "1e999", "-1", "0", "S", "supported")

written = st.sampled_from(WRITTEN) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
texts = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=[]), max_size=20)


@st.composite
def rewritten(draw, answers):
    """One of the models' ``answers``, cut, with odd pieces put in, or with one after the other."""
    text = draw(st.sampled_from(answers))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + draw(written | st.sampled_from(answers)) + text[end:]
    return text
