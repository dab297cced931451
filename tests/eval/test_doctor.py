"""The doctor prints the installation and the missing inputs of each configuration."""

import pytest

from eval.commands.doctor import main

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


def printed(capsys):
    assert main([]) == 0
    return capsys.readouterr().out.splitlines()


def test_it_names_what_is_missing_and_what_makes_it(repository, capsys):
    lines = printed(capsys)
    place = lines.index("  configs/eval/small/mine.yaml")
    assert [line.strip() for line in lines[place + 1 : place + 3]] == [
        "missing checkpoints/small/relation: `python -m train fit --config "
        "configs/train/small/pages.yaml`",
        "missing data/kb/passages.jsonl: see the first lines of the configuration",
    ]
    assert lines[place + 3] == "  configs/eval/small/torn.yaml"
    assert lines[place + 4].strip().startswith("not valid YAML: while parsing")
    assert lines[place + 5] == "  configs/train/small/pages.yaml: nothing missing"
