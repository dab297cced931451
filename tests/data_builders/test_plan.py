"""The command line of the builders: ``--dry_run``, class paths, options."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from data_builders.__main__ import BUILDERS, load_builder, main
from data_builders.builder import Builder, Step, show_plan
from records import UserError


def test_plan_lists_steps_and_total_time():
    steps = [
        Step("names", "https://wiki.example", 12_000, seconds=12_000),
        Step("a file", "a.jsonl", seconds=30),
        Step("views", "https://views.example"),
    ]
    lines = show_plan("ambigbio", steps).splitlines()
    assert lines[1].split("  ")[0] == "names"
    assert lines[1].endswith("12,000 requests  3.3 h")
    assert lines[2].endswith("30 s")
    assert lines[3].endswith("depends")
    assert lines[-1] == ("ambigbio: 3.3 h, plus 1 step(s) of unknown duration; nothing was sent.")


def test_dry_run_sends_and_writes_nothing(tmp_path, capsys):
    endpoint = "http://127.0.0.1:1/sparql"
    options = ["--output", f"{tmp_path}/x", "--endpoint", endpoint, "--dry_run"]
    assert main(["bios", *options]) == 0
    plan = capsys.readouterr().out
    assert endpoint in plan
    assert "nothing was sent" in plan
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("lss", "--annotations=[a.json, b.json]"),
        ("longform", "--sources=[{name: x, format: texts, files: [a.json], bins: b.json}]"),
    ],
)
def test_dry_run_with_missing_inputs_names_all(name, option, tmp_path):
    with pytest.raises(UserError) as caught:
        main([name, option, "--output", f"{tmp_path}/x", "--dry_run"])
    lines = str(caught.value).splitlines()
    assert lines == [f"{file}: no such file or folder" for file in ("a.json", "b.json")]


@pytest.mark.parametrize("name", BUILDERS)
def test_builder_declares_only_existing_options(name):
    builder = load_builder(name)
    assert issubclass(builder, Builder)
    assert "build" not in vars(builder), "the base class builds"
    assert {"output", "limit"} <= set(inspect.signature(builder).parameters)
    options = {field.name for field in dataclasses.fields(builder)}
    names = {*builder.reads, *builder.asks, *builder.speed, *builder.least}
    assert {*names, *builder.probabilities} <= options
