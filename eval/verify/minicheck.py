"""MiniCheck: a claim is supported when a small fact-checking model finds it in some passage.

Tang et al. 2024 (2404.10774). The published models of up to a billion weights run through
:class:`~eval.models.checker.Checker`; Bespoke-MiniCheck-7B, a language model, through any
:class:`~eval.models.chat.Writer`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from components.encoding import Pair
from eval.models.chat import Writer
from eval.models.checker import Checker
from eval.prompting.asker import Asker, Reading
from eval.prompting.labels_in_answers import yes_or_no
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, Verdict

_PROMPT = Path(__file__).parent / "prompts" / "minicheck.jinja"


@dataclass(eq=False)
class MiniCheck(ByPassage):
    """Judge each claim against each of its passages; the passage that supports it best decides.

    Args:
        checker: the model.
        threshold: probability above which a claim is supported (released code: 0.5).
        title_in_premise: put the passage's title before its text.
    """

    assessor = "minicheck"

    checker: Checker
    threshold: float = 0.5
    title_in_premise: bool = False

    def answers(self, pairs: Sequence[Pair]) -> list[float]:
        """The probabilities that the passages support the claims."""
        return self.checker.relations(pairs)[:, 0].tolist()

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[float]
    ) -> Verdict:
        """By the passage with the largest probability."""
        best = max(range(len(answers)), key=answers.__getitem__)
        label = "supported" if answers[best] > self.threshold else "not_supported"
        return self.verdict(claim, label, p=answers[best], evidence=[passages[best].id])


class PromptedMiniCheck(ByPassage):
    """Ask a language model, for each passage of a claim, whether the two are consistent.

    For Bespoke-MiniCheck-7B (``bespokelabs/Bespoke-MiniCheck-7B`` behind vLLM), or any other. A
    claim is supported where one passage gets a Yes, and ``failed`` where none does and some answer
    is neither Yes nor No. The released code takes the probability of the first token; an answer's
    text is what every writer gives, so ``p`` is not set. A passage is one document: the model
    reads 32,000 tokens, so none is cut.

    Args:
        writer: the language model.
        max_new_tokens: tokens of an answer; its first word counts.
        title_in_premise: put the passage's title before its text.
    """

    assessor = "prompted_minicheck"

    def __init__(self, writer: Writer, max_new_tokens: int = 4, title_in_premise: bool = False):
        self.title_in_premise = title_in_premise
        self.asker = Asker(writer, 0.0, max_new_tokens, retries=0, seed=0)
        self.prompt = Prompt(_PROMPT)

    def answers(self, pairs: Sequence[Pair]) -> list[Reading[bool]]:
        prompts = [self.prompt.messages(document=d, claim=claim.strip()) for d, claim in pairs]
        return self.asker.ask(prompts, yes_or_no)

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[Reading[bool]]
    ) -> Verdict:
        yes = [passage.id for passage, own in zip(passages, answers, strict=True) if own.value]
        unread = next((own for own in answers if own.failed), None)
        if unread is not None and not yes:
            return self.failed(claim, unread.failed, response=unread.text)
        return self.verdict(claim, "supported" if yes else "not_supported", evidence=yes)
