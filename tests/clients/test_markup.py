"""HTML to text: paragraphs, broken pages, and pages that would keep a parser busy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.markup import page_text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<nav>Home</nav><p>One.</p><div>Menu</div><P class='x'>Two.</P>", "One. Two."),
        ("<p>Never closed<p>Nor this<div>a box</div>after", "Never closed Nor this"),
        ("<ul><li>One<li>Two</ul>", "One Two"),
        ("no tags at all", "no tags at all"),
        (
            "<p>A <b>b</b>,<br>broken &amp; r&eacute;el&#8211;x[12] [a]</p>",
            "A b, broken & réel–x [a]",
        ),
        (
            "<p>Built in 1867<sup><a href='#n'>4</a></sup>, it holds 10<sup>6</sup> litres.</p>",
            "Built in 1867, it holds 10^6 litres.",
        ),
        ("<script>if (a<b) { '<p>no</p>' }</script><p>Yes</p>", "Yes"),
        ("<style>p {}</style><!-- <p>no</p> --><title>No</title><p>Yes</p>", "Yes"),
        ("<p>Yes</p><noscript><p>Enable JavaScript</p></noscript>", "Yes"),
        ('<p title="a > b">1 < 2 and 3 > 2</p>', "1 < 2 and 3 > 2"),
        ("<p>cut <a href='never closed>here</a> ends</p>", "cut"),
        ("<p>ends <!-- within a comment", "ends"),
        ("<![CDATA[x]]><?php y ?><!DOCTYPE html></ z><p>Yes", "Yes"),
        (f"<p>&#{'9' * 5000}; &#0; &bogus;</p>", "\ufffd \ufffd &bogus;"),
        ("", ""),
    ],
)
def test_a_pages_text_is_that_of_its_paragraphs(page, text):
    assert page_text(page) == text


@pytest.mark.parametrize(
    "piece",
    ["<", "<!", "<!--", "<![", "</", "<a ", "<a x='", '<a"', "&", "&#", "<p>", "<script>", "[1"],
)
def test_a_hostile_page_takes_no_longer_than_another_of_its_length(piece):
    # In quadratic time this would take hours.
    repeated_piece = piece * (400_000 // len(piece))
    assert (
        len(page_text(repeated_piece)) + len(page_text(f"{repeated_piece}'\">"))
        <= 2 * len(repeated_piece) + 3
    )


@given(st.lists(st.sampled_from(["<", "p", ">", "/", "!--", "-->", '"', "'", "&#", "1", " ", "é"])))
def test_nothing_in_a_page_is_an_error(parts):
    text = page_text("".join(parts))
    assert text == " ".join(text.split())
