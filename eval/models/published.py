"""Published NLI and UNLI models as components.

A published model has no ``component.json``: class names and input length are read from its
configuration, and the other settings are the same for all models.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from transformers import AutoConfig, PretrainedConfig

from components.base import match_labels
from components.checkpoint import RELATIONS, TWO_CLASSES, Component, is_hub_id
from components.identity import model_identity
from eval.models.hub import positions
from records import UserError
from records.errors import first_line

# Published NLI models are trained on short pairs.
_LONGEST = 512
# Window size in words per input token, as in the checkpoints of this repository.
_WORDS, _TOKENS = 150, 256


def read_published(
    model: str | Path,
    labels: Sequence[str] | None = None,
    revision: str | None = None,
    component: Literal["relation", "unli"] = "relation",
) -> Component:
    """Describe a published NLI or UNLI model as a component with temperature 1.

    Args:
        model: hub id or folder.
        labels: its classes in order, if its configuration does not name them.
        revision: of a hub model.
        component: ``unli`` for a model with one output, whose sigmoid is the probability, as
            Zhengping/roberta-large-unli (2407.03572).

    Returns:
        A component with labels in the model's order: the three relations, or entailment and
        not_entailment; or ``probability``.
    """
    base = _base(model, revision)
    config = _configuration(model, base.get("revision"))
    made_for = (config.architectures or ["ForSequenceClassification"])[0]
    if not made_for.endswith("ForSequenceClassification"):
        raise UserError(
            f"{model}: expected a sequence classifier (NLI or UNLI model), got {made_for}"
        )
    longest = min(_LONGEST, positions(config))
    if component == "unli" and len(config.id2label) != 1:
        raise UserError(f"{model}: expected one output (UNLI), got {len(config.id2label)}")
    names = ["probability"] if component == "unli" else _relations(model, config, labels)
    return Component(
        component=component,
        architecture="sequence_classifier",
        labels=names,
        chunk_words=max(1, longest * _WORDS // _TOKENS),
        max_length=longest,
        base=base,
    )


def _base(model: str | Path, revision: str | None) -> dict[str, str | None]:
    if is_hub_id(str(model)):
        return model_identity(str(model), revision)
    if revision is not None:
        raise UserError(f"{model}: revision: only for hub models, got a folder; remove revision")
    if not any(Path(model).glob("*.safetensors")):
        raise UserError(
            f"{model}: no *.safetensors files (pickles are not loaded); convert the weights, or "
            "use a hub revision that has them"
        )
    return {}


def _configuration(model: str | Path, commit: str | None) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(model, revision=commit, trust_remote_code=False)
    except (OSError, ValueError) as error:
        reason = first_line(error)
        raise UserError(f"{model}: config.json cannot be loaded ({reason})") from None


def _relations(
    model: str | Path, config: PretrainedConfig, labels: Sequence[str] | None
) -> list[str]:
    theirs = [config.id2label[place] for place in sorted(config.id2label)]
    if labels is not None and len(labels) != len(theirs):
        raise UserError(f"{model}: labels: expected {len(theirs)} classes, got {len(labels)}")
    for ours in (RELATIONS, TWO_CLASSES):
        places = match_labels(list(labels or theirs), ours)
        if places is not None:
            return [ours[places.index(place)] for place in range(len(ours))]
    raise UserError(
        f"{model}: unknown classes {', '.join(labels or theirs)}; set labels, in model order, "
        f"to {', '.join(RELATIONS)}, or {', '.join(TWO_CLASSES)}"
    )
