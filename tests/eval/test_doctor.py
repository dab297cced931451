"""The doctor prints the installation and the missing inputs of each configuration."""

from pathlib import Path

import pytest

from eval.commands.doctor import main

ROOT = Path(__file__).parents[2]
CONFIG = """\
# python -m eval score --config configs/eval/small/mine.yaml
pipeline:
  retrieve:
    class_path: eval.retrieve.bm25.BM25
    init_args: {passages: data/kb/passages.jsonl}
  verify:
    - class_path: eval.verify.nli.NLI
      init_args:
        entailment:
          class_path: eval.models.encoder.Entailment
          init_args: {checkpoint: checkpoints/small/relation}
"""


def write_configs(root, texts):
    for name, text in texts.items():
        path = root / "configs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A root with a config to score, one to train, and one that is no YAML."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "eval/small/mine.yaml": CONFIG,
        "train/small/pages.yaml": "name: small/pages\nexport_to: checkpoints/small/relation\n",
        "eval/small/torn.yaml": "pipeline: {",
    }
    write_configs(tmp_path, texts)
    (tmp_path / "data/kb").mkdir(parents=True)
    return tmp_path


def said(capsys):
    assert main([]) == 0
    return capsys.readouterr().out.splitlines()


def test_it_names_what_is_missing_and_what_makes_it(repository, capsys):
    lines = said(capsys)
    place = lines.index("  configs/eval/small/mine.yaml")
    assert [line.strip() for line in lines[place + 1 : place + 3]] == [
        "missing checkpoints/small/relation: `python -m train fit --config "
        "configs/train/small/pages.yaml`",
        "missing data/kb/passages.jsonl: see the first lines of the configuration",
    ]
    assert lines[place + 3] == "  configs/eval/small/torn.yaml"
    assert lines[place + 4].strip().startswith("not valid YAML: while parsing")
    assert lines[place + 5] == "  configs/train/small/pages.yaml: nothing missing"


def test_what_is_there_is_not_missing(repository, capsys):
    (repository / "data/kb/passages.jsonl").write_text("")
    (repository / "checkpoints/small/relation").mkdir(parents=True)
    (repository / "checkpoints/small/relation/component.json").write_text("{}")
    assert "  configs/eval/small/mine.yaml: nothing missing" in said(capsys)


def test_weighed_files_other_configs_and_folders_of_a_fresh_clone_are_looked_for(
    repository, capsys
):
    """A file of ``{file: weight}``, what a config named by another lacks, and ``downloads/…``."""
    texts = {
        "data/small/pages.yaml": "input: [downloads/texts, downloads/a.xml.bz2]\n",
        "data/small/sampled.yaml": "pipeline: configs/eval/small/mine.yaml\n",
        "train/small/weighed.yaml": "data:\n  train: {data/kb/a.jsonl: 1, data/kb/b.jsonl: 0.5}\n",
        "train/small/sweep.yaml": "command: [--config, configs/train/small/weighed.yaml]\n",
    }
    write_configs(repository, texts)
    lines = said(capsys)
    lacks = {
        line.strip(): lines[place + 1 : place + 3]
        for place, line in enumerate(lines)
        if line.endswith(".yaml")
    }
    named = {name: "\n".join(lacks.get(f"configs/{name}", [])) for name in texts}
    assert "missing downloads/a.xml.bz2, downloads/texts:" in named["data/small/pages.yaml"]
    assert "missing checkpoints/small/relation:" in named["data/small/sampled.yaml"]
    assert "missing data/kb/passages.jsonl:" in named["data/small/sampled.yaml"]
    for name in ("train/small/weighed.yaml", "train/small/sweep.yaml"):
        assert "missing data/kb/a.jsonl, data/kb/b.jsonl:" in named[name]


def test_it_runs_in_the_repository(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    lines = said(capsys)
    configs = {str(p.relative_to(ROOT)) for p in (ROOT / "configs").rglob("*.yaml")}
    assert {line.strip().split(":")[0] for line in lines} >= configs
