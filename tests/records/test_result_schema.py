"""Results of schema 1, as the code of its time wrote them, are read as results of schema 2."""

import json
from pathlib import Path

import pytest

from eval.commands.report import build_report
from records import UserError, read_results, write_results

OLD = Path(__file__).parent / "results_1"
# Of each experiment: metric, assessor, variant, against, kind, generator, group.
FORM, PLAIN = "(claim, LSS)", "(reference, claim)"
EXPECTED = {
    "decomposition": [
        ("subclaims", None, None, None, "cut", "macro", "all"),
        ("decomp_score", "nli", None, None, "cut", "macro", "all"),
        ("factual_precision", None, None, None, "cut", "macro", "all"),
        ("factual_precision_supported_only", None, "nli", None, "cut", "macro", "all"),
        ("kappa", "nli", None, "llm", "cut", "all", "all"),
        ("pearson_of_means", "nli", None, "llm", "all", "all", "all"),
        ("factual_precision", "crowd", None, None, "cut", "one", "all"),
        ("factual_precision_supported_only", "crowd", "nli", None, "cut", "one", "all"),
    ],
    "dfactscore": [
        ("factual_precision", None, "grouped", None, "automatic", "all", "all"),
        ("output_type", None, "kept apart", None, "automatic", "all", "all"),
        ("balanced_accuracy", None, "grouped", "people", "automatic", "merging", "all"),
        ("linked_alike", None, None, "people", "automatic", "merging", "all"),
        ("most_viewed", None, None, None, "automatic", "all", "all"),
        ("spearman_of_factual_precision", None, "grouped", "views", "automatic", "all", "all"),
        ("spearman_of_gap", None, None, "views", "automatic", "all", "all"),
    ],
    "factreasoner": [
        ("precision", "FactReasoner fr2", None, None, "all", "given", "given"),
        ("precision", "FactReasoner fr2", "sd", None, "all", "given", "given"),
        ("precision", "NLI", None, None, "all", "given", "given"),
        ("precision", "NLI", "sd", None, "all", "given", "given"),
        ("precision", "FactReasoner fr2", None, "NLI", "all", "given", "given"),
        ("precision", "FactReasoner fr2", "p", "NLI", "all", "given", "given"),
        ("precision", "FactReasoner fr2", "p_holm", "NLI", "all", "given", "given"),
        ("brier", "FactReasoner fr2", None, "NLI", "all", "given", "given"),
    ],
    "informativeness": [
        ("auroc", None, "trained", None, "bleached > specific", "given", "all"),
        ("likelihood", None, "trained", None, "texts", "given", "all"),
        ("auroc", None, "untrained", None, "bleached > specific", "given", "all"),
        ("likelihood", None, "untrained", None, "texts", "given", "all"),
        ("auroc", None, "trained", "untrained", "bleached > specific", "given", "all"),
    ],
    "lss_generation": [
        ("word_f1", None, "lss", None, "played", "given", "all"),
        ("word_f1", None, "lss", None, "whole", "given", "all"),
        ("word_f1", None, "lss", None, "another annotator", "given", "all"),
        ("exact_match", None, "lss_star", None, "played", "given", "all"),
        ("exact_match", None, "lss_star", None, "another annotator", "given", "all"),
        ("rating_share", None, "rating", None, "human", "given", "rating 3"),
        *(("bleu", None, "rating", None, w, "given", "rating 3") for w in ("human", "played")),
        ("bleu", None, "rating", None, "whole", "given", "rating 3"),
        ("bleu", None, "claims", None, "shared", "good", "all"),
        ("bleu", None, "claims", None, "shared", "bad", "all"),
        ("bleu", None, "claims", "good", "shared", "bad", "all"),
    ],
    "lss_metrics": [
        ("mean", "bleu", PLAIN, None, "no LSS", "all", "all"),
        ("mean", "bleu", FORM, None, "tagger", "all", "all"),
        ("mean", "bleu", FORM, None, "shared words", "all", "all"),
        *(
            (name, "bleu", FORM, against, engine, "all", "all")
            for engine, others in (
                ("tagger", (None, PLAIN, "shared words")),
                ("shared words", (None, PLAIN)),
            )
            for against in others
            for name in ("pearson", "spearman")
        ),
    ],
    "relation_model": [
        *(
            row
            for model in ("copies", "same")
            for row in (
                ("auroc", model, None, None, "entailment > all", "given", "all"),
                ("true_positive_rate", model, 0.5, None, "entailment > all", "given", "all"),
                ("called_so", model, None, None, "neutral", "given", "all"),
            )
        ),
        ("auroc", "copies", None, "same", "entailment > all", "given", "all"),
    ],
    "robustness": [
        ("factual_precision", None, "trained", None, "normal", "given", "all"),
        ("kept_share", None, "trained", None, "normal", "given", "all"),
        ("factual_precision", None, "trained", None, "uninformative", "given", "all"),
        ("factual_precision", None, "trained", None, "sampled", "adversary", "all"),
        ("factual_precision", None, "untrained", None, "normal", "given", "all"),
        ("kept_share", None, "untrained", None, "normal", "given", "all"),
        ("factual_precision", None, "untrained", None, "uninformative", "given", "all"),
        ("factual_precision", None, 0, None, "corrupted", "given", "all"),
        ("factual_precision", None, 2, None, "corrupted", "given", "all"),
    ],
    "score": [
        ("factual_precision", assessor, None, None, "normal", "given", "all")
        for assessor in ("labels", "labels", "pairwise", "pairwise")
    ],
}
FIELDS = ("metric", "assessor", "variant", "against", "kind", "generator", "group")


