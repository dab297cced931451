"""FactVerify: the rating step of VERIFY (Bayat et al. 2025, FactBench, 2410.22257) as an assessor.

FactReasoner (2502.18573) compares with it under this name: all passages of a claim stand in one
prompt, the model reasons step by step and ends with one of three labels. The names follow
the papers; in FactReasoner's released code the prompts of ``factverify.py`` and ``veriscore.py``
have changed places.
"""

from pathlib import Path
from typing import Literal

from jsonargparse.typing import PositiveInt

from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from eval.verify.prompted import FromPassages
from records.types import VerdictLabel

_PROMPTS = Path(__file__).parent / "prompts"
_LABELS: dict[str, VerdictLabel] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "unverifiable": "undecided",
    "undecided": "undecided",
}
_THIRD = {"factbench": "Unverifiable", "factreasoner": "Undecided"}


class FactVerify(FromPassages):
    """Judge each claim by all of its passages: supported, contradicted, or undecided.

    VERIFY calls the third label unverifiable, and gives it also where nothing was found;
    FactReasoner's code gives it to every answer that it cannot read. Here both are ``failed``.

    Args:
        writer: the language model.
        temperature: of the sampling; 0.1 and 512 tokens are VERIFY's.
        max_new_tokens: of an answer with its reasoning.
        retries: how often an answer that cannot be read is asked for again; 10 in VERIFY.
        seed: of the sampling.
        wording: of VERIFY (``factbench``), or of FactReasoner's Table 32 (``factreasoner``), which
            calls the third label undecided.
        claims_per_call: how many claims of a document one prompt asks about; with more than 1 by
            our own prompt, whose answer is labels alone, and by all their passages
            (:class:`eval.verify.several_claims.SeveralClaims`).
    """

    assessor = "factverify"

    def __init__(
        self,
        writer: Writer,
        temperature: float = 0.1,
        max_new_tokens: int = 512,
        retries: int = 10,
        seed: int = 0,
        wording: Literal["factbench", "factreasoner"] = "factbench",
        claims_per_call: PositiveInt = 1,
    ):
        asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        labels = ["Supported", "Contradicted", _THIRD[wording]]
        super().__init__(asker, claims_per_call, _LABELS, labels)
        name = "factverify" if wording == "factbench" else "factverify_2502.18573"
        self.prompt = Prompt(_PROMPTS / f"{name}.jinja")
