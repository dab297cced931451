"""``python -m eval component``: evaluate one trained component on a file of its record type.

The last line of standard output is one JSON object::

    {"component": "unli", "n": 3040, "failed": 0,
     "metrics": {"pearson": {"value": 0.51, "ci95": [0.48, 0.53]}, …}}

``n`` rows enter the metrics; ``failed`` rows could not be judged and are excluded. Models run in
float32 in fixed batches, without a cache, with the same measures as training. With ``predictions``,
UNLI and relation models label rows instead, e.g. to train a smaller model on their probabilities.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cli.parser import function_parser, parse
from components.checkpoint import RELATIONS, component_of, is_published, read_component
from components.measures import (
    Measures,
    adversary_measures,
    lss_measures,
    relation_measures,
    unli_measures,
)
from components.words import keep_targets
from records import (
    BadInput,
    Generation,
    LssExample,
    RelationPair,
    UnjudgedRelationPair,
    UnjudgedUnliPair,
    UnliPair,
    UserError,
    group_of,
    read_records,
    sha256_file,
    write_jsonl,
)

# The record type that each component is evaluated on.
RECORDS = {"unli": UnliPair, "relation": RelationPair, "lss": LssExample, "adversary": Generation}
# Records of ``predictions``, whose labels are ignored.
UNJUDGED = {"unli": UnjudgedUnliPair, "relation": UnjudgedRelationPair}

Judged = tuple[int, int, Measures]  # rows, failed rows, measures of the rest


def _read(
    data: str,
    component: str,
    checkpoint: str,
    labels: Mapping[int, str] | None = None,
    format: str | None = None,
) -> list:
    try:
        return read_records(data, RECORDS[component], labels=labels, format=format)
    except BadInput:
        for other, record in RECORDS.items():
            try:
                read_records(data, record)
            except BadInput:
                continue
            raise UserError(
                f"{data}: contains rows for {other}, but {checkpoint} is a {component} component; "
                f"pass {component} rows or a {other} checkpoint"
            ) from None
        raise


def _pairs(
    component: str,
    checkpoint: str,
    data: str,
    batch_size: int,
    against: str | None = None,
    predictions: str | None = None,
    labels: Mapping[int, str] | None = None,
    format: str | None = None,
    classes: list[str] | None = None,
    **published: Any,
) -> Judged:
    from eval.models.encoder import Entailment, Unli

    pairs = (
        read_records(data, UNJUDGED[component])
        if predictions
        else _read(data, component, checkpoint, labels, format)
    )
    inputs = [(pair.premise, pair.hypothesis) for pair in pairs]
    if against is not None:
        _require_held_out(checkpoint, data)
        _require_held_out(against, data)

    def predict(folder: str, **more: Any) -> np.ndarray:
        if component == "unli":
            return Unli(folder, batch_size, dtype="float32").likelihood(inputs)
        return Entailment(folder, batch_size, dtype="float32", **more).relations(inputs)

    if classes is not None:
        published["labels"] = classes
    predicted = predict(checkpoint, **published)
    other = predict(against) if against else predicted
    is_judged = ~np.isnan(np.column_stack([predicted, other])).any(axis=1)
    judged = [pair for pair, kept in zip(pairs, is_judged, strict=True) if kept]
    _check_judged(judged, len(pairs), "hypothesis", "the model's input")
    predicted, other = predicted[is_judged], other[is_judged] if against else None
    failed = len(pairs) - len(judged)
    if predictions:
        rows = zip(judged, predicted, strict=True)
        write_jsonl(predictions, (relabel(pair, output) for pair, output in rows))
        return len(pairs), failed, {}
    gold = [pair.label for pair in judged]
    if component == "unli":
        groups = [pair.premise for pair in judged]
        measures = unli_measures(predicted, np.asarray(gold), groups, against=other)
    else:
        groups = [group_of(pair) for pair in judged]
        measures = relation_measures(predicted, gold, groups, against=other)
    return len(pairs), failed, measures


def relabel(pair: UnliPair | RelationPair, predicted: np.ndarray) -> dict[str, Any]:
    """Return a row with predicted probabilities as its label; splits use its other fields."""
    row = json.loads(pair.model_dump_json(exclude={"label", "soft"}, exclude_none=True))
    values = np.atleast_1d(predicted).tolist()
    label = values[0] if len(values) == 1 else dict(zip(RELATIONS, values, strict=True))
    return row | {"label": label}


def _require_held_out(model: str, data: str) -> None:
    """Raise an error if a model was trained on the file."""
    files = [] if is_published(model) else read_component(model).data
    if ("train", sha256_file(data)) in {(file.split, file.sha256) for file in files}:
        raise UserError(
            f"{data}: {model} was trained on this file; compare on rows of neither training, such "
            "as held_out.jsonl of its run"
        )


def _lss(checkpoint: str, data: str, batch_size: int) -> Judged:
    from eval.models.encoder import LssTagger
    from eval.models.seq2seq import LssSeq2Seq

    component = read_component(checkpoint, "lss")
    engine_class = LssSeq2Seq if component.architecture == "seq2seq" else LssTagger
    engine = engine_class(checkpoint, batch_size, dtype="float32")
    examples = _read(data, "lss", checkpoint)
    outputs = engine.subsequences([(example.claim, example.reference) for example in examples])
    rows = [(e, lss.text) for e, lss in zip(examples, outputs, strict=True) if lss is not None]
    limit = f"max_length of {engine.component.max_length:,} tokens"
    _check_judged(rows, len(examples), "claim", limit)
    judged, texts = [example for example, _ in rows], [text for _, text in rows]
    star = component.component == "lss_star"
    if star and all(a.lss_star is None for example in judged for a in example.annotations):
        raise UserError(
            f"{data}: no annotation has an lss_star, but {checkpoint} is an lss_star component; "
            "pass a file with lss_star annotations or an lss checkpoint"
        )
    if not star:
        lost = sum(keep_targets(example)[2] for example in judged)
        print(f"{lost} annotations without word F1: not subsequences of a claim", file=sys.stderr)
    return len(examples), len(examples) - len(rows), lss_measures(judged, texts, star)


def _adversary(
    checkpoint: str,
    data: str,
    batch_size: int,
    prompt: str | None = None,
    released_loss: bool = False,
) -> Judged:
    from eval.models.causal import CausalLM

    engine = CausalLM(checkpoint, prompt, batch_size, dtype="float32")
    texts = _read(data, "adversary", checkpoint)
    pairs = [(engine.prompt_for(text.topic), text.text) for text in texts]
    outputs = engine.log_likelihoods(pairs, released_loss)
    judged = zip(texts, pairs, outputs, strict=True)
    rows = [(text, pair, row) for text, pair, row in judged if not row.truncated]
    limit = f"the model's maximum of {engine.positions:,} tokens"
    _check_judged(rows, len(texts), "prompt and text", limit)
    measures = adversary_measures(
        negative_log_likelihood=np.asarray([row.nll for *_, row in rows]),
        tokens=np.asarray([row.tokens for *_, row in rows]),
        size=np.asarray([len("".join(p if released_loss else p[1:]).encode()) for _, p, _ in rows]),
        groups=[text.topic for text, *_ in rows],
    )
    return len(texts), len(texts) - len(rows), measures


def _check_judged(rows: Sequence, total: int, content: str, limit: str) -> None:
    if not rows:
        raise UserError(
            f"none of {total} rows could be judged: each {content} is too long for {limit}"
        )


_KINDS: dict[str, Callable[..., Judged]] = {
    "unli": partial(_pairs, "unli"),
    "relation": partial(_pairs, "relation"),
    "lss": _lss,
    "lss_star": _lss,
    "adversary": _adversary,
}


def _check_comparison(checkpoint: str, component: str, against: str) -> None:
    if component not in {"unli", "relation"}:
        raise UserError(f"--against compares UNLI and relation models, not {component} ones")
    if (other := component_of(against)) != component:
        raise UserError(f"--against {against}: a {other}, but {checkpoint} is a {component}")


def judge(
    checkpoint: str,
    data: str,
    against: str | None = None,
    prompt: str | None = None,
    batch_size: int = 64,
    labels: dict[int, str] | None = None,
    format: str | None = None,
    classes: list[str] | None = None,
    revision: str | None = None,
    predictions: str | None = None,
    released_loss: bool = False,
) -> dict[str, Any]:
    """Evaluate a trained component on held-out data.

    Standard output ends with the result as one JSON line. Metrics except ECE have 95 % bootstrap
    intervals over premises, references or topics.

    Args:
        checkpoint: folder of the trained component, or a published NLI model (hub id or folder).
        data: JSONL, CSV or Parquet file of the component's records. Relation models also accept
            WiCE rows, LSS models also WiCE token rows.
        against: another UNLI or relation checkpoint, or a published NLI model, evaluated on the
            same rows; adds a paired difference per metric (``pearson_difference``: checkpoint
            minus against).
        prompt: for adversaries, a prompt template with "{topic}" that replaces the checkpoint's.
        batch_size: rows per batch; affects speed only.
        labels: the meaning of label numbers in ``data``, if the file does not state it, e.g.
            ``{0: contradiction, 1: entailment, 2: neutral}``.
        format: name of a shipped format, or a YAML file that declares the columns of ``data``
            (docs/records.md).
        classes: classes of a published NLI model in its order, if its config does not name them.
        revision: branch, tag or commit of a hub model.
        predictions: for UNLI and relation models, a JSONL file for the rows with predicted
            probabilities as labels; labels of ``data`` are ignored and no metrics are computed.
        released_loss: for adversaries, perplexity of prompt and text, without the end token.
    """
    component = component_of(checkpoint)
    if (prompt is not None or released_loss) and component != "adversary":
        name = "--prompt" if prompt is not None else "--released_loss"
        raise UserError(f"{name} is for adversaries; {checkpoint} is a {component}")
    if component != "relation" and (labels or format or classes or revision):
        names = "--labels, --format, --classes, --revision"
        raise UserError(f"{names}: for NLI models; {checkpoint} is a {component}")
    if against is not None:
        _check_comparison(checkpoint, component, against)
    if component not in _KINDS:
        kinds = ", ".join(_KINDS)
        raise UserError(f"{checkpoint}: expected one of {kinds}, got a {component}")
    if batch_size < 1:
        raise UserError(f"--batch_size: expected at least 1, got {batch_size}")
    if predictions is not None and component not in UNJUDGED:
        raise UserError(f"--predictions is for UNLI and relation models, not {component} ones")
    options = {"prompt": prompt, "against": against, "labels": labels, "revision": revision}
    options |= {"predictions": predictions, "classes": classes, "format": format}
    options |= {"released_loss": released_loss or None}
    more = {name: value for name, value in options.items() if value is not None}
    rows, failed, metrics = _KINDS[component](checkpoint, data, batch_size, **more)
    return {"component": component, "n": rows - failed, "failed": failed, "metrics": metrics}


def main(argv: Sequence[str]) -> int:
    """Run the command; standard output ends with the JSON line."""
    options = parse(function_parser("python -m eval component", judge), argv)
    print(json.dumps(judge(**options), allow_nan=False))
    return 0
