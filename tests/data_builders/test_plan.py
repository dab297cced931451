"""``--dry_run``: what a build would ask, without asking."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from data_builders.__main__ import BUILDERS, _builder, main
from data_builders.builder import Builder, Step, show_plan


def test_the_table_names_steps_and_sums_their_time():
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


def test_a_dry_run_asks_and_writes_nothing(tmp_path, capsys):
    nobody = "http://127.0.0.1:1/sparql"
    assert main(["kb_pairs", "--output", f"{tmp_path}/x", "--endpoint", nobody, "--dry_run"]) == 0
    said = capsys.readouterr().out
    assert nobody in said
    assert "nothing was sent" in said
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_can_tell_its_plan_and_build(name):
    builder = _builder(name)
    assert issubclass(builder, Builder)
    assert builder.__module__.rpartition(".")[2] == name, "a file is named as its command"
    assert "build" not in vars(builder), "the frame builds"
    assert {"output", "limit"} <= set(inspect.signature(builder).parameters)
    options = {field.name for field in dataclasses.fields(builder)}
    named = {*builder.reads, *builder.asks, *builder.speed, *builder.least}
    assert {*named, *builder.probabilities} <= options