@pytest.mark.parametrize("name", EXPECTED)
def test_names_are_told_apart_and_numbers_stay(name):
    found = read_results(OLD / f"{name}.json")
    rows = [tuple(getattr(row, field) for field in FIELDS) for row in found.results]
    assert rows == EXPECTED[name]
    old = json.loads((OLD / f"{name}.json").read_text(encoding="utf-8"))["results"]
    for before, row in zip(old, found.results, strict=True):
        after = row.model_dump(mode="json")
        kept = ("selection", "domain", "n", "failed", "value", "ci95", "config_hash")
        assert {key: before[key] for key in kept} == {key: after[key] for key in kept}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_old_file_is_shown_and_written_anew(name, tmp_path):
    file = read_results(OLD / f"{name}.json")
    (tmp_path / "results.json").write_bytes((OLD / f"{name}.json").read_bytes())
    page = build_report(tmp_path).read_text(encoding="utf-8")
    assert f"All results ({len(file.results)})" in page
    write_results(tmp_path / "results.json", file)
    assert json.loads((tmp_path / "results.json").read_text())["schema_version"] == 2
    assert read_results(tmp_path / "results.json") == file
    assert build_report(tmp_path).read_text(encoding="utf-8") == page


def row_of(tmp_path, experiment, **more):
    row = {"metric": "m", "selection": "none", "kind": "k", "generator": "g", "domain": "d"}
    row |= {"group": "all", "components": "trained", "n": 1, "failed": 0, "value": 0.5}
    row |= {"ci95": None, "config_hash": "h", **more}
    file = {"schema_version": 1, "experiment": experiment, "provenance": {}, "results": [row]}
    (tmp_path / "results.json").write_text(json.dumps(file))
    (found,) = read_results(tmp_path / "results.json").results
    return found


def test_bins_and_correlations_of_the_past(tmp_path):
    row = row_of(tmp_path, "score", metric="claims:safe.default", group="bin=very rare")
    assert (row.assessor, row.group, row.bin) == ("safe", "all", "very rare")
    row = row_of(tmp_path, "robustness", group="bin=rare", components="untrained")
    assert (row.variant, row.group, row.bin) == ("untrained", "all", "rare")
    row = row_of(tmp_path, "dfactscore", metric="pearson:factual_precision:grouped~people")
    assert (row.metric, row.variant) == ("pearson_of_factual_precision", "grouped")
    assert row.against == "people"
    row = row_of(tmp_path, "dfactscore", metric="spearman:gap~file")
    assert (row.metric, row.variant, row.against) == ("spearman_of_gap", None, "file")
    assert row_of(tmp_path, "of a user's own", metric="m").metric == "m"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_version": 3}, "schema_version"),
        ({"results": [{"metric": 1}]}, "results"),
        ({"results": None}, "results"),
    ],
)
def test_what_is_of_no_schema_is_refused_in_one_line(tmp_path, change, said):
    file = json.loads((OLD / "score.json").read_text()) | change
    (tmp_path / "results.json").write_text(json.dumps(file))
    with pytest.raises(UserError, match=said) as raised:
        read_results(tmp_path / "results.json")
    assert "\n" not in str(raised.value)
