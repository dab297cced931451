"""``python -m eval core``: which claims of each document Core selects, and why.

Every input claim is kept, with its weight, its document entailment and whether it was selected.
"""

from pathlib import Path

from jsonargparse import ArgumentParser

from cli.parser import command_parser, parse
from components.checkpoint import component_of, is_published
from eval.decompose.given import Given
from eval.select.core import Core
from records import Document, UserError, read_records, write_jsonl


def build_parser() -> ArgumentParser:
    """The command's options; Core's come from its own signature."""
    parser = command_parser(
        "python -m eval core",
        "Say which claims of each document Core selects, and why: each claim with its weight, its "
        "document entailment and whether it was selected.",
    )
    parser.add_argument("--claims", type=str, required=True, help="documents with `claims`")
    parser.add_argument(
        "--checkpoints",
        type=str,
        nargs="+",
        required=True,
        help="a relation and a UNLI checkpoint, in any order, or folders that hold them; for the "
        "relation also a published NLI model",
    )
    parser.add_argument("--output", type=str, required=True, help="the JSONL file to write")
    parser.add_argument("--cache", type=str, default=None, help="file of the models' answer cache")
    parser.add_class_arguments(Core, None, skip={"entailment", "unli"})
    return parser


def find_checkpoints(given: list[str]) -> dict[str, str | Path]:
    """The relation and the UNLI checkpoint among those given, or one level below them."""
    found: dict[str, str | Path] = {}
    for one in given:
        folder = Path(one)
        single = is_published(one) or (folder / "component.json").is_file()
        if not single and not folder.is_dir():
            raise UserError(f"{folder}: no such folder; give checkpoint folders")
        below = [p.parent for p in sorted(folder.glob("*/component.json"))]
        for path in [one] if single else below:
            name = component_of(path)
            if name in {"relation", "unli"}:
                if name in found:
                    raise UserError(f"{found[name]} and {path} are both {name}; give one of them")
                found[name] = path
    return found


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = build_parser()
    arguments = parse(parser, argv)
    if Path(arguments.output).is_dir():
        raise UserError(f"output: {arguments.output} is a folder; give a file's name")
    documents = read_records(arguments.claims, Document)
    found = find_checkpoints(arguments.checkpoints)
    if "relation" not in found:
        raise UserError("--checkpoints: no relation checkpoint among them; Core needs one")
    if "unli" not in found and arguments.weighting != "uniform":
        raise UserError(
            f"--checkpoints: no unli checkpoint among them; weighting {arguments.weighting} needs "
            "one (or give --weighting uniform)"
        )
    options = dict(vars(parser.instantiate(arguments)))
    for key in ("config", "claims", "checkpoints", "output", "cache"):
        options.pop(key, None)
    from eval.models.encoder import Entailment, Unli  # PyTorch, which --help does without

    core = Core(
        entailment=Entailment(str(found["relation"]), cache=arguments.cache),
        unli=Unli(str(found["unli"]), cache=arguments.cache) if "unli" in found else None,
        **options,
    )
    claims = Given(irrelevant=True)(documents)
    selections = core(documents, claims)
    rows = []
    for document, own, chosen in zip(documents, claims, selections, strict=True):
        row = document.model_dump(mode="json", exclude_none=True)
        row["claims"] = [
            claim.model_dump(mode="json", exclude_none=True)
            | selection.model_dump(mode="json", exclude={"claim"}, exclude_none=True)
            for claim, selection in zip(own, chosen, strict=True)
        ]
        rows.append(row)
    write_jsonl(arguments.output, rows)
    total = sum(map(len, claims))
    kept = sum(selection.selected for own in selections for selection in own)
    print(f"{arguments.output}: {kept} of {total} claims selected in {len(documents)} documents")
    return 0
