"""The dataset of kb_pairs, built once over the real server from the embedded snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from data_builders.kb.facts import load_people
from data_builders.kb.kb_pairs.kb_pairs import KbPairs
from data_builders.kb.server import open_client
from data_builders.splits import SPLITS
from records import Generation, LssExample, RelationPair, UnliPair, read_records

KINDS = {
    "unli": UnliPair,
    "relation": RelationPair,
    "articles": RelationPair,
    "lss": LssExample,
    "generations": Generation,
}


@pytest.fixture(scope="session")
def small() -> dict[str, tuple[int, int, int]]:
    """How many rows of each kind the small dataset asks for, by split."""
    small = {"articles": (90, 45, 45), "lss": (150, 50, 50)}
    return {"unli": (400, 120, 120), "relation": (500, 150, 150), **small}


@pytest.fixture(scope="session")
def build(small) -> Callable[[Path], Path]:
    """Builds the small dataset into a folder and returns the folder."""

    def _build(folder: Path) -> Path:
        return KbPairs(folder, seed=3, generations_per_person=1, **small).build().parent

    return _build


@pytest.fixture(scope="session")
def dataset(build, tmp_path_factory):
    return build(tmp_path_factory.mktemp("kb_pairs"))


@pytest.fixture(scope="session")
def rows(dataset):
    return {
        (kind, split): read_records(dataset / f"{kind}_{split}.jsonl", record)
        for kind, record in KINDS.items()
        for split in SPLITS
    }


@pytest.fixture(scope="session")
def people():
    with open_client() as client:
        return load_people(client)
