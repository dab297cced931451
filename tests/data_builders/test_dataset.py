"""Dataset folders, and the command that builds them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from datasets import load_dataset
from huggingface_hub import DatasetCard

from data_builders.__main__ import main
from data_builders.builder import Builder, Made
from data_builders.dataset import Card, write_dataset
from records import UnliPair, UserError, read_records, sha256_file

PAIRS = [UnliPair(premise="p", hypothesis=f"h{i}", label=i / 4) for i in range(5)]
CARD = Card(pretty_name="Pairs", text="Made in a test.")
CONFIGS = {"unli": {"train": "unli/train.jsonl", "validation": "unli/dev.jsonl"}}


def _write(folder, clients=(), pairs=PAIRS):
    return write_dataset(
        folder,
        {"unli/train.jsonl": pairs[:3], "unli/dev.jsonl": pairs[3:]},
        builder="pairs",
        configs=CONFIGS,
        card=CARD,
        clients=clients,
        dropped={"too vague": 2, "never": 0},
        config={"chunk": 10, "path": None},
        seed=7,
    )


def test_written_folder_has_manifest_and_card(tmp_path):
    manifest = json.loads(_write(tmp_path / "d").read_text())
    files = {p.relative_to(tmp_path / "d").as_posix() for p in (tmp_path / "d").rglob("*.*")}
    assert files == {"unli/train.jsonl", "unli/dev.jsonl", "README.md", "manifest.json"}
    assert manifest["kept"] == 5
    assert manifest["dropped"] == {"too vague": 2}
    assert (manifest["seed"], manifest["config"]) == (7, {"chunk": 10, "path": None})
    for name, entry in manifest["files"].items():
        assert entry["sha256"] == sha256_file(tmp_path / "d" / name)
        assert entry["rows"] == len(read_records(tmp_path / "d" / name, UnliPair))
    front = yaml.safe_load((tmp_path / "d" / "README.md").read_text().split("---\n")[1])
    assert front["size_categories"] == ["n<1K"]
    assert front["configs"] == [
        {
            "config_name": "unli",
            "data_files": [
                {"split": "train", "path": "unli/train.jsonl"},
                {"split": "validation", "path": "unli/dev.jsonl"},
            ],
        }
    ]


def test_interrupted_rewrite_leaves_no_manifest(tmp_path):
    _write(tmp_path)

    def broken():
        yield PAIRS[0]
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_dataset(
            tmp_path,
            {"unli/train.jsonl": broken(), "unli/dev.jsonl": []},
            builder="pairs", configs=CONFIGS, card=CARD, clients=[], dropped={}, config={}, seed=7,
        )  # fmt: skip
    assert not (tmp_path / "manifest.json").exists()
    assert len(read_records(tmp_path / "unli/train.jsonl", UnliPair)) == 3


def test_files_of_an_earlier_build_are_removed(tmp_path):
    _write(tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    for inputs in ([], [tmp_path / "unli/dev.jsonl"]):
        write_dataset(
            tmp_path, {"unli/train.jsonl": PAIRS}, inputs=inputs,
            builder="pairs", configs=CONFIGS, card=CARD, clients=[], dropped={}, config={}, seed=7,
        )  # fmt: skip
        assert (tmp_path / "mine.txt").exists()
        assert (tmp_path / "unli/dev.jsonl").exists() == bool(inputs)
        (tmp_path / "unli/dev.jsonl").write_text("{}\n")


def test_built_folders_load_with_datasets(lead_pairs_folder, tmp_path):
    """The folder that the fixture builds, and those of ``make small`` if they are here."""
    built = [path.parent for path in sorted(Path("data").glob("*/manifest.json"))]
    for folder in [lead_pairs_folder, *built]:
        for config in DatasetCard.load(folder / "README.md").data.to_dict().get("configs", []):
            name, cache = config["config_name"], str(tmp_path / folder.name)
            loaded = load_dataset(str(folder), name, cache_dir=cache)
            rows = json.loads((folder / "manifest.json").read_text())["files"]
            for file in config["data_files"]:
                assert loaded[file["split"]].num_rows == rows[file["path"]]["rows"], (folder, name)


@dataclass
class Tiny(Builder):
    """Writes a number to a file.

    Args:
        output: folder of the dataset.
        number: what to write.
        limit: of nothing.
        seed: of nothing.
    """

    number: int = 3

    def files(self):
        return {"numbers": {"train": "numbers.jsonl"}}

    def make(self, work):
        work.dropped["odd"] += 2
        return Made({"numbers.jsonl": [{"number": self.number}]}, CARD)


TINY = f"{__name__}.Tiny"


def test_class_path_builds_from_a_config_with_overrides(tmp_path, capsys):
    config = tmp_path / "tiny.yaml"
    config.write_text(f"output: {tmp_path / 'out'}\nnumber: 4\n")
    written = tmp_path / "out/numbers.jsonl"
    assert main([TINY, "--config", str(config)]) == 0
    assert json.loads(written.read_text()) == {"number": 4}
    assert capsys.readouterr().out == (
        f"{TINY}: 1 record(s) in 1 file(s) of {tmp_path}/out (2 rows dropped); card: "
        f"{tmp_path}/out/README.md\ndropped 2 x odd\n"
    )
    assert main([TINY, "--config", str(config), "--number", "5", "--overwrite"]) == 0
    assert json.loads(written.read_text()) == {"number": 5}


def test_dataset_of_another_builder_is_not_overwritten(tmp_path):
    path = tmp_path / "out/manifest.json"
    assert main([TINY, "--output", str(path.parent)]) == 0
    manifest = json.loads(path.read_text())
    assert manifest.pop("builder") == "test_dataset", "a builder is called as its file"
    path.write_text(json.dumps({"builder": "lead_pairs", **manifest}))
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(UserError, match="contains a build with another builder"):
        main([TINY, "--output", str(path.parent), "--number", "5"])
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before
    path.write_text(json.dumps(manifest))
    assert main([TINY, "--output", str(path.parent)]) == 0, "once manifests named no builder"
