"""``python -m eval core``: which claims of each document Core selects, and why.

Writes every input claim with its weight, its document entailment and whether it was selected.
"""

from pathlib import Path

from jsonargparse import ArgumentParser

from cli.parser import command_parser, parse
from components.checkpoint import component_of, is_published
from eval.decompose.given import Given
from eval.select.core import Core
from records import Document, UserError, read_records, write_jsonl


def build_parser() -> ArgumentParser:
    """Build the command's options; Core's options come from its signature."""
    parser = command_parser(
        "python -m eval core",
        "Run Core on the claims of documents: write each claim with its weight, its document "
        "entailment and whether it was selected.",
    )
    parser.add_argument("--claims", type=str, required=True, help="file of documents with `claims`")
    parser.add_argument(
        "--checkpoints",
        type=str,
        nargs="+",
        required=True,
        help="a relation and a UNLI checkpoint in any order, or folders that contain them; the "
        "relation model can be a published NLI model",
    )
    parser.add_argument("--output", type=str, required=True, help="output JSONL file")
    parser.add_argument("--cache", type=str, default=None, help="cache file of the models' outputs")
    parser.add_class_arguments(Core, None, skip={"entailment", "unli"})
    return parser


def find_checkpoints(names: list[str]) -> dict[str, str | Path]:
    """Find the relation and the UNLI checkpoint among checkpoints and folders that contain them."""
    checkpoints: dict[str, str | Path] = {}
    for name in names:
        folder = Path(name)
        single = is_published(name) or (folder / "component.json").is_file()
        if not single and not folder.is_dir():
            raise UserError(f"{folder}: no such folder; pass checkpoint folders")
        below = [p.parent for p in sorted(folder.glob("*/component.json"))]
        for path in [name] if single else below:
            kind = component_of(path)
            if kind in {"relation", "unli"}:
                if kind in checkpoints:
                    raise UserError(f"{checkpoints[kind]} and {path} are both {kind}; pass one")
                checkpoints[kind] = path
    return checkpoints


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = build_parser()
    arguments = parse(parser, argv)
    if Path(arguments.output).is_dir():
        raise UserError(f"output: {arguments.output} is a folder; pass a file name")
    documents = read_records(arguments.claims, Document)
    checkpoints = find_checkpoints(arguments.checkpoints)
    if "relation" not in checkpoints:
        raise UserError("--checkpoints: Core needs a relation checkpoint")
    if "unli" not in checkpoints and arguments.weighting != "uniform":
        raise UserError(
            f"--checkpoints: weighting {arguments.weighting} needs a unli checkpoint; add one or "
            "pass --weighting uniform"
        )
    options = dict(vars(parser.instantiate(arguments)))
    for key in ("config", "claims", "checkpoints", "output", "cache"):
        options.pop(key, None)
    from eval.models.encoder import Entailment, Unli  # slow import

    core = Core(
        entailment=Entailment(str(checkpoints["relation"]), cache=arguments.cache),
        unli=Unli(str(checkpoints["unli"]), cache=arguments.cache)
        if "unli" in checkpoints
        else None,
        **options,
    )
    claims = Given(irrelevant=True)(documents)
    selections = core(documents, claims)
    rows = []
    for document, document_claims, chosen in zip(documents, claims, selections, strict=True):
        row = document.model_dump(mode="json", exclude_none=True)
        row["claims"] = [
            claim.model_dump(mode="json", exclude_none=True)
            | selection.model_dump(mode="json", exclude={"claim"}, exclude_none=True)
            for claim, selection in zip(document_claims, chosen, strict=True)
        ]
        rows.append(row)
    write_jsonl(arguments.output, rows)
    total = sum(map(len, claims))
    kept = sum(selection.selected for row in selections for selection in row)
    print(f"{arguments.output}: {kept} of {total} claims selected in {len(documents)} documents")
    return 0
