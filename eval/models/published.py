"""Published NLI models as relation components: what ``component.json`` says of our own.

A model of the hub, or a folder of one, has only its configuration: the names of its classes and the
places for tokens. What else a component needs is set here, the same for all.
"""

from collections.abc import Sequence
from pathlib import Path

from transformers import AutoConfig, PretrainedConfig

from components.base import match_labels
from components.checkpoint import RELATIONS, TWO_CLASSES, Component, is_hub_id
from eval.models.hub import named, positions
from records import UserError
from records.errors import first_line

# Published NLI models are trained on short pairs; a longer input only costs more.
_LONGEST = 512
# Words of a window for each token of input, as our own checkpoints have them.
_WORDS, _TOKENS = 150, 256


def read_published(
    model: str | Path, labels: Sequence[str] | None = None, revision: str | None = None
) -> Component:
    """What is known of a published NLI model, with a temperature of 1.

    Args:
        model: hub id or folder.
        labels: its classes in order, where its configuration does not name them.
        revision: of a hub model.

    Returns:
        A relation component whose labels are ours, in the model's order: the three relations, or
        entailment and not_entailment.
    """
    base = _base(model, revision)
    config = _configuration(model, base.get("revision"))
    made_for = (config.architectures or ["ForSequenceClassification"])[0]
    if not made_for.endswith("ForSequenceClassification"):
        raise UserError(f"{model}: a {made_for} is no sequence classifier; give an NLI model")
    longest = min(_LONGEST, positions(config))
    return Component(
        component="relation",
        architecture="sequence_classifier",
        labels=_relations(model, config, labels),
        chunk_words=max(1, longest * _WORDS // _TOKENS),
        max_length=longest,
        base=base,
    )


def _base(model: str | Path, revision: str | None) -> dict[str, str | None]:
    if is_hub_id(str(model)):
        return named(str(model), revision)
    if revision is not None:
        raise UserError(f"{model}: a folder has no revision {revision}; leave it, or give a hub id")
    if not any(Path(model).glob("*.safetensors")):
        raise UserError(
            f"{model}: no weights (*.safetensors), and pickles are not read; convert them, or give "
            "a revision of the hub that has them"
        )
    return {}


def _configuration(model: str | Path, commit: str | None) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(model, revision=commit, trust_remote_code=False)
    except (OSError, ValueError) as error:
        reason = first_line(error)
        raise UserError(f"{model}: its config.json cannot be used ({reason})") from None


def _relations(
    model: str | Path, config: PretrainedConfig, labels: Sequence[str] | None
) -> list[str]:
    theirs = [config.id2label[place] for place in sorted(config.id2label)]
    if labels is not None and len(labels) != len(theirs):
        raise UserError(f"{model}: has {len(theirs)} classes, but labels names {len(labels)}")
    for ours in (RELATIONS, TWO_CLASSES):
        places = match_labels(list(labels or theirs), ours)
        if places is not None:
            return [ours[places.index(place)] for place in range(len(ours))]
    raise UserError(
        f"{model}: its classes {', '.join(labels or theirs)} are not known as relations; give "
        f"labels, in its order: {', '.join(RELATIONS)}, or {', '.join(TWO_CLASSES)}"
    )
