"""FactReasoner's baseline DeepSeek-v3, named after its model (2502.18573, Tables 6, 7 and 34)."""

from pathlib import Path

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
    """Judge each claim by all of its passages and by the model's knowledge.

    A claim is ``failed`` if its answer has no label, or if it has no passages. The paper states
    neither the temperature nor the answer length.

    Args:
        writer: the language model, with ``when_cut: fail``.
        temperature: sampling temperature.
        max_new_tokens: maximum length of an answer with its reasoning, in tokens.
        retries: retries for an answer that cannot be parsed.
        seed: sampling seed.
    """

    assessor = "with_knowledge"

    def __init__(
        self,
        writer: Writer,
        temperature: float = 0.1,
        max_new_tokens: int = 1024,
        retries: int = 3,
        seed: int = 0,
    ):
        asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        super().__init__(asker, _LABELS)
        self.prompt = Prompt(_PROMPT)
