"""Dataset folders, and the door that builds them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from huggingface_hub import DatasetCard

from data_builders.__main__ import BUILDERS, main
from data_builders.dataset import Card, write_dataset
from data_builders.kb.server import open_client
from records import UnliPair, read_records, sha256_file
from records.errors import run_door

PAIRS = [UnliPair(premise="p", hypothesis=f"h{i}", label=i / 4) for i in range(5)]
CARD = Card(pretty_name="Pairs", text="Made in a test.")
CONFIGS = {"unli": {"train": "unli/train.jsonl", "validation": "unli/dev.jsonl"}}


def _write(folder, clients=(), pairs=PAIRS):
    return write_dataset(
        folder,
        {"unli/train.jsonl": pairs[:3], "unli/dev.jsonl": pairs[3:]},
        configs=CONFIGS,
        card=CARD,
        clients=clients,
        dropped={"too vague": 2, "never": 0},
        config={"chunk": 10, "path": None},
        seed=7,
    )


def test_folder_is_complete_and_described(tmp_path):
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


def test_a_broken_rewrite_leaves_no_manifest(tmp_path):
    _write(tmp_path)

    def broken():
        yield PAIRS[0]
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_dataset(
            tmp_path,
            {"unli/train.jsonl": broken(), "unli/dev.jsonl": []},
            configs=CONFIGS, card=CARD, clients=[], dropped={}, config={}, seed=7,
        )  # fmt: skip
    assert not (tmp_path / "manifest.json").exists()
    assert len(read_records(tmp_path / "unli/train.jsonl", UnliPair)) == 3


def test_a_file_that_no_config_names_is_a_defect(tmp_path):
    with pytest.raises(ValueError, match=r"unli/test\.jsonl"):
        write_dataset(
            tmp_path, {"unli/test.jsonl": PAIRS},
            configs=CONFIGS, card=CARD, clients=[], dropped={}, config={}, seed=7,
        )  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_the_card_names_the_files_that_have_rows(tmp_path):
    files = {"unli/train.jsonl": iter(PAIRS), "unli/dev.jsonl": [], "odd.jsonl": [{"a": 1}]}
    write_dataset(
        tmp_path, files, configs=CONFIGS | {"": {"odd": "odd.jsonl"}},
        card=CARD, clients=[], dropped={}, config={}, seed=7,
    )  # fmt: skip
    card = DatasetCard.load(tmp_path / "README.md")
    (config,) = card.data.configs
    assert config["data_files"] == [{"split": "train", "path": "unli/train.jsonl"}]
    assert "| `odd.jsonl` | 1 |" in card.text
    assert "| `unli/dev.jsonl` | 0 |" in card.text


@pytest.mark.integration
def test_same_bytes_with_and_without_the_cache(tmp_path):
    manifests = []
    for folder, cache in (("a", None), ("b", tmp_path / "cache"), ("c", tmp_path / "cache")):
        with open_client(cache_dir=cache) as client:
            client.select("SELECT ?x { ?x ?p ?o } LIMIT 3", family="any")
            manifests.append(_write(tmp_path / folder, [client]).read_bytes())
    assert manifests[0] == manifests[1] == manifests[2]
    request = json.loads(manifests[0])["requests"][0]
    assert (request["kind"], request["family"], request["requests"], request["rows"]) == (
        "local", "any", 1, 3,
    )  # fmt: skip
    assert request["endpoint"].startswith("people.ttl sha256:")
    assert b"127.0.0.1" not in manifests[0]


class Tiny:
    """Writes a number to a file."""

    def __init__(self, output: str, number: int = 3):
        """
        Args:
            output: the file.
            number: what to write.
        """
        self.output, self.number = output, number

    def build(self) -> None:
        with open(self.output, "w", encoding="utf-8") as file:
            file.write(str(self.number))


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(BUILDERS, "tiny", f"{__name__}:Tiny")


@pytest.mark.usefixtures("tiny")
def test_door_builds_from_a_config_with_overrides(tmp_path):
    config = tmp_path / "tiny.yaml"
    config.write_text(f"output: {tmp_path / 'out.txt'}\nnumber: 4\n")
    assert main(["tiny", "--config", str(config)]) == 0
    assert (tmp_path / "out.txt").read_text() == "4"
    assert main(["tiny", "--config", str(config), "--number", "5"]) == 0
    assert (tmp_path / "out.txt").read_text() == "5"


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("config", "word"),
    [
        ("output: x\nnumbre: 4\n", "numbre"),
        ("output: x\nnumber: four\n", "number"),
        ("number: 4\n", "output"),
        ("output: [x\n", "config"),
    ],
)
def test_door_names_the_fault_in_one_line(tmp_path, config, word, capsys):
    (tmp_path / "tiny.yaml").write_text(config)
    with pytest.raises(SystemExit) as caught:
        run_door(lambda: main(["tiny", "--config", str(tmp_path / "tiny.yaml")]))
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert word in line


@pytest.mark.usefixtures("tiny")
def test_door_help_shows_the_docstring(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["tiny", "--help"])
    assert caught.value.code == 0
    assert "what to write" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nothing"], ["kb_pairs", "--config", "absent.yaml"]])
def test_user_mistakes_leave_with_code_2(arguments):
    run = subprocess.run(
        [sys.executable, "-m", "data_builders", *arguments], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert run.stderr.startswith("error: ")
    assert len(run.stderr.strip().splitlines()) == 1
