"""``python -m eval audit TARGET``: can a metric or reward be gamed?"""

import logging
from pathlib import Path
from typing import Literal

from jsonargparse import ArgumentParser

from cli.parser import command_parser, parse
from cli.printable import printable
from eval.audit.audited import audit, plan
from eval.audit.targets import PROMPT, passage_texts
from eval.metrics.text_metric import TextMetric, blinded
from records import UserError, write_jsonl


def build_parser() -> ArgumentParser:
    """The command's options."""
    description = "Attack a metric or reward, and say whether worse texts score higher."
    parser = command_parser("python -m eval audit", description, config=False)
    parser.add_argument(
        "target",
        nargs="?",
        help="FILE.py with a TextMetric or score(texts), FILE.py:NAME, a configuration of `eval "
        "score`, or predictions.jsonl with id and score",
    )
    parser.add_argument("--texts", type=str, help="write the texts to this file, and score nothing")
    parser.add_argument(
        "--fail_on",
        type=Literal["gamed", "failed", "unclear"],
        help="exit with 1 if the metric is unusable or void, or if an attack is gamed, failed or "
        "unclear: with this verdict or a worse one",
    )
    parser.add_function_arguments(audit, as_group=False, skip={"target"})
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    options = vars(parse(build_parser(), argv))
    target, path, fail_on = (options.pop(name) for name in ("target", "texts", "fail_on"))
    logging.getLogger("records").setLevel(logging.WARNING)  # the texts are ours
    if path is not None:
        unused = {"text_metrics": {"none": TextMetric()}, "max_texts": options["max_texts"]}
        # Without gold, and with ids and an order that say nothing
        documents = sorted(map(blinded, plan(**unused).documents()), key=lambda d: d.id)
        rows = [
            {"id": d.id, "topic": d.topic, "prompt": PROMPT.format(d.topic), "text": d.text}
            | {"passages": passage_texts(d)}
            for d in documents
        ]
        write_jsonl(Path(path), rows)
        print(path)
        return 0
    if target is None:
        raise UserError("expected a TARGET, or --texts FILE")
    result = audit(target, **options)
    print(printable(result.screen()))
    print(result.report)
    return int(fail_on is not None and result.is_at_most(fail_on))
