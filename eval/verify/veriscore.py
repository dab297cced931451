"""VeriScore's verification (Song et al. 2024, 2406.19276)."""

from functools import partial
from pathlib import Path
from typing import Literal

from eval.models.chat import Writer
from eval.prompting.answer_forms import cut_next_question
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ClaimToJudge
from eval.verify.prompted import FromPassages
from records.types import VerdictLabel

_PROMPT = Path(__file__).parent / "prompts" / "veriscore.jinja"
_TWO: dict[str, VerdictLabel] = {
    "supported": "supported",
    "unsupported": "not_supported",
    "not supported": "not_supported",
}
_THREE: dict[str, VerdictLabel] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "inconclusive": "undecided",
    "undecided": "undecided",
}


class VeriScore(FromPassages):
    """Judge each claim by the search results for it.

    The search results are the claim's passages. The retriever queries with the claim, and its ``k``
    is the number of results in the prompt (up to ten in the paper; ten in the released command,
    five in the released class). The model marks its decision with ``###``. The prompt is few-shot
    as in the paper, with our own demonstrations. A claim without passages is ``failed``; the
    released code queries the model in this case, too.

    Args:
        writer: the language model.
        labels: 3 for supported, contradicted, inconclusive (here undecided); 2 for supported and
            unsupported (here not_supported).
        temperature: sampling temperature.
        max_new_tokens: maximum length of an answer, in tokens.
        seed: sampling seed.
        third: name of the third label in the prompt; ``Undecided`` in FactReasoner's Table 33
            (2502.18573).
        prompt: a custom prompt file with the shipped one's fields.
    """

    assessor = "veriscore"

    def __init__(
        self,
        writer: Writer,
        labels: Literal[2, 3] = 3,
        temperature: float = 0.0,
        max_new_tokens: int = 1000,
        seed: int = 0,
        third: Literal["Inconclusive", "Undecided"] = "Inconclusive",
        prompt: Path | None = None,
    ):
        self.labels, self.third = labels, third
        asker = Asker(writer, temperature, max_new_tokens, retries=0, seed=seed)
        super().__init__(asker, _THREE if labels == 3 else _TWO)
        self.prompt = Prompt(prompt or _PROMPT)
        self.fields = {"labels": labels, "third": third}

    def read(self, text: str, item: ClaimToJudge) -> VerdictLabel | None:
        read = partial(super().read, item=item)
        return read(cut_next_question(text, "Claim:", read))
