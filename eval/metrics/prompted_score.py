"""A language model that rates a whole text with one number."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from eval.metrics.text_metric import TextMetric
from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from records import Document, UserError

PROMPT = Path(__file__).parent / "prompts" / "text_score.jinja"
_NUMBER = r"-?\d+(?:\.\d+)?"
_LABELLED = re.compile(rf"\b(?:score|rating)\b[^\w\n-]*({_NUMBER})(?:\s*/\s*({_NUMBER}))?", re.I)
_ALONE = re.compile(rf"\W*?({_NUMBER})(?:\s*/\s*({_NUMBER}))?\W*")


class PromptedScore(TextMetric):
    """Ask a language model for a number on a scale, as G-Eval does (2303.16634).

    An answer without a number on the scale, after all retries, is a failure.

    Args:
        writer: the language model, with ``when_cut: fail``.
        prompt: jinja2 file with the fields ``topic``, ``text``, ``passages``, ``low`` and ``high``;
            null for the shipped one.
        scale: lowest and highest number of an answer.
        temperature: sampling temperature.
        max_new_tokens: maximum length of an answer, in tokens.
        retries: retries for an answer that cannot be parsed.
        seed: sampling seed.
    """

    def __init__(
        self,
        writer: Writer,
        prompt: Path | None = None,
        scale: tuple[float, float] = (0, 100),
        temperature: float = 0.1,
        max_new_tokens: int = 512,
        retries: int = 2,
        seed: int = 0,
    ):
        if not scale[0] < scale[1]:
            raise UserError(f"scale: expected [LOWEST, HIGHEST], got {list(scale)}")
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.prompt = Prompt(prompt or PROMPT)
        self.scale = scale
        self.range = (float(scale[0]), float(scale[1]))

    def score(self, documents: Sequence[Document]) -> list[float | None]:
        low, high = self.range
        prompts = [
            self.prompt.messages(
                topic=d.topic, text=d.text, passages=d.passages, low=f"{low:g}", high=f"{high:g}"
            )
            for d in documents
        ]
        readings = self.asker.ask(prompts, partial(read_score, scale=self.range))
        return [reading.value for reading in readings]


def read_score(text: str, scale: tuple[float, float]) -> float | None:
    """Parse the last number after "score" or "rating", or an answer that is only a number.

    Returns:
        ``None`` for no number, one outside the scale, or "4/5" on a scale that does not end at 5.
    """
    match = [*_LABELLED.finditer(text)][-1:] or [_ALONE.fullmatch(text)]
    if match[0] is None:
        return None
    number, of = match[0].groups()
    low, high = scale
    is_on_scale = low <= float(number) <= high and (of is None or float(of) == high)
    return float(number) if is_on_scale else None
