"""Odd texts, odd JSON, and valid rows with something about them changed."""

from copy import deepcopy

from hypothesis import strategies as st

# What a model can write: NUL, right to left, byte order mark, joined emoji, a mark without a
# letter, ends of lines of every kind, a long word, digits that are not ASCII, open marks.
WRITTEN = (
    *(
        "",
        " ",
        "\x00",
        "\u202eeno\u202c",
        "\ufeffone",
        "👩\u200d👩\u200d👧",
        "\u0301",
        "a\r\nb",
        "\r",
    ),
    *(
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
    ),
    *("``", "```", "####", "$\\boxed{", "[[", "]]", "===", "\n", "\n\n", "not ", "n't ", ":", "\\"),
)
ODD = (*WRITTEN, "\ud800", "\udc00 x", "NaN", "1e999", "-1", "0", "S", "supported")
NUMBERS = (0, 1, -1, 2, 0.5, 1.5, -0.0, 10**400, -(10**400), 1e308, float("nan"), float("inf"))

written = st.sampled_from(WRITTEN) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
texts = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=[]), max_size=20)
leaves = st.none() | st.booleans() | st.sampled_from(NUMBERS) | texts


def values(keys=texts):
    """Any JSON value.

    Args:
        keys: strategy for the names of fields.
    """
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=8,
    )


def _places(value):
    """Each place inside a JSON value, as its container and its key there."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


@st.composite
def changed(draw, rows):
    """One of ``rows`` with one to three places dropped, replaced, put in a list, or repeated."""
    row = deepcopy(draw(st.sampled_from(rows)))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(row))
        if not places:
            break
        inside, key = draw(st.sampled_from(places))
        how = draw(st.sampled_from(["drop", "replace", "text", "list", "add"]))
        if how == "drop":
            del inside[key]
        elif how == "replace":
            inside[key] = draw(values())
        elif how == "text":
            inside[key] = draw(texts)
        elif how == "list":
            inside[key] = [inside[key]] * draw(st.integers(0, 2))
        elif isinstance(inside, dict):
            inside[draw(texts)] = draw(leaves)
        else:
            inside.append(deepcopy(inside[key]))
    return row


@st.composite
def rewritten(draw, answers):
    """One of the models' ``answers``, cut, with odd pieces put in, or with one after the other."""
    text = draw(st.sampled_from(answers))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + draw(written | st.sampled_from(answers)) + text[end:]
    return text
