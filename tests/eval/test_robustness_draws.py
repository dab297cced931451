"""Draws of the statements of an attack's texts, chosen by the verdicts of each column."""

import pytest

from eval.decompose.sentences import Sentences
from eval.experiments.robustness.robustness_draws import DRAWS, redraw
from eval.experiments.robustness.robustness_grid import Grid
from eval.pipeline import Pipeline
from eval.verify.word_test import WordTest
from records import Claim, Document, Passage, gold_scores

PAGE = Passage(id="p", title="Ann", text="Ann sings, paints, dives, skates, climbs and cooks.")
TRUE = [f"Ann {verb}." for verb in ("sings", "paints", "dives", "skates", "climbs", "cooks")]


def attacked(draw, statements, credits=False, frame=""):
    """A text of an attack, of which each true statement credits a fact if ``credits`` is set."""
    claims = [
        Claim(id=f"c{n}", text=text, credits=[text] if credits and text in TRUE else [])
        for n, text in enumerate(statements)
    ]
    return Document(
        id=f"Ann denied {draw}",
        topic="Ann",
        kind="denied",
        text=" ".join([*filter(None, [frame]), *statements]),
        claims=claims,
        passages=[PAGE],
        gold=gold_scores([claim.credits for claim in claims], 5, "construction"),
        draw=draw,
    )


def redrawn(documents):
    grid = Grid({"words": Pipeline(Sentences(), [WordTest()])}, {})
    return redraw(grid(documents), seed=0)


def sentences(text):
    return [f"{sentence}." for sentence in text.text.rstrip(".").split(". ")]


def accepted(text):
    return sum(sentence in TRUE for sentence in sentences(text))


def texts(**more):
    """Six texts of five statements, of which a test of words accepts one each."""
    return [
        attacked(n, [TRUE[n], *(f"Ann lost {n}{m} games." for m in range(4))], **more)
        for n in range(6)
    ]


def test_the_best_draw_has_more_accepted_statements_than_any_text_of_the_file():
    files = texts()
    (best,) = redrawn(files)
    assert [accepted(text) for text in files] == [1] * 6
    assert accepted(best) > 1
    assert set(sentences(best)) <= {claim.text for text in files for claim in text.claims}
    assert (best.kind, best.draw, best.gold.f1) == ("denied", DRAWS - 1, 0)
    assert redrawn(files) == [best]


def test_a_draw_has_at_most_the_gold_of_an_attack():
    files = [attacked(n, TRUE[n : n + 5], credits=True) for n in range(2)]
    (best,) = redrawn(files)
    assert best.gold.f1 <= 0.6 < files[0].gold.f1


@pytest.mark.parametrize("files", [texts(frame="None of this is true."), texts()[:1]])
def test_texts_with_a_frame_and_single_texts_are_not_drawn_anew(files):
    assert redrawn(files) == []
