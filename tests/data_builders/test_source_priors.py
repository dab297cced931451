"""``source_priors``: what agrees is trusted, and verifiers read the priors."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from data_builders.published.source_priors import SourcePriors
from records import SourcePrior, read_records, write_jsonl


class Told:
    """Says what stands in brackets in the premise: yes, no, or neither; ``?`` has no answer."""

    identity = "told"

    def relations(self, pairs):
        rows = {"yes": (0.9, 0.1, 0.0), "no": (0.0, 0.1, 0.9), "?": (np.nan,) * 3}
        answers = [re.search(r"\[(.*)\]", premise)[1] for premise, _ in pairs]
        return np.array([rows.get(word, (0.1, 0.8, 0.1)) for word in answers]).reshape(-1, 3)


def document(place, label=None, **answers):
    """A claim on which the named sources say yes or no."""
    passages = [
        {
            "id": f"p{n}",
            "text": f"{place} {n} [{word}]",
            "source": name,
            "title": f"T {name}",
            "url": f"https://www.{name}.example/{place}",
        }
        for n, (name, word) in enumerate(answers.items())
    ]
    claim = {"id": "c0", "text": f"Claim {place}.", "label": label}
    return {"id": f"d{place}", "topic": "t", "text": "x", "claims": [claim], "passages": passages}


def learnt(folder, rows, **options):
    write_jsonl(folder / "d.jsonl", rows)
    options |= {"overwrite": True}
    manifest = SourcePriors(folder / "out", [str(folder / "d.jsonl")], Told(), **options).build()
    priors_of = {row.source: row for row in read_records(folder / "out/priors.jsonl", SourcePrior)}
    return priors_of, json.loads(manifest.read_text())


def liar(count=12):
    """Two sources agree, one says the opposite, one never takes a side, and one speaks alone."""
    rows = []
    for place in range(count):
        yes, no = ("yes", "no") if place % 2 else ("no", "yes")
        rows.append(document(place, "S" if place % 2 else "NS", a=yes, b=yes, liar=no, mute="-"))
    return [*rows, document(count, None, alone="yes"), document(count + 1, None, a="?", b="yes")]


def test_agreeing_source_has_a_high_prior(tmp_path):
    priors_of, manifest = learnt(tmp_path, liar())
    assert set(priors_of) == {"a", "b", "liar", "alone"}
    a, lies, alone = priors_of["a"], priors_of["liar"], priors_of["alone"]
    # By the formula, with twelve votes all on the side of the others, or none.
    assert (a.agreed, a.seen, a.prior) == (
        12,
        12,
        pytest.approx(0.3 * 0.5 + 0.7 * 13 / 14, abs=1e-6),
    )
    assert (lies.agreed, lies.seen) == (0, 12)
    assert lies.prior == pytest.approx(0.3 * 0.5 + 0.7 / 14, abs=1e-6)
    assert (alone.seen, alone.prior) == (0, 0.5)
    assert manifest["dropped"]["pair that the model failed to judge"] == 1
    assert manifest["dropped"]["neutral passage"] == 12
    assert manifest["config"]["entailment"]["identity"] == "told"


def test_priors_weight_the_votes_iteratively(tmp_path):
    """Two liars that agree outvote one honest source, until a record elsewhere tells them."""
    together = [document(n, None, honest="yes", x="no", y="no") for n in range(4)]
    priors_of, _ = learnt(tmp_path, together)
    assert priors_of["honest"].prior < 0.5 < priors_of["x"].prior
    apart = [
        document(f"{name}{n}", None, **{name: "no", "p": "yes", "q": "yes", "r": "yes"})
        for name in ("x", "y")
        for n in range(30)
    ]
    good = [document(f"h{n}", None, honest="yes", p="yes", q="yes") for n in range(30)]
    priors_of, _ = learnt(tmp_path, [*together, *apart, *good])
    assert priors_of["x"].prior < 0.3
    assert priors_of["honest"].prior > 0.6


def test_labels_replace_the_votes_of_other_sources(tmp_path):
    rows = [document(n, "NS", a="yes", b="yes") for n in range(6)]
    assert learnt(tmp_path, rows)[0]["a"].prior > 0.5
    priors_of, _ = learnt(tmp_path, rows, labels=True)
    assert (priors_of["a"].agreed, priors_of["a"].seen) == (0, 6)
    finer = [row | {"claims": [row["claims"][0] | {"finer": "not_enough"}]} for row in rows]
    assert learnt(tmp_path, finer, labels=True)[0]["a"].seen == 0
