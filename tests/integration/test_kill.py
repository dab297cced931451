"""A builder that is killed behind a faulty server writes the bytes of an undisturbed build."""

from __future__ import annotations

import pytest

from data_builders.kb.server import local_endpoint
from tests.integration.faults import SPARQL, FaultProxy, random_mix
from tests.integration.kill import CLOCK, builder_command, run, run_with_kills, same_bytes

pytestmark = pytest.mark.integration

WOMEN = "?person wdt:P31 wd:Q5 ; wdt:P21 wd:Q6581072 ."


def test_kb_pairs_comes_through_faults_and_kills_with_the_same_bytes(tmp_path):
    def command(name):
        return builder_command(
            *("kb_pairs", "--endpoint", proxy.url, "--output", tmp_path / name),
            *("--cache_dir", tmp_path / f"{name}_answers", "--population", WOMEN),
            "--unli",
            "[6,2,2]",
            "--relation",
            "[20,5,5]",
            "--lss",
            "[10,2,2]",
            "--articles",
            "[10,2,2]",
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
