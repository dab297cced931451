"""The checkpoints that come with the repository: small, safe, and useful without a training."""

import json

import pytest

from eval.commands.score import main as score
from records import read_results, write_jsonl
from tests.test_house import ROOT

READY = ROOT / "checkpoints/ready"
MAX_MEGABYTES = 60
LEAD = (
    "Mira Lind was a Norwegian botanist and painter. She was born in Bergen in 1881, studied in "
    "Oslo, and taught at the university there until 1934."
)
SUPPORTED = ["Mira Lind was a botanist.", "Mira Lind was born in Bergen."]
UNSUPPORTED = [
    "Mira Lind was a chess player.",
    "Mira Lind was born in 1874.",
    "It is not true that Mira Lind was a botanist.",
    "The father of Mira Lind was a botanist.",
]


def test_ready_checkpoints_are_small_and_contain_no_pickle():
    files = [path for path in READY.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MAX_MEGABYTES * 2**20
    suffixes = {path.suffix for path in files}
    assert suffixes == {".json", ".md", ".png", ".safetensors"}


@pytest.mark.parametrize("folder", sorted(READY.iterdir()), ids=lambda path: path.name)
def test_a_ready_checkpoint_states_licence_sources_command_and_public_figures(folder):
    card = (folder / "README.md").read_text()
    for words in ("Apache-2.0", "CC BY-SA 4.0", "contains no text", "python -m train fit"):
        assert words in card
    assert ("| another annotator" if folder.name == "lss_tagger" else "| WiCE") in card
    described = json.loads((folder / "component.json").read_text())
    # Installed by `make setup`, or fetched by `make mpnet`
    assert described["base"]["id"].startswith(("package:", "checkpoints/base/all-mpnet-base-v2"))


def test_the_ready_configuration_scores_a_supported_text_above_an_unsupported_one(tmp_path):
    passages = [{"id": "p", "title": "Mira Lind", "text": LEAD}]
    rows = [
        {"id": kind, "topic": "Mira Lind", "kind": kind, "text": " ".join(sentences)}
        | {"passages": passages}
        for kind, sentences in (("supported", SUPPORTED), ("unsupported", UNSUPPORTED))
    ]
    write_jsonl(tmp_path / "texts.jsonl", rows)
    config = ROOT / "configs/eval/ready/factual_precision.yaml"
    arguments = [f"--config={config}", f"--documents={tmp_path / 'texts.jsonl'}"]
    assert score([*arguments, f"--output={tmp_path / 'run'}", "--pipeline.select=null"]) == 0
    results = read_results(tmp_path / "run/results.json").results
    precision = {row.kind: row.value for row in results if row.metric == "factual_precision"}
    assert precision["supported"] == 1
    assert precision["unsupported"] < 0.5
