"""A run finds models, searchers and prompts in the attributes of its stages."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from components.identity import identity
from eval.decompose.given import Given
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.prompting.prompts import Prompt
from eval.retrieve.serper import Serper
from eval.run.parts import (
    add_answer_caches,
    find_identities,
    find_parts,
    find_writers,
    hash_prompts,
)
from eval.verify.labels import Labels


class Part:
    """A user's own part."""

    judges_sets = False

    def __init__(self, number, prompt):
        self.writer = OpenAIServer(f"model {number}", "http://127.0.0.1:1/v1")
        self.searcher = Serper(k=number + 1)
        self.prompt = Prompt(prompt)


@dataclass
class Nested:
    parts: list
    by_name: dict


@pytest.fixture
def prompt(tmp_path):
    (tmp_path / "own.jinja").write_text("Say. {{ claim }}")
    return tmp_path / "own.jinja"


def test_each_part_is_held_once_and_in_order(prompt):
    part = Part(0, prompt)
    part.itself = part
    pipeline = Pipeline(Given(), [part, part, lambda *_: []])
    assert find_parts(pipeline).count(part) == 1
    assert find_writers(pipeline) == [part.writer]
    assert hash_prompts(pipeline) == {"/".join(prompt.parts[-3:]): Prompt(prompt).sha256}
    assert find_identities([pipeline, part]) == [identity(part.writer), identity(part.searcher)]


def test_lists_tuples_dicts_and_dataclasses_are_entered(prompt):
    parts = [Part(number, prompt) for number in range(4)]
    nested = Nested([parts[0], (None, parts[1])], {"a": parts[2], "b": Nested([], {1: [parts[3]]})})
    assert find_writers(nested) == [part.writer for part in parts]


INSTALLED = """
from eval.models.openai_server import OpenAIServer
from eval.prompting.prompts import Prompt
from torch import nn

class Helper:
    def __init__(self, writer):
        self.writer = writer

class Stage:
    def __init__(self, prompt):
        self.prompt = Prompt(prompt)
        self.helper = Helper(OpenAIServer("m", "http://127.0.0.1:1/v1"))
        self.layer = nn.Linear(2, 2)
        self.layer.helper = self.helper.writer

    def __call__(self, documents):
        return [[] for _ in documents]
"""


def test_installed_stage_has_cache_and_prompt_hash(prompt, tmp_path, monkeypatch):
    folder = tmp_path / "lib/site-packages/installed_stage"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(INSTALLED)
    monkeypatch.syspath_prepend(folder.parent)
    stage = import_module("installed_stage").Stage(prompt)
    pipeline = Pipeline(stage, [Labels()])
    parts = find_parts(pipeline)
    assert stage.helper.writer in parts
    assert stage.layer not in parts
    assert list(hash_prompts(pipeline).values()) == [stage.prompt.sha256]
    add_answer_caches(pipeline, tmp_path)
    assert stage.helper.writer.cache_path == tmp_path / ".answers.sqlite"


def test_answers_are_kept_in_the_folder_unless_there_is_another_place(prompt, tmp_path):
    first, second = Part(0, prompt), Part(1, prompt)
    second.writer.cache_path = Path("mine.sqlite")
    add_answer_caches([first, second], tmp_path)
    assert first.writer.cache_path == first.searcher.cache_path == tmp_path / ".answers.sqlite"
    assert second.writer.cache_path == Path("mine.sqlite")
