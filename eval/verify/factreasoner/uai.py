"""FactReasoner's graphs as UAI files, for other solvers.

The format, read by Merlin, toulbar2 and pyGMs, has words separated by white space: ``MARKOV``, the
number of variables, the number of values of each, the number of factors, the scopes (length and
variables), and the tables (length and entries, the last variable changing fastest).
"""

from pathlib import Path
from urllib.parse import quote

from eval.verify.factreasoner.graph import Graph
from eval.verify.factreasoner.network import Network
from records import json_line, sha256_text, write_text

# Characters of a document id in a file name, which is limited to 255.
_LONGEST_NAME = 150


def uai_text(network: Network) -> str:
    """Return a network as a ``MARKOV`` file, with exact floats."""
    lines = ["MARKOV", str(network.variables), " ".join(["2"] * network.variables)]
    lines += [str(len(network.factors))]
    lines += [" ".join(map(str, (len(f.variables), *f.variables))) for f in network.factors]
    for factor in network.factors:
        entries = factor.table.reshape(-1).tolist()
        lines += ["", str(len(entries)), " ".join(map(repr, entries))]
    return "\n".join(lines) + "\n"


def write_graph(folder: Path, document: str, graph: Graph) -> Path:
    """Write a document's graph and a JSON file with the names of its variables.

    Files are called ``DOCUMENT.frVERSION.DIGEST.uai``; different graphs of a document have
    different digests. Returns the path of the UAI file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    version = graph.plan.version
    variables = {"document": document, "version": version, "variables": graph.names()}
    text = uai_text(graph.network())
    digest = sha256_text(text + json_line(variables))[:12]
    path = folder / f"{quote(document, safe='')[:_LONGEST_NAME]}.fr{version}.{digest}.uai"
    write_text(path, text)
    write_text(path.with_suffix(".json"), json_line(variables) + "\n")
    return path
