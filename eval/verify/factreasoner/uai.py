"""Networks as UAI files, and marginals as their result files, for other solvers.

The format of the UAI inference competitions, which Merlin, toulbar2, libDAI's converters and pyGMs
read: words separated by white space. A network is ``MARKOV`` (or ``BAYES``), the number of
variables, the number of values of each, the number of factors, a scope a factor (its length, then
its variables), and a table a factor (its length, then its entries, the last variable changing
fastest). A result is ``MAR``, the number of variables, and for each the number of its values and
their probabilities.
"""

from __future__ import annotations

import math
from pathlib import Path
from urllib.parse import quote

import numpy as np

from eval.verify.factreasoner.graph import Graph
from eval.verify.factreasoner.network import Factor, Network, logs
from records import UserError, json_line, sha256_text, write_text

# Characters of a document's name in a file's, whose whole name may have 255 and ends in a digest.
_LONGEST_NAME = 150


class _Words:
    """A file's words, read in order; complaints name the file, the line and the word."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        try:
            text = self.path.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}; give a UAI file") from None
        except UnicodeDecodeError:
            raise UserError(f"{path}: this is no text; give a UAI file") from None
        lines = enumerate(text.splitlines(), start=1)
        self.words = [(word, line) for line, own in lines for word in own.split()]
        self.at = 0

    def error(self, message: str) -> UserError:
        word, line = self.words[self.at - 1] if self.words else ("", 1)
        return UserError(f"{self.path}:{line}: {word[:60]!r}: {message}")

    def word(self, what: str) -> str:
        if self.at == len(self.words):
            line = self.words[-1][1] if self.words else 1
            raise UserError(
                f"{self.path}:{line}: the file ends where {what} should be; complete it"
            )
        self.at += 1
        return self.words[self.at - 1][0]

    def whole(self, what: str, least: int = 0, most: float = math.inf) -> int:
        word = self.word(what)
        short = word.isascii() and word.isdigit() and len(word) < 20  # Python reads no 5,000 digits
        if not (short and least <= int(word) <= most):
            limit = f"from {least} to {most}" if most < math.inf else f"of at least {least}"
            raise self.error(f"{what} should be a whole number {limit}")
        return int(word)

    def number(self, what: str) -> float:
        word = self.word(what)
        try:
            number = float(word)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            raise self.error(f"{what} should be a number that is finite and not negative")
        return number

    def preamble(self, *known: str) -> None:
        if self.word("the preamble").upper() not in known:
            raise self.error(f"the file should begin with {' or '.join(known)}")

    def end(self) -> None:
        if self.at < len(self.words):
            self.at += 1
            raise self.error("the file should end before this; take the rest away")


def read_uai(path: str | Path) -> Network:
    """The network of a UAI file; ``BAYES`` is read as the product of its tables."""
    words = _Words(path)
    words.preamble("MARKOV", "BAYES")
    variables = words.whole("the number of variables")
    for v in range(variables):
        words.whole(f"the number of values of variable {v} (binary ones only)", 2, 2)
    scopes = []
    for number in range(words.whole("the number of factors")):
        size = words.whole(f"the size of factor {number}'s scope", 0, variables)
        scope: tuple[int, ...] = ()
        for _ in range(size):
            scope += (words.whole(f"a variable of factor {number}", 0, variables - 1),)
            if scope[-1] in scope[:-1]:
                raise words.error(f"factor {number} names this variable twice; name it once")
        scopes.append(scope)
    factors = []
    for number, scope in enumerate(scopes):
        count = 2 ** len(scope)
        words.whole(f"the number of entries of factor {number}", count, count)
        entries = [words.number(f"an entry of factor {number}") for _ in range(count)]
        factors.append(Factor(scope, np.array(entries).reshape((2,) * len(scope))))
    words.end()
    return Network(variables, factors)


def write_uai(path: str | Path, network: Network) -> None:
    """Write a network as a ``MARKOV`` file; reading it gives the same numbers to the last bit."""
    write_text(path, uai_text(network, str(path)))


def uai_text(network: Network, name: str) -> str:
    """A network as the text of a ``MARKOV`` file; ``name`` is what complaints call it."""
    logs(network, name)  # refuses what is no network
    lines = ["MARKOV", str(network.variables), " ".join(["2"] * network.variables)]
    lines += [str(len(network.factors))]
    lines += [" ".join(map(str, (len(f.variables), *f.variables))) for f in network.factors]
    for factor in network.factors:
        entries = np.asarray(factor.table, dtype=float).reshape(-1).tolist()
        lines += ["", str(len(entries)), " ".join(map(repr, entries))]
    return "\n".join(lines) + "\n"


def write_graph(folder: Path, document: str, graph: Graph) -> Path:
    """Write a document's graph, and beside it a JSON file that names its variables.

    Files are called ``DOCUMENT.frVERSION.DIGEST.uai``: graphs of the same document that differ, as
    with other relation models, for a selection, or of single claims in FR1, have files of their
    own, and one that is written again has the same name and bytes.

    Returns:
        The UAI file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    variables = {"document": document, "version": graph.version, "variables": graph.names()}
    said = uai_text(graph.network(), document)
    digest = sha256_text(said + json_line(variables))[:12]
    path = folder / f"{quote(document, safe='')[:_LONGEST_NAME]}.fr{graph.version}.{digest}.uai"
    write_text(path, said)
    write_text(path.with_suffix(".json"), json_line(variables) + "\n")
    return path


def read_mar(path: str | Path) -> np.ndarray:
    """P(variable is true), shape (variables,), of a solver's result file."""
    words = _Words(path)
    words.preamble("MAR")
    p = []
    for v in range(words.whole("the number of variables")):
        words.whole(f"the number of values of variable {v} (binary ones only)", 2, 2)
        false = words.number(f"P(variable {v} is false)")
        p.append(words.number(f"P(variable {v} is true)"))
        if abs(false + p[-1] - 1) > 1e-3:
            raise words.error(f"the probabilities of variable {v} should add up to 1")
    words.end()
    return np.array(p)


def write_mar(path: str | Path, p: np.ndarray) -> None:
    """Write P(variable is true), shape (variables,), as a result file."""
    values = [f"2 {1 - float(own)!r} {float(own)!r}" for own in p]
    write_text(path, " ".join(["MAR\n" + str(len(p)), *values]) + "\n")
