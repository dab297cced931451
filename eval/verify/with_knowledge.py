"""One statement at a time, by its evidence and by what the model knows (2502.18573, Table 34).

FactReasoner compares with it under the name of the model that it asks, DeepSeek-v3 (Tables 6, 7).
"""

from pathlib import Path

from jsonargparse.typing import PositiveInt

from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from eval.verify.prompted import FromPassages
from records.types import VerdictLabel

_PROMPT = Path(__file__).parent / "prompts" / "with_knowledge.jinja"
_LABELS: dict[str, VerdictLabel] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "undecided": "undecided",
}


class WithKnowledge(FromPassages):
    """Judge each claim by all of its passages and by the model's own knowledge.

    An answer without a label is ``failed``, and so is a claim without passages. The paper states
    neither the temperature nor the length of an answer.

    Args:
        writer: the language model; one that counts a cut answer as failed (``when_cut: fail``).
        temperature: of the sampling.
        max_new_tokens: of an answer with its reasoning.
        retries: how often an answer that cannot be read is asked for again.
        seed: of the sampling.
        claims_per_call: how many claims of a document one prompt asks about; with more than 1 by
            our own prompt, whose answer is labels alone, and by all their passages
            (:class:`eval.verify.several_claims.SeveralClaims`).
    """

    assessor = "with_knowledge"

    def __init__(
        self,
        writer: Writer,
        temperature: float = 0.1,
        max_new_tokens: int = 1024,
        retries: int = 3,
        seed: int = 0,
        claims_per_call: PositiveInt = 1,
    ):
        asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        labels = [label.capitalize() for label in _LABELS]
        super().__init__(asker, claims_per_call, _LABELS, labels, ["with_knowledge"])
        self.prompt = Prompt(_PROMPT)
