"""The LSS generation experiment: engines against human LSS, and generators side by side."""

from __future__ import annotations

import pytest

from eval.experiments.lss import lss_generation_values
from eval.experiments.lss.lss_generation import LssGeneration
from eval.models.lss import SharedWords, Subsequence, WholeClaim
from records import LssExample, iter_rows, write_jsonl


class Answers:
    """Plays an engine that has learned its answers by heart."""

    def __init__(self, answers):
        self.known = answers

    def subsequences(self, pairs):
        actual = [self.known.get(claim) for claim, _ in pairs]
        return [None if text is None else Subsequence(None, text) for text in actual]


def annotated(number, claim, lss, rating, star=None):
    texts = lss if isinstance(lss, list) else [lss]
    annotation_rows = [{"lss": text, "lss_star": star, "rating": rating} for text in texts]
    return {
        "reference": f"Reference {number} of rain.",
        "claim": claim,
        "annotations": annotation_rows,
    }


ROWS = [
    annotated(1, "It rained in May in Rome.", "It rained in Rome", 3, "It rained in Rome."),
    annotated(2, "It rained in June.", ["It rained in June", "It rained"], 5, "It rained."),
    annotated(3, "Nobody came to Oslo.", "", 1, ""),
    annotated(4, "It was dry all day.", "It was dry", 4),
]
KNOWN = {"It rained in May in Rome.": "It rained in Rome.", "It rained in June.": "It poured"}
KNOWN |= {"Nobody came to Oslo.": ""}


def run(tmp_path, **options):
    path = tmp_path / "annotations.jsonl"
    write_jsonl(path, ROWS)
    engines = {"played": Answers(KNOWN), "whole": WholeClaim()}
    options = {"engines": engines, "annotations": [str(path)]} | options
    file = LssGeneration(**options).run(tmp_path / "run", {"annotations": [str(path)]})
    keys = ("variant", "metric", "kind", "generator", "group", "against")
    return {tuple(getattr(r, key) for key in keys): r for r in file.results}


def test_engines_against_human_texts(tmp_path) -> None:
    actual = run(tmp_path, star_engines={"played": Answers(KNOWN)})

    def row(variant, metric, kind="played", group="all"):
        return actual[variant, metric, kind, "given", group, None]

    def value(*of):
        return row(*of).value

    # Of three answers two have the human words; "poured" is no word of the claim.
    assert value("lss", "exact_match") == pytest.approx(2 / 3)
    assert value("lss", "subsequence_share") == pytest.approx(2 / 3)
    assert value("lss", "word_f1") == pytest.approx((8 / 9 + 0 + 1) / 3)  # one full stop more
    assert value("lss", "word_recall", "whole") == 0.75
    assert value("lss", "exact_match", "whole") == 0.25
    # As bags "poured" costs one of two words: precision 1/2, recall 1/4 and 1/2.
    assert value("lss", "bag_precision") == pytest.approx((4 / 5 + 1 / 2 + 1) / 3)
    assert value("lss", "bag_recall") == pytest.approx((1 + (1 / 4 + 1 / 2) / 2 + 1) / 3)
    assert value("lss", "bag_f1") == pytest.approx((8 / 9 + (1 / 3 + 1 / 2) / 2 + 1) / 3)
    assert value("lss", "rouge_1_mean") == pytest.approx((1 + (1 / 3 + 1 / 2) / 2 + 1) / 3)
    assert value("lss", "rouge_2_mean") == pytest.approx(2 / 3)  # nothing is nothing
    exact = row("lss", "exact_match")
    assert (exact.n, exact.failed) == (3, 1)
    assert exact.ci95[0] <= exact.value <= exact.ci95[1]
    # The claim with two annotators: the first against the second.
    human = row("lss", "word_f1", "another annotator")
    assert (human.n, human.value) == (1, pytest.approx(2 / 3))
    # Whose raters agree.
    most = row("lss", "pearson_bleu_rating", lss_generation_values.CEILING)
    assert (most.n, most.value) == (4, 1)
    assert value("lss_star", "exact_match") == pytest.approx(2 / 3)
    assert row("lss_star", "exact_match").failed == 1
    # Ratings are of annotations: one of five is a 3.
    assert value("rating", "rating_share", "human", "rating 3") == 0.2
    assert value("rating", "kept_words", "human", "rating 1") == 0
    assert value("rating", "kept_words", "whole", "rating 5") == 1
    assert value("rating", "kept_words", "played", "rating 4") is None
    failed = [row("rating", "kept_words", group=f"rating {n}").failed for n in (1, 3, 4, 5)]
    assert failed == [0, 0, 1, 0]
    pairs = [row for _, row in iter_rows(tmp_path / "run" / "pairs.jsonl")]
    assert len(pairs) == 3 * len(ROWS)
    assert pairs[3]["lss"] is None
    assert pairs[8]["lss_star"] == KNOWN[ROWS[0]["claim"]]


