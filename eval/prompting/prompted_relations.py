"""Relations of text pairs by a prompted language model (FactReasoner, 2502.18573, section 3.1).

The model answers with the label of one relation. As in the released code (IBM/FactReasoner,
``nli_extractor.py``), the probability is the exponential of the mean log-probability of the label's
tokens, without brackets and spaces around the label.
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
from eval.models.chat import NO_TOKENS, Answer, CachedWriter, Token
from eval.prompting.answer_forms import cut_next_question, read_label
from eval.prompting.prompts import Prompt
from records import UserError

_PROMPT = Path(__file__).with_suffix(".jinja")
_LABELS = {label: label for label in RELATIONS}
# The start of the answer in the prompt, which some models repeat.
_LEAD = re.compile(
    r"^(?:[^\S\n]|\*)*(?:output|relation(?:ship)?)[\s*]*:", re.IGNORECASE | re.MULTILINE
)


class PromptedRelations:
    """Relations of hypotheses to premises (an ``EntailmentModel`` of ``eval/stages.py``).

    If the label has probability p, the other two relations get (1 - p) / 2 each. A row of NaN is a
    failed pair: the model refused, the answer has no label, or p is below 1/3, so that the other
    relations would be more likely. Callers count such pairs as failed; Core reports an error. The
    released code takes them as neutral with probability 1.

    Args:
        writer: a language model with token probabilities. Set ``when_cut: fail`` with
            ``reasoning``, else ``trim``, since text after the label does not matter.
        reasoning: let the model reason before its answer (V2 of the released prompts); otherwise it
            answers with the label alone (V1).
        max_new_tokens: maximum number of tokens of an answer; null for 512 with reasoning, else 16.
        context: include a context, as in the paper's prompt (Table 30). The paper does not define
            it; its examples show the premise, and the released code's calls have none. Here it is
            the premise.
        prompt: a custom prompt file with the shipped one's fields.

    Attributes:
        counts: ``answers`` to distinct pairs of a call, and failed ones by reason, over all calls.
    """

    def __init__(
        self,
        writer: CachedWriter,
        reasoning: bool = False,
        max_new_tokens: int | None = None,
        context: bool = False,
        prompt: Path | None = None,
    ):
        if max_new_tokens is not None and max_new_tokens < 1:
            raise UserError("max_new_tokens: expected at least 1, or null for the default")
        if context and reasoning:
            raise UserError(
                "context: no published prompt has both a context and reasoning; set one of them"
            )
        self.writer = writer
        self.context = context
        self.reasoning = reasoning
        self.max_new_tokens = max_new_tokens or (512 if reasoning else 16)
        self.prompt = Prompt(prompt or _PROMPT)
        self.counts: Counter[str] = Counter()

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return probabilities of (premise, hypothesis) pairs; queries each distinct pair once.

        Returns:
            Shape (n, 3): entailment, neutral, contradiction; NaN for failed pairs.
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
                f"writer: {NO_TOKENS}, which relations need; use a server that returns `logprobs`, "
                "e.g. vLLM, or eval.models.local.LocalModel"
            )
        rows = {p: self._row(answer) for p, (answer,) in zip(distinct, answers, strict=True)}
        return np.array([rows[pair] for pair in pairs], dtype=float).reshape(-1, 3)

    def _row(self, answer: Answer) -> list[float]:
        self.counts["answers"] += 1
        result = answer.failed or label_probability(answer.text, answer.tokens or ())
        if isinstance(result, str):
            self.counts[result] += 1
            return [math.nan] * len(RELATIONS)
        label, p = result
        rest = (1 - p) / (len(RELATIONS) - 1)
        return [p if name == label else rest for name in RELATIONS]


def _label(text: str) -> str | None:
    return read_label(_LEAD.sub("", text), _LABELS)


def label_probability(text: str, tokens: Sequence[Token]) -> tuple[str, float] | str:
    """Return an answer's label and its probability, or the reason why there is none."""
    answer = cut_next_question(text, "(?i:premise):", _label)
    label = _label(answer)
    if label is None:
        return "no relation in the answer"
    written = "".join(token.text for token in tokens)
    # After the answer the model may have written truncated text, or a next pair.
    end = written.rfind(text) + len(answer) if text in written else len(written)
    mentions = [m.start() for m in re.finditer(label, written[:end], re.IGNORECASE)]
    if not mentions:
        return "the answer's tokens do not spell its label"
    start = mentions[-1]
    ends = accumulate(len(token.text) for token in tokens)
    # The label's first and last token may contain text before or after the label.
    logprobs = [
        token.logprob
        for token, last in zip(tokens, ends, strict=True)
        if last > start and last - len(token.text) < start + len(label)
    ]
    p = min(1.0, math.exp(sum(logprobs) / len(logprobs)))
    if p < 1 / len(RELATIONS):
        return "a label that the model finds less likely than the others"
    return label, p
