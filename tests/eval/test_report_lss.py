"""The highlighted claim, and the pages that show it."""

from __future__ import annotations

import re

from components.words import split_words
from eval.commands.report import build_report
from eval.pipeline import Scored
from eval.report.highlighted import highlighted
from records import (
    Claim,
    Document,
    Result,
    ResultFile,
    Verdict,
    write_jsonl,
    write_results,
)

ATTACK = "</u><script>alert(1)</script>"


def test_runs_are_the_whole_claim_and_say_what_is_kept() -> None:
    claim = '  She (Ada)  wrote "it".\n'
    keep = [True, False, True, False, True, True, True, False, False]
    runs = highlighted(claim, keep)
    assert "".join(text for text, _ in runs) == claim
    assert runs[1:4] == [("She", True), (" ", None), ("(", False)]
    assert runs[-3:] == [('wrote "it', True), ('".', False), ("\n", None)]
    assert highlighted("", []) == []


def result(metric, **more):
    fields = {"selection": "none", "kind": "tagger", "generator": "given", "domain": "wafer"}
    fields |= {"n": 3, "failed": 1, "value": 0.5, "ci95": (0.4, 0.6), "config_hash": "c"}
    return Result(**(fields | {"metric": metric} | more))


def page_of(folder, experiment, results, pairs):
    write_results(
        folder / "results.json", ResultFile(experiment=experiment, provenance={}, results=results)
    )
    write_jsonl(folder / "pairs.jsonl", pairs)
    return build_report(folder).read_text(encoding="utf-8")


def test_the_page_shows_tables_figures_and_marked_claims(tmp_path) -> None:
    results = [
        result("word_f1", variant="lss", kind=f"tagger {ATTACK}"),
        result("answers_not_subsequence", variant="lss", kind=f"tagger {ATTACK}", n=77, failed=7),
        result("kept_words", variant="rating", group="rating 3"),
        result("bleu", variant="claims", generator="gpt"),
        result("bleu", variant="claims", generator="llama", against="gpt", value=-0.125),
    ]
    pair = {"reference": ATTACK, "claim": f"Ada wrote {ATTACK}", "engine": "tagger"}
    pair["annotations"] = [{"lss": "Ada", "rating": 2}]
    words = len(split_words(pair["claim"]))
    pairs = [
        pair | {"lss": "Ada", "keep": [True] + [False] * (words - 1)},
        pair | {"engine": "t5", "lss": "Ada sang", "scores": {"bleu": 0.25, "nli": None}},
        pair | {"engine": "none"},
    ]
    html = page_of(tmp_path, "lss_generation", results, pairs)
    assert "<script>alert" not in html
    assert '<u class="kept">Ada</u>' in html
    assert '<s class="dropped">' in html
    assert "[dropped: " in html  # for who cannot see the line
    text = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    for entry in (
        "0.500 [0.400, 0.600]",
        "-0.125",
        "alert(1)&lt;/script&gt; 0.500 [0.400, 0.600] 3 1",  # references; 77 are answers
        "annotator 1 Ada",
        "Ada sang",
        "no answer",
    ):
        assert entry in text
    assert "no answer" in text
    assert "bleu 0.250, nli –" in text
    assert html.count("<svg ") == 2
    repeated = build_report(tmp_path).read_text(encoding="utf-8")
    assert repeated == html


def test_a_scored_claim_is_highlighted(tmp_path) -> None:
    kept = [["Ada", True], ["sang", False], [".", True]]
    claim = Claim(id="c", text="Ada sang.", sentence=0, source="Ada sang.")
    verdict = Verdict(claim="c", assessor="lss", label="not_supported", p=0.67, kept=kept)
    document = Document(id="d", topic="Ada", text="Ada sang.", claims=[claim])
    scored = Scored(
        document=document, claims=[claim], passages=[], verdicts=[verdict], selections=[], scores=[]
    )
    write_jsonl(tmp_path / "scored.jsonl", [scored])
    file = ResultFile(experiment="score", provenance={}, results=[result("factual_precision")])
    write_results(tmp_path / "results.json", file)
    html = build_report(tmp_path).read_text(encoding="utf-8")
    assert '<u class="kept">Ada</u>' in html
    assert "[dropped: </span>sang<span" in html
