"""How many cases the fuzzing tries: few by default, and the same ones in every run.

``pytest tests/fuzz --hypothesis-profile million`` tries a million in all, 12,000 of each test,
other ones every time; what fails is shown with a line that brings it back.
"""

import pytest
from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
COMMON = {"deadline": None, "database": None, "suppress_health_check": SLOW}

settings.register_profile("few", max_examples=30, derandomize=True, **COMMON)
settings.register_profile("million", max_examples=12_000, print_blob=True, **COMMON)
settings.load_profile("few")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """One folder for all cases: each writes its file anew."""
    return tmp_path_factory.mktemp("fuzz")
