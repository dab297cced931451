"""FactVerify: the rating step of VERIFY (Bayat et al. 2025, FactBench, 2410.22257) as an assessor.

A baseline of FactReasoner (2502.18573), whose released code has swapped the prompts of
``factverify.py`` and ``veriscore.py``; the names here follow the papers.
"""

from pathlib import Path
from typing import Literal

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


class FactVerify(FromPassages):
    """Judge each claim by all of its passages: supported, contradicted, or undecided.

    VERIFY calls the third label unverifiable and also assigns it to claims without passages;
    FactReasoner's code assigns it to every unparsable answer. Here both are ``failed``.

    Args:
        writer: the language model.
        temperature: sampling temperature; VERIFY uses 0.1 and 512 tokens.
        max_new_tokens: maximum length of an answer with its reasoning, in tokens.
        retries: retries for an answer that cannot be parsed; 10 in VERIFY.
        seed: sampling seed.
        wording: prompt of VERIFY (``factbench``), or of FactReasoner's Table 32
            (``factreasoner``), which calls the third label undecided.
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
    ):
        asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        super().__init__(asker, _LABELS)
        self.wording = wording
        name = "factverify" if wording == "factbench" else "factverify_2502.18573"
        self.prompt = Prompt(_PROMPTS / f"{name}.jinja")