def of_raters(*ratings):
    """A claim with a rating of each of its raters."""
    annotation_rows = [{"lss": "It", "rating": rating} for rating in ratings]
    return LssExample(
        claim="It rained.", reference=f"Rain, {ratings}.", annotations=annotation_rows
    )


def test_the_ceiling_by_hand() -> None:
    """Raters of one claim vary by 2, so the noise is 1, 1 and 2; the means 2, 4 and 1 by 7 / 3."""
    examples = [of_raters(1, 3), of_raters(3, 5), of_raters(1)]
    (most,) = lss_generation_values.ceiling(examples, seed=0).values()
    assert most["value"] == pytest.approx((1 - (1 + 1 + 2) / 3 / (7 / 3)) ** 0.5)
    # With means that do not vary nothing correlates; these vary by less than their noise.
    (most,) = lss_generation_values.ceiling([of_raters(1, 5), of_raters(2, 4)], seed=0).values()
    assert most["value"] is None
    (most,) = lss_generation_values.ceiling([of_raters(1, 5), of_raters(2, 5)], seed=0).values()
    assert most["value"] == 0


def test_ratings_are_rounded_and_their_shares_are_of_what_is_drawn() -> None:
    examples = [of_raters(4.6, 5), of_raters(1.4)]
    values = lss_generation_values.by_rating(examples, {"none": [None, "It"]}, seed=0)
    actual = {(row["metric"], row["kind"], row["group"]): row for row in values}
    share = actual["rating_share", "human", "rating 5"]
    assert (share["value"], share["n"]) == (pytest.approx(2 / 3), 1)
    # Draws of the one reference, of the other, and of both.
    assert share["ci95"] == (0, 1)
    assert actual["rating_share", "human", "rating 1"]["value"] == pytest.approx(1 / 3)
    # One claim failed, whichever number of people rated it.
    failed = [actual["bleu", "none", f"rating {stars}"]["failed"] for stars in (1, 5)]
    assert failed == [0, 1]


def test_generators_are_compared_on_the_references_they_share(tmp_path) -> None:
    claims = {"good": ["It rained.", "It rained on Monday."], "bad": ["It snowed.", "It rained."]}
    files = {}
    for name, texts in claims.items():
        rows = [{"reference": f"It rained, {n}.", "claim": text} for n, text in enumerate(texts)]
        files[name] = str(tmp_path / f"{name}.jsonl")
        rows.append({"reference": f"Only {name}.", "claim": f"Only {name}."})
        write_jsonl(files[name], rows)
    actual = run(tmp_path, engines={"shared": SharedWords()}, annotations=[], claims=files)

    def row(metric, name, against=None):
        return actual["claims", metric, "shared", name, "all", against]

    # good keeps all, half ("on Monday" goes) and all; bad half ("snowed" goes), all and all.
    assert row("kept_words", "good").value == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert row("kept_words", "bad").value == pytest.approx((1 / 2 + 1 + 1) / 3)
    assert ("claims", "kept_words", "shared", "good", "all", "good") not in actual
    difference = row("kept_words", "bad", "good")
    assert (difference.n, row("kept_words", "bad").n) == (2, 3)  # not those that one has alone
    tables = [table.of(actual.values()) for table in LssGeneration.page.tables]
    (table,) = (table for table in tables if table.title == "Generators")
    bad = next(line for line in table.rows if line[0] == "bad")
    assert (table.head[-2:], bad[-2:]) == (["n", "failed"], ["3", "0"])
    assert [cell.note for cell in bad[2:4]] == ["", "n = 2"]  # a value, and its difference
    assert difference.value == pytest.approx((-1 / 2 + 1 / 2) / 2)
    assert difference.ci95 == pytest.approx((-1 / 2, 1 / 2))


def test_difference_counts_failures_of_both_sides(tmp_path) -> None:
    rows = [{"reference": f"Reference {n}.", "claim": "It rained."} for n in (1, 2)]
    write_jsonl(tmp_path / "kept.jsonl", rows)
    write_jsonl(tmp_path / "lost.jsonl", [rows[0], rows[1] | {"claim": "It snowed."}])
    files = {name: str(tmp_path / f"{name}.jsonl") for name in ("lost", "kept")}
    engines = {"played": Answers({"It rained.": "It rained."})}
    actual = run(tmp_path, engines=engines, annotations=[], claims=files)

    def row(name, against=None):
        return actual["claims", "bleu", "played", name, "all", against]

    assert [row("lost").failed, row("kept").failed] == [1, 0]
    assert (row("kept", "lost").failed, row("kept", "lost").n) == (1, 1)
