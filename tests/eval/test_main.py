"""The commands: a help imports no library that takes long."""

import subprocess
import sys

import pytest

SLOW = ("torch", "transformers", "nltk", "scipy.sparse", "scipy.optimize", "matplotlib", "pandas")
HELP = """
import sys
from {package}.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit as left:
    assert not left.code
loaded = [name for name in {slow} if name in sys.modules]
assert not loaded, loaded
"""


@pytest.mark.parametrize(
    "command",
    [
        "eval --help",
        "eval score --help",
        "eval core --help",
        "eval component --help",
        "eval report --help",
        "eval doctor --help",
        "eval experiment --help",
        "eval experiment robustness --help",
        "eval experiment optimise --help",
        "eval experiment lss_generation --help",
        "eval score --pipeline.decompose.help eval.decompose.prompted.Prompted",
        "data_builders --help",
        "data_builders corruption --help",
        "data_builders preferences --help",
    ],
)
def test_help_imports_no_library_that_takes_long(command):
    package, *arguments = command.split()
    code = HELP.format(slow=SLOW, package=package)
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()
