"""MiniCheck: a claim is supported if a small fact-checking model finds it in some passage.

Tang et al. 2024 (2404.10774). The small models run with ``eval.models.checker.Checker``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from components.encoding import Pair
from eval.models.chat import Writer
from eval.models.checker import Checker
from eval.prompting.answer_forms import read_yes_or_no
from eval.prompting.asker import Asker, Reading
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, Verdict

_PROMPT = Path(__file__).parent / "prompts" / "minicheck.jinja"


@dataclass(eq=False)
class MiniCheck(ByPassage):
    """Judge each claim by the passage with the highest support probability.

    Args:
        checker: the model.
        threshold: probability above which a claim is supported (released code: 0.5).
        title_in_premise: prepend the passage's title to its text.
    """

    assessor = "minicheck"

    checker: Checker
    threshold: float = 0.5
    title_in_premise: bool = False

    def answers(self, pairs: Sequence[Pair]) -> list[float]:
        return self.checker.relations(pairs)[:, 0].tolist()

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[float]
    ) -> Verdict:
        best = int(np.argmax(np.nan_to_num(answers, nan=-1.0)))
        supported = answers[best] > self.threshold
        if not supported and np.isnan(answers).any():
            return self.failed(claim, self.checker.no_answer)
        label = "supported" if supported else "not_supported"
        return self.verdict(claim, label, p=answers[best], evidence=[passages[best].id])


class PromptedMiniCheck(ByPassage):
    """Ask a language model, for each passage of a claim, whether the two are consistent.

    For ``bespokelabs/Bespoke-MiniCheck-7B`` served by vLLM, or any other language model. A claim is
    supported if the answer for some passage is Yes, and ``failed`` if none is Yes and some answer
    is neither Yes nor No. The released code uses the probability of the first token; here the
    answer's text decides and ``p`` is not set. Passages are not cut.

    Args:
        writer: the language model.
        max_new_tokens: maximum length of an answer, in tokens; its first word counts.
        title_in_premise: prepend the passage's title to its text.
    """

    assessor = "prompted_minicheck"

    def __init__(self, writer: Writer, max_new_tokens: int = 4, title_in_premise: bool = False):
        self.title_in_premise = title_in_premise
        self.asker = Asker(writer, 0.0, max_new_tokens, retries=0, seed=0)
        self.prompt = Prompt(_PROMPT)

    def answers(self, pairs: Sequence[Pair]) -> list[Reading[bool]]:
        prompts = [self.prompt.messages(document=d, claim=claim.strip()) for d, claim in pairs]
        return self.asker.ask(prompts, read_yes_or_no)

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[Reading[bool]]
    ) -> Verdict:
        yes = [
            passage.id for passage, answer in zip(passages, answers, strict=True) if answer.value
        ]
        unread = next((answer for answer in answers if answer.failed), None)
        if unread is not None and not yes:
            return self.failed(claim, unread.failed, response=unread.text)
        return self.verdict(claim, "supported" if yes else "not_supported", evidence=yes)
