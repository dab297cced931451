"""Relations of text pairs by prompting a language model (FactReasoner, 2502.18573, section 3.1).

The model answers with the label of one relation. As in the released code (IBM/FactReasoner,
``nli_extractor.py``) its probability is the exponential of the mean log-probability of the label's
tokens; brackets and blanks around the label do not count.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from components.checkpoint import RELATIONS
from components.encoding import Pair
from eval.models.chat import NO_TOKENS, Answer, Token, TokenWriter
from eval.prompting.labels_in_answers import cut_next_question, read_label
from eval.prompting.prompts import Prompt
from records import UserError

_PROMPT = Path(__file__).with_suffix(".jinja")
_LABELS = {label: label for label in RELATIONS}
# The prompt's own lead, which some models repeat.
_LEAD = re.compile(
    r"^(?:[^\S\n]|\*)*(?:output|relation(?:ship)?)[\s*]*:", re.IGNORECASE | re.MULTILINE
)


class PromptedRelations:
    """Relation of hypotheses to premises (an ``EntailmentModel`` of ``eval/stages.py``).

    A label of probability p leaves 1 - p, which the two other relations share equally: the answer
    tells nothing about either. A pair whose label cannot be had is a row of NaN, which callers must
    count as failed: the model refused, its answer names no label, or the label's probability is
    below 1/3, so that the two others would be likelier. The released code calls such a pair neutral
    with probability 1. Core cannot select with pairs that nobody judged, and says so.

    Args:
        writer: the language model, with token probabilities. With ``reasoning`` take one that
            counts a cut answer as failed (``when_cut: fail``), otherwise one that trims it: what a
            model adds to its label does not matter.
        reasoning: let the model reason before it answers (V2 of the released prompts); otherwise
            it answers with the label alone (V1).
        max_new_tokens: of an answer; null: 512 with reasoning, else 16.
        context: show a context, as the prompt that the paper prints (Table 30). The paper does not
            say which text it is; in its examples it holds the premise, and in the released code's
            calls there is none. Here it is the premise.

    Attributes:
        counts: ``answers`` that the model gave for distinct pairs of a call, and those of them that
            failed, by reason; over all calls.
    """

    def __init__(
        self,
        writer: TokenWriter,
        reasoning: bool = False,
        max_new_tokens: int | None = None,
        context: bool = False,
    ):
        if max_new_tokens is not None and max_new_tokens < 1:
            raise UserError("max_new_tokens: give at least 1, or null for the prompt's own")
        if context and reasoning:
            raise UserError("context: no published prompt reasons with one; take one of the two")
        self.writer = writer
        self.context = context
        self.reasoning = reasoning
        self.max_new_tokens = max_new_tokens or (512 if reasoning else 16)
        self.prompt = Prompt(_PROMPT)
        self.counts: Counter[str] = Counter()

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Probabilities of (premise, hypothesis) pairs; each distinct pair is asked once.

        Returns:
            Shape (n, 3): entailment, neutral, contradiction; NaN where there is no answer.
        """
        distinct = list(dict.fromkeys(pairs))
        prompts = [
            self.prompt.messages(
                premise=premise,
                hypothesis=hypothesis,
                context=premise if self.context else None,
                reasoning=self.reasoning,
            )
            for premise, hypothesis in distinct
        ]
        answers = self.writer.answer(
            prompts, temperature=0.0, max_new_tokens=self.max_new_tokens, logprobs=True
        )
        failures = Counter(answer.failed for (answer,) in answers)
        if pairs and failures[NO_TOKENS] == len(distinct):
            raise UserError(
                f"writer: {NO_TOKENS}, which relations need; take a model or a server that answers "
                "`logprobs`, e.g. vLLM, or eval.models.local.LocalModel"
            )
        rows = {pair: self._row(own[0]) for pair, own in zip(distinct, answers, strict=True)}
        return np.array([rows[pair] for pair in pairs], dtype=float).reshape(-1, 3)

    def _row(self, answer: Answer) -> list[float]:
        self.counts["answers"] += 1
        found = answer.failed or label_probability(answer.text, answer.tokens or ())
        if isinstance(found, str):
            self.counts[found] += 1
            return [math.nan] * len(RELATIONS)
        label, p = found
        rest = (1 - p) / (len(RELATIONS) - 1)
        return [p if name == label else rest for name in RELATIONS]


def _label(text: str) -> str | None:
    return read_label(_LEAD.sub("", text), _LABELS)


def label_probability(text: str, tokens: Sequence[Token]) -> tuple[str, float] | str:
    """The relation that an answer names and its probability; or why it has none.

    Args:
        text: of the answer.
        tokens: all that the model wrote.
    """
    answer = cut_next_question(text, "(?i:premise):", _label)
    label = _label(answer)
    if label is None:
        return "no relation in the answer"
    written = "".join(token.text for token in tokens)
    # Behind the answer stands what was cut off, and a next pair of the model's own.
    end = written.rfind(text) + len(answer) if text in written else len(written)
    mentions = [m.start() for m in re.finditer(label, written[:end], re.IGNORECASE)]
    if not mentions:
        return "the answer's tokens do not spell its label"
    start = mentions[-1]
    ends = accumulate(len(token.text) for token in tokens)
    # A token may hold the blank or the bracket before the label, or what stands behind it.
    own = [
        token.logprob
        for token, last in zip(tokens, ends, strict=True)
        if last > start and last - len(token.text) < start + len(label)
    ]
    p = min(1.0, math.exp(sum(own) / len(own)))
    if p < 1 / len(RELATIONS):
        return "a label that the model finds less likely than the others"
    return label, p
