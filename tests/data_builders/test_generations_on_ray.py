"""Texts sampled on Ray: the same bytes as one process, whoever is killed."""

import os
import signal

import pytest
import yaml

from data_builders.__main__ import main
from data_builders.sampled import TOPICS_PER_BATCH
from records import write_jsonl
from tests.eval.conftest import adversary, make_checkpoint, tiny_llama
from tests.model_server import ModelServer
from tests.on_ray import Gate, Started, on_ray

__all__ = ["adversary", "make_checkpoint", "tiny_llama"]  # fixtures

TOPICS = 2 * TOPICS_PER_BATCH + 4


def tell(body):
    return f"{body['messages'][-1]['content']} She sang {body['seed'] % 97} songs."


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def server(gate):
    def reply(body):
        gate()
        return tell(body)

    with ModelServer(reply) as running:
        yield running
        gate.let(float("inf"))


@pytest.fixture
def command(tmp_path, server, adversary):
    """Of a build by a served model and by an adversary's checkpoint."""
    write_jsonl(tmp_path / "topics.jsonl", [{"topic": f"Ann {n}"} for n in range(TOPICS)])
    served = {"model": "tiny", "base_url": server.url, "concurrency": 1}
    local = {"model": str(adversary), "device": "cpu", "dtype": "float32"}
    writers = {
        "eval.models.openai_server.OpenAIServer": (served, {"normal": "Tell me of {topic}."}),
        "eval.models.local.LocalModel": (local, {"info": str(adversary)}),
    }
    authors = {
        name.rpartition(".")[2]: {
            "writer": {"class_path": name, "init_args": options},
            "prompts": prompts,
        }
        for name, (options, prompts) in writers.items()
    }
    options = {"topics": [str(tmp_path / "topics.jsonl")], "authors": authors, "max_new_tokens": 8}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(options))
    return ["generations", f"--config={tmp_path / 'config.yaml'}"]


@on_ray
def test_a_build_on_ray_goes_on_with_other_workers(tmp_path, command, gate):
    calm = tmp_path / "calm"
    assert main([*command, f"--output={calm}"]) == 0
    chunk = f'"Ann {TOPICS_PER_BATCH - 1}"'  # the last topic of the first one
    gate.let(TOPICS_PER_BATCH + 5)
    build = Started(["data_builders", *command], tmp_path / "a", 1, chunk)
    build.until(gate.is_reached)
    build.until_kept(1)
    build.is_killed()
    gate.let(10)
    started = Started(["data_builders", *command], tmp_path / "a", 2, chunk)
    started.until(gate.is_reached)
    os.kill(started.workers()[0], signal.SIGKILL)
    gate.let(float("inf"))
    started.ends_well()
    assert {path.name for path in started.folder.iterdir()} == {
        path.name for path in calm.iterdir()
    }
    for path in calm.iterdir():
        assert path.read_bytes() == (started.folder / path.name).read_bytes(), path.name
