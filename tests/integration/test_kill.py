"""Kills and comparisons, and with them the one promise: the bytes of an undisturbed build."""

from __future__ import annotations

import sys

import pytest

from data_builders.kb.server import local_endpoint
from tests.integration.faults import SPARQL, FaultProxy, random_mix
from tests.integration.kill import CLOCK, builder_command, run, run_with_kills, same_bytes

pytestmark = pytest.mark.integration

WOMEN = "?person wdt:P31 wd:Q5 ; wdt:P21 wd:Q6581072 ."

# Writes a line at its start and one at its end, and does not end when asked kindly.
TWO_LINES = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "a") as file:
    file.write("began\\n"); file.flush(); time.sleep(float(sys.argv[2])); file.write("ended\\n")
"""


def test_kills_hit_only_what_runs(tmp_path):
    def lines(path, seconds, moments):
        command = [sys.executable, "-c", TWO_LINES, str(path), str(seconds)]
        hits = run_with_kills(command, moments)
        return hits, path.read_text().split()

    hits, found = lines(tmp_path / "slow", 0.8, [0.4, 0.4])
    assert (hits, found.count("ended"), found[-1]) == (2, 1, "ended")
    hits, found = lines(tmp_path / "fast", 0, [20])
    assert (hits, found) == (0, ["began", "ended"] * 2)


def test_drawn_moments_depend_on_the_seed(tmp_path):
    command = [sys.executable, "-c", "import time; time.sleep(0.2)"]
    assert run_with_kills(command, 3, longest=0.01, seed=1) == 3


def test_a_failing_command_says_why():
    with pytest.raises(RuntimeError, match="our reason"):
        run([sys.executable, "-c", "raise SystemExit('our reason')"])


def test_same_bytes_names_what_differs(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder / "deep").mkdir(parents=True)
        (tmp_path / folder / "deep" / "same.jsonl").write_text("{}\n")
        (tmp_path / folder / "manifest.json").write_text("{}\n")
    one, two = tmp_path / "one", tmp_path / "two"
    assert same_bytes(one, two) == []
    (two / "manifest.json").write_text("{} \n")
    (one / "deep" / ".part").write_text("")
    (two / "deep" / "more").write_text("")
    assert same_bytes(one, two) == ["deep/.part", "deep/more", "manifest.json"]
    with pytest.raises(ValueError, match="no files"):
        same_bytes(tmp_path / "none", tmp_path / "neither")


def test_kb_pairs_comes_through_faults_and_kills_with_the_same_bytes(tmp_path):
    def command(name):
        return builder_command(
            *("kb_pairs", "--endpoint", proxy.url, "--output", tmp_path / name),
            *("--cache_dir", tmp_path / f"{name}_answers", "--population", WOMEN),
            *("--unli", "[6,2,2]", "--relation", "[20,5,5]", "--lss", "[10,2,2]"),
            *("--articles", "[10,2,2]"),
        )

    with local_endpoint() as url, FaultProxy(url) as proxy:
        assert not run(command("calm"))
        calm = len(proxy.seen)
        longest = proxy.seen[-1].left - proxy.seen[0].came + 1
        proxy.forget()
        proxy.faults = random_mix(SPARQL, p=0.25, seed=3)
        kills = run_with_kills(command("rough"), 3, earliest=0.5, longest=longest, seed=3)
        assert same_bytes(tmp_path / "calm", tmp_path / "rough") == []
    assert kills
    assert len({s.fault for s in proxy.seen}) >= 5, "a mix, not one kind"
    assert sum(s.answered for s in proxy.seen) <= calm + kills
    # An answer that came just before a kill is all that is asked for again.
    assert len(proxy.repeated()) <= kills
    assert proxy.most_at_once == 1
    assert proxy.too_soon(clock=CLOCK) == []
