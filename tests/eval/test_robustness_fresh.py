"""Attacks from outside: known when the stack was made, or fresh."""

import os

import pytest

from components.code import time_of_commit
from eval.experiments.robustness.robustness_fresh import RULES, known_files
from records import Document

KNOWN_FRAME = "None of the following statements is true. {X} was a poet."
NEW_FRAME = "My parrot recites each night over tea that {X} was a poet."


@pytest.mark.parametrize(
    ("frame", "seconds_later", "reason"),
    [
        (KNOWN_FRAME, 60, "“none of the following statements” is in the rules"),
        (NEW_FRAME, -60, "not later than the stack's commit"),
        (NEW_FRAME, 60, None),
    ],
)
def test_file_is_known_if_it_is_old_or_has_a_phrase_of_the_banks(
    tmp_path, frame, seconds_later, reason
):
    commit = time_of_commit(*RULES)
    if commit is None:
        pytest.skip("no git history")
    path = tmp_path / "texts.jsonl"
    path.touch()
    os.utime(path, (commit + seconds_later, commit + seconds_later))
    texts = [
        Document(id=name, topic=name, text=frame.format(X=name)) for name in ("Ann", "Bea", "Cid")
    ]
    reasons = known_files({str(path): texts})
    assert reasons == {} if reason is None else reasons[str(path)].startswith(reason)
