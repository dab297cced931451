"""Every stage says what it holds: its models, searchers and prompts are found wherever they are."""

import dataclasses
import importlib
import inspect
import pkgutil
import types
import typing
from pathlib import Path

import pytest
from pydantic import BaseModel

import eval
from eval.decompose.given import Given
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt, PromptFile
from eval.retrieve.serper import Serper
from eval.run.held import held, identities, keep_answers, prompts, writers

# Where classes that a configuration may name are.
ROOMS = (
    *("pipeline", "decompose", "revise", "select", "retrieve", "verify", "similarity", "metrics"),
    *("models", "prompting", "experiments"),
)
# What a constructor asks for beside models, where its defaults do not do; by the argument's name.
PLAIN = {
    "priors": __file__,  # it has to be there, and is not read
    "bleached": ["{topic} is a person."],
    "user_agent": "tests/1.0 (me@my-lab.example)",
    "path": "pages.db",
    "method": "conllu",
    "assessor": "mine",
    "labels": {},
    "name": "mine",
    **{"temperature": 0.1, "max_new_tokens": 8, "retries": 1, "seed": 0},
    "documents": {"a": "a.jsonl"},
    "generations": ["a.jsonl"],
    "annotations": ["a.jsonl"],
    "claims": {"a": "a.jsonl", "b": "b.jsonl"},
    "pairs": ["a.jsonl"],
    "factor": {"a": "a.jsonl"},
    "skip_below": 0.2,
    "texts": {"honest": "a.jsonl", "info": "b.jsonl"},
    "sets": {"a": "a.jsonl"},
    "adversaries": {"a": {0: ["a.jsonl"]}},
}
# What no configuration names: a decorator for a user's code, and what a stage builds itself.
INSIDE = {"core", "Selecting", "DenseIndex", "SeveralClaims"}


class Part:
    """A user's own part, which stands for any argument that is a model or a stage."""

    judges_sets = False

    def __init__(self, number, prompt):
        self.writer = OpenAIServer(f"model {number}", "http://127.0.0.1:1/v1")
        self.searcher = Serper(k=number + 1)
        self.prompt = Prompt(prompt)

    def holds(self):
        return [self.writer, self.searcher, self.prompt]

    def __call__(self, *arguments):
        raise AssertionError("nothing is asked here")


def classes():
    for room in pkgutil.walk_packages(eval.__path__, "eval."):
        if room.name.split(".")[1] not in ROOMS:
            continue
        module = importlib.import_module(room.name)
        for name, found in vars(module).items():
            if (
                inspect.isclass(found)
                and found.__module__ == room.name
                and name[0] != "_"
                and name not in INSIDE
            ):
                yield found


def is_part(hint):
    """Whether a type is that of a model, a stage, a prompt or whatever else may hold some."""
    if not inspect.isclass(hint) or not hint.__module__.startswith("eval."):
        return False
    return not (issubclass(hint, BaseModel | tuple) or dataclasses.is_dataclass(hint))


def holders():
    """Classes with an argument that is a part, each with these arguments and how many they take."""
    for found in classes():
        if getattr(found, "_is_protocol", False) or issubclass(
            found, Exception | BaseModel | tuple
        ):
            continue
        if inspect.isabstract(found):  # its subclasses are here
            continue
        hints = typing.get_type_hints(found.__init__)
        own = {}
        for name in inspect.signature(found).parameters:
            options = typing.get_args(hints.get(name)) if is_union(hints.get(name)) else ()
            for hint in options or [hints.get(name)]:
                inner = typing.get_args(hint)
                if is_part(hint):
                    own[name] = lambda new: new()
                elif typing.get_origin(hint) is list and is_part(inner[0]):
                    own[name] = lambda new: [new(), new()]
                elif typing.get_origin(hint) is dict and is_part(inner[1]):
                    own[name] = lambda new: {"a": new(), "b": new()}
        if own:
            yield pytest.param(found, own, id=f"{found.__module__}.{found.__qualname__}")


def is_union(hint):
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


@pytest.fixture
def prompt(tmp_path):
    (tmp_path / "own.jinja").write_text("Say. {{ claim }}")
    return tmp_path / "own.jinja"


@pytest.mark.parametrize(("found", "own"), list(holders()))
def test_every_stage_says_what_it_holds(found, own, prompt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / PLAIN["path"]).touch()  # hashed by whoever says which pages it has
    given: list[Part] = []

    def new():
        given.append(Part(len(given), prompt))
        return given[-1]

    arguments = {name: make(new) for name, make in own.items()}
    for name, parameter in inspect.signature(found).parameters.items():
        needed = parameter.default in (parameter.empty, None, [])
        if name in PLAIN and name not in own and (needed or "parser" in own):
            arguments[name] = PLAIN[name]
    stage = found(**arguments)
    there = held(stage)
    for part in given:
        assert part in there
    assert {id(part.writer) for part in given} <= {id(writer) for writer in writers(stage)}
    assert all(part.searcher.identity in identities(stage) for part in given)
    for value in vars(stage).values():
        if isinstance(value, PromptFile | Asker):
            assert value in there, "a prompt that is left out of the key is another run's answer"


def test_the_stages_are_seen():
    names = {parameter.id for parameter in holders()}
    assert len(names) >= 25
    assert {"eval.verify.nli.NLI", "eval.select.core.Core", "eval.pipeline.Pipeline"} <= names


class Says(Part):
    def holds(self):
        return [*super().holds(), None, self]


def test_a_stage_that_says_nothing_holds_nothing_and_each_part_is_held_once(prompt):
    says = Says(0, prompt)
    pipeline = Pipeline(Given(), [says, says, lambda *_: []])
    assert held(pipeline).count(says) == 1
    assert writers(pipeline) == [says.writer]
    assert prompts(pipeline) == {"/".join(prompt.parts[-3:]): Prompt(prompt).sha256}
    assert identities([pipeline, says]) == [says.writer.identity, says.searcher.identity]


def test_parts_in_lists_that_are_made_anew_are_all_held(prompt):
    parts = [Part(number, prompt) for number in range(20)]

    class Nested:
        def __init__(self, part):
            self.part = part

        def holds(self):
            return [[self.part], (None,)]

    assert writers([Nested(part) for part in parts]) == [part.writer for part in parts]


def test_answers_are_kept_in_the_folder_unless_there_is_another_place(prompt, tmp_path):
    first, second = Part(0, prompt), Part(1, prompt)
    second.writer.cache_path = Path("mine.sqlite")
    keep_answers([first, second], tmp_path)
    assert first.writer.cache_path == first.searcher.cache_path == tmp_path / ".answers.sqlite"
    assert second.writer.cache_path == Path("mine.sqlite")


def test_prompts_of_one_name_in_folders_of_one_name_are_all_told(tmp_path):
    files = [tmp_path / top / "own/prompts/atoms.txt" for top in "ab"]
    for file, text in zip(files, ("{sentence}", "Facts: {sentence}"), strict=True):
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    own = [Prompt(file) for file in files]
    assert prompts(own) == {
        "own/prompts/atoms.txt": own[0].sha256,
        files[1].as_posix(): own[1].sha256,
    }
