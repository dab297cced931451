"""``docs/reliability.md`` names tests that are there, and all of this folder."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")


def defined_in(path: Path) -> set[str]:
    """The tests that a file defines, as the table names them."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    found = {n.name for n in nodes if isinstance(n, ast.FunctionDef) and n.name[:5] == "test_"}
    return {f"{path.relative_to(ROOT).as_posix()}::{name}" for name in found}


def test_the_table_names_tests_that_are_there_and_all_of_this_folder():
    named = set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", TABLE))
    files = {ROOT / name.partition("::")[0] for name in named}
    assert named <= set().union(*map(defined_in, files))
    here = {p for p in Path(__file__).parent.glob("test_*.py") if p != Path(__file__)}
    assert set().union(*map(defined_in, here)) <= named
