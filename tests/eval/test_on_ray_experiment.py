"""An experiment on Ray: the same bytes as one process."""

import pytest
import yaml

from eval.commands.experiment import main
from eval.run.run import CHUNK
from records import write_jsonl
from tests.model_server import ModelServer
from tests.on_ray import Started, on_ray

TEXTS = 2 * CHUNK + 4


def has_an_even_number(body):
    number = "".join(char for char in body["messages"][-1]["content"] if char.isdigit())
    return str(int(number) % 2 == 0)


def texts():
    """Honest ones and adversarial ones, on the same topics."""
    for number in range(TEXTS):
        kind = "info" if number % 2 else "normal"
        text = f"Ann painted {number} birds."
        yield {"id": f"{number}", "topic": f"Ann {number // 2}", "kind": kind, "text": text}


def appended():
    """Clean twins, and corrupted texts with k sentences behind."""
    for number in (2, 4):
        fields = {"id": f"{number}", "topic": f"Ann {number}", "kind": "clean"}
        yield fields | {"text": f"Ann painted {number} birds."}
        corrupted = fields | {
            "id": f"{number}-1",
            "kind": "corrupted",
            "clean": f"{number}",
            "k": 1,
        }
        yield corrupted | {"text": f"Ann painted {number + 1} birds. She had {number} birds."}


@pytest.fixture
def server():
    with ModelServer(has_an_even_number) as running:
        yield running


@pytest.fixture
def robustness(tmp_path, server, relation):
    """Of two metrics that share a verifier which asks a language model, and a defence."""
    write_jsonl(tmp_path / "texts.jsonl", texts())
    write_jsonl(tmp_path / "appended.jsonl", appended())
    inputs = {"model": "m", "base_url": server.url, "concurrency": 1, "prices": [1.0, 2.0]}
    writer = {"class_path": "eval.models.openai_server.OpenAIServer", "init_args": inputs}
    model = {"checkpoint": str(relation), "cache": str(tmp_path / "cache/pairs.sqlite")}
    entailment = {"class_path": "eval.models.encoder.Entailment", "init_args": model}
    fields = {"writer": writer, "retrieval": False}
    asks = {"class_path": "eval.verify.factscore.FActScore", "init_args": fields}
    core = {"entailment": entailment, "weighting": "uniform"}
    metric = {"decompose": {"class_path": "eval.decompose.sentences.Sentences"}, "verify": [asks]}
    options = {
        "texts": [str(tmp_path / "texts.jsonl")],
        "curves": {"appended": [str(tmp_path / "appended.jsonl")]},
        "metrics": {"one": metric, "penalised": metric | {"gamma": 10}},
        "defences": {
            "core": {"select": {"class_path": "eval.select.core.Core", "init_args": core}}
        },
        "by": [],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"experiment": options}))
    return ["robustness", f"--config={tmp_path / 'config.yaml'}"]


@on_ray
def test_robustness_on_two_workers_has_the_bytes_of_one_process(tmp_path, robustness):
    calm = tmp_path / "calm"
    assert main([*robustness, f"--output={calm}"]) == 0
    (tmp_path / "cache").rename(tmp_path / "before")
    run = Started(["eval", "experiment", *robustness], tmp_path / "two", 2)
    run.ends_well()
    names = {path.name for path in calm.iterdir() if not path.name.startswith(".")}
    assert {"results.json", "texts.jsonl", "curves.jsonl", "report.html"} <= names
    for name in names:
        if (calm / name).is_file():
            assert (run.folder / name).read_bytes() == (calm / name).read_bytes(), name
