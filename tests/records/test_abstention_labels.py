"""Detection of abstentions, measured on responses that were labelled by reading them.

``abstention_labels.jsonl`` names files of a folder of downloaded data (``FACTFOUNDRY_DATA``) and
their rows by topic or question id. A text is labelled as an abstention if none of its sentences
states something about the topic. Reasons of a refusal ("she is not a public figure"), statements
about the name or the search results, persons of whom the text says that they are others, and bare
lists of titles state nothing; wrong or invented facts are answers.
"""

import json
import os
from pathlib import Path

import pytest

from records.abstention import responds
from records.types import Document

FOLDER = Path(os.environ.get("FACTFOUNDRY_DATA") or "no folder of data")
LABELS = [
    json.loads(line)
    for line in Path(__file__).with_name("abstention_labels.jsonl").read_text("utf-8").splitlines()
]


def test_labels_have_unique_rows_and_both_classes():
    assert len({(label["file"], label["id"]) for label in LABELS}) == len(LABELS) >= 300
    assert min(sum(label["abstains"] is kind for label in LABELS) for kind in (True, False)) >= 150
    assert {key for label in LABELS for key in label} == {"file", "id", "abstains", "note"}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="FACTFOUNDRY_DATA names no folder")
def test_labelled_abstentions_are_found_and_answers_kept():
    texts = {}
    for file in {label["file"] for label in LABELS}:
        for line in (FOLDER / file).read_text("utf-8").splitlines():
            row = json.loads(line)
            texts[file, row.get("qid", row.get("topic"))] = row["output"]
    flagged = {True: [], False: []}
    for label in LABELS:
        text = texts[label["file"], label["id"]]
        flagged[label["abstains"]].append(not responds(Document(id="x", topic="x", text=text)))
    recall, lost = (sum(rows) / len(rows) for rows in (flagged[True], flagged[False]))
    print(f"abstentions found {recall:.4f} of {len(flagged[True])}")
    print(f"answers lost {lost:.4f} of {len(flagged[False])}")
    assert recall >= 0.98
    assert lost <= 0.005
