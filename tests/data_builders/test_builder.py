"""The frame of the builders: options, checks, plan, config, and what a killed build leaves."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import Card
from data_builders.journal import journal_rows
from data_builders.splits import by_split, split_at, tied_groups
from records import UnliPair, UserError

CARD = Card(pretty_name="Words", text="Made in a test.")


@dataclass
class Model:
    """A model that says what it is, and is slow on purpose."""

    name: str = "tiny"

    @property
    def identity(self) -> dict[str, str]:
        return {"model": self.name}


@dataclass
class Words(Builder):
    """Words of files, in capitals.

    Args:
        output: folder of the dataset.
        texts: files with a word a line.
        more: another file.
        model: who writes.
        share: of the words.
        shares: of train, dev and test.
        workers: changes the speed.
        limit: only the first so many words.
        seed: of nothing.
    """

    texts: list[str]
    more: str | None = None
    model: Model = field(default_factory=Model)
    share: float = 0.5
    shares: tuple[int, int, int] = (1, 0, 0)
    workers: int = 1

    reads = ("texts", "more")
    speed = ("workers",)
    least: ClassVar = {"workers": 1, "shares": 0}
    probabilities = ("share",)
    killed_at: ClassVar[str | None] = None

    def faults(self):
        if self.more == self.texts[:1]:
            yield "more: the same file again"

    def files(self):
        return {"words": by_split("words", ["train"])}

    def make(self, work: Work) -> Made:
        words = [w for path in self.texts for w in Path(path).read_text().split()][: self.limit]
        scratch = work.scratch("scratch.txt")
        scratch.write_text("for now")

        def make(some):
            for word in some:
                if word == self.killed_at:
                    raise KeyboardInterrupt
                yield {"said": word.upper()}

        journal = work.journal("words", self.model, self.seed)
        rows = journal_rows(journal, {w: w for w in words}, make, unit="word", batch_size=2)
        work.dropped["word that is short"] += sum(len(w) < 3 for w in words)
        return Made({"words_train.jsonl": rows.values()}, CARD, details={"words": len(words)})


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("one two three four five")
    return str(path)


def everything(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in Path(folder).rglob("*")}


def test_build_writes_only_its_files(tmp_path, texts):
    manifest = json.loads(Words(tmp_path / "out", [texts]).build().read_text())
    assert set(everything(tmp_path / "out")) == {
        "words_train.jsonl",
        "README.md",
        "manifest.json",
    }
    assert manifest["config"] == {
        "limit": None,
        "texts": ["texts.txt"],
        "more": None,
        "model": {"class": f"{__name__}.Model", "model": "tiny"},
        "share": 0.5,
        "shares": [1, 0, 0],
        "words": 5,
    }
    assert [entry["file"] for entry in manifest["inputs"]] == ["texts.txt"]
    assert manifest["kept"] == 5


def test_workers_and_output_folder_do_not_change_bytes(tmp_path, texts):
    Words(tmp_path / "a", [texts]).build()
    Words(tmp_path / "b", [texts], workers=3).build()
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


def test_killed_build_resumes_to_the_same_bytes(tmp_path, texts, monkeypatch):
    Words(tmp_path / "whole", [texts]).build()
    for word in ("three", "five", "five"):
        monkeypatch.setattr(Words, "killed_at", word)
        with pytest.raises(KeyboardInterrupt):
            Words(tmp_path / "out", [texts]).build()
        journal, _ = sorted(everything(tmp_path / "out"), reverse=True)
        assert journal.startswith(".words.")
    kept = (tmp_path / "out" / journal).read_text().splitlines()
    assert [json.loads(line)["name"] for line in kept] == ["one", "two", "three", "four"]
    monkeypatch.setattr(Words, "killed_at", "one")  # is not made again
    Words(tmp_path / "out", [texts]).build()
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")


def test_build_of_other_options_is_refused_unless_overwrite_is_set(tmp_path, texts, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setattr(Words, "killed_at", "four")
    with pytest.raises(KeyboardInterrupt):
        Words(out, [texts], model=Model("large")).build()
    monkeypatch.setattr(Words, "killed_at", None)
    for finished in (False, True):
        before = everything(out)
        for options, name in (({"model": Model("small")}, "model"), ({"seed": 2}, "seed, model")):
            with pytest.raises(UserError, match=f"out: contains a build with another {name};"):
                Words(out, [texts], **options).build()
        assert everything(out) == before, finished
        Words(out, [texts], model=Model("large")).build()
    Words(out, [texts], share=0.25, overwrite=True).build()
    assert json.loads((out / "manifest.json").read_text())["config"]["share"] == 0.25


class Picky(Words):
    """Words that fail after the first rows are written."""

    def make(self, work: Work) -> Made:
        made = super().make(work)
        if self.share == 0:
            raise UserError("no word is left; raise share")
        return made


def test_a_failed_build_does_not_block_one_with_other_options(tmp_path, texts):
    with pytest.raises(UserError, match="no word is left"):
        Picky(tmp_path / "out", [texts], share=0).build()
    Picky(tmp_path / "out", [texts]).build()
    Picky(tmp_path / "whole", [texts]).build()
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")


def test_all_invalid_options_are_reported_at_once():
    with pytest.raises(UserError) as caught:
        Words("out", [], share=2, shares=(0, 0, 0), workers=0, limit=0)
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "texts",
        "limit",
        "workers",
        "shares",
        "share",
    ]


def test_missing_file_is_an_error_before_the_build(tmp_path):
    builder = Words(tmp_path / "out", ["absent.txt"])
    assert builder.plan() == [Step("texts", "absent.txt", None, "rows")]
    with pytest.raises(UserError, match=r"absent\.txt: no such file"):
        builder.build()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("place", "split"),
    [(0, "train"), (7, "train"), (7.99, "train"), (8, "dev"), (9, "test"), (9.99, "test")],
)
def test_position_falls_into_its_share(place, split):
    assert split_at(place, (8, 1, 1)) == split


def test_groups_that_share_an_article_are_tied():
    rows = [("b", "one"), ("a", "one"), ("c", "two"), ("b", "three"), ("d", "three"), ("d", "four")]
    records = [UnliPair(premise=p, hypothesis="so", label=1, group=group) for group, p in rows]
    assert tied_groups(records, (1, 1)) == {"a": "a", "b": "a", "c": "c", "d": "a"}


def test_a_build_of_edited_code_is_refused_and_rebuilt_with_overwrite(tmp_path, texts, monkeypatch):
    monkeypatch.setattr(Words, "killed_at", "four")
    with pytest.raises(KeyboardInterrupt):
        Words(tmp_path / "out", [texts]).build()
    monkeypatch.setattr(Words, "killed_at", None)
    edited = {"commit": None, "changed": None, "sha256": "edited"}
    monkeypatch.setattr("data_builders.builder.describe_code", lambda _: edited)
    with pytest.raises(UserError, match=r"contains a build with another code; .*--overwrite"):
        Words(tmp_path / "out", [texts]).build()
    assert list((tmp_path / "out").glob(".words.*.partial.jsonl"))
    manifest = Words(tmp_path / "out", [texts], overwrite=True).build()
    assert json.loads(manifest.read_text())["code"] == edited
