"""The door's commands: what they need is imported when they need it."""

import subprocess
import sys
from argparse import ArgumentError

import pytest

from eval.__main__ import COMMANDS, main
from records import UserError

SLOW = ("torch", "transformers", "nltk", "scipy.stats")
HELP = """
import sys
from eval.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit as left:
    assert not left.code
loaded = [name for name in {slow} if name in sys.modules]
assert not loaded, loaded
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["experiment", "--help"],
        ["experiment", "robustness", "--help"],
        ["experiment", "lss_generation", "--help"],
        *([command, "--help"] for command in ("score", "core", "component", "doctor")),
        ["score", "--pipeline.verify.help", "eval.verify.nli.NLI"],
        ["score", "--pipeline.decompose.help", "eval.decompose.prompted.Prompted"],
    ],
    ids=" ".join,
)
def test_help_imports_no_library_that_it_does_not_show(arguments):
    code = HELP.format(slow=SLOW)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"experiment"}))
def test_an_unknown_option_is_the_doors_to_tell(command):
    with pytest.raises(ArgumentError, match=r"nonsense|required"):
        main([command, "--nonsense", "x"])


def test_an_unknown_command_is_told_the_known_ones():
    with pytest.raises(UserError, match="no command 'scores'; give one of: score, core"):
        main(["scores"])
    assert set(COMMANDS) == {"score", "core", "component", "experiment", "report", "doctor", "runs"}
