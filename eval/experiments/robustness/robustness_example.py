"""An example of an attack: a text that scores higher than a much better one."""

from collections.abc import Sequence

from pydantic import BaseModel

from eval.experiments.robustness.robustness_cells import Text
from eval.experiments.robustness.robustness_verdicts import HonestLadders, usable


class ScoredText(BaseModel):
    """A text with its score by the metric and its gold F1."""

    text: str
    score: float
    gold: float


class Example(BaseModel):
    """A text of an attack, and an honest text of its topic that is better by 0.4."""

    topic: str
    kind: str
    honest: ScoredText
    attacked: ScoredText


def example_of(kind: str, texts: Sequence[Text], ladders: HonestLadders) -> Example | None:
    """The pair of an attacked and a better honest text with the largest difference of scores.

    ``None`` if no attacked text scores higher.
    """
    pairs = [
        (better, text)
        for text in usable(texts)
        if text.document.kind == kind
        and (better := ladders.better(text))
        and text.value > better.value
    ]
    if not pairs:
        return None
    pair = max(pairs, key=lambda pair: pair[1].value - pair[0].value)
    honest, worse = (
        ScoredText(text=t.document.text, score=t.value, gold=t.document.gold.f1) for t in pair
    )
    return Example(topic=pair[0].document.topic, kind=kind, honest=honest, attacked=worse)
