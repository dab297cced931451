"""FActScore's prompted assessors: No-context LM, Retrieve→LM, and Retrieve→LM + NP.

Min et al. 2023 (2305.14251, section 4.1). The fourth, Nonparametric Probability alone, is
``eval.verify.nonparametric.NP``.
"""

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from jsonargparse.typing import PositiveInt

from eval.models.chat import Message, Writer
from eval.prompting.asker import Asker
from eval.prompting.labels_in_answers import true_or_false
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ClaimToJudge
from eval.verify.nonparametric import NP
from eval.verify.prompted import ByPrompt
from records import Claim, Document, Passage, UserError, Verdict
from records.types import VerdictLabel

_PROMPTS = Path(__file__).parent / "prompts"
# What a line of an answer about several claims may say.
_LABELS: dict[str, VerdictLabel] = {"true": "supported", "false": "not_supported"}


class FActScore(ByPrompt):
    """Ask a language model whether a claim is true, as a rule given its passages.

    Verdicts are named after the paper's variants: ``no_context``; ``retrieval``; with
    ``nonparametric`` also ``retrieval+np``, which supports a claim where both do. As in the
    released code NP judges only what the model calls true. The passages stand in the prompt with
    the best one last, and the text of the answer decides
    (:func:`eval.prompting.labels_in_answers.true_or_false` tells how). There it departs from the
    released code: an answer with neither True nor False is ``failed``, and so is a claim without
    passages.
    The paper's LLaMA compares the logits of "True" and "False" instead, which no
    :class:`~eval.models.chat.Writer` gives, so ``p`` is not set.

    Args:
        writer: the language model.
        retrieval: give it the claim's passages; otherwise it judges by what it knows.
        nonparametric: the masked model of the ensemble.
        temperature: 0 takes the likeliest answer; 0.7 in the released code for ChatGPT.
        max_new_tokens: tokens of an answer.
        seed: of answers drawn with a temperature.
        wording: of FActScore's code, which names the topic, or of FactReasoner's Table 31
            (2502.18573), which does not; the latter with ``retrieval`` alone.
        claims_per_call: how many claims of a document one prompt asks about; with more than 1 by
            our own prompt, whose answer is labels alone, and by all their passages
            (:class:`eval.verify.several_claims.SeveralClaims`).
    """

    assessor = "factscore"

    def __init__(
        self,
        writer: Writer,
        retrieval: bool = True,
        nonparametric: NP | None = None,
        temperature: float = 0.0,
        max_new_tokens: int = 128,
        seed: int = 0,
        wording: Literal["factscore", "factreasoner"] = "factscore",
        claims_per_call: PositiveInt = 1,
    ):
        if wording == "factreasoner" and not retrieval:
            raise UserError("wording: Table 31 has contexts; set retrieval to true")
        if nonparametric is not None and not retrieval:
            raise UserError("nonparametric: needs the claims' passages; set retrieval to true")
        asker = Asker(writer, temperature, max_new_tokens, retries=0, seed=seed)
        topic = ["with_topic"] if wording == "factscore" else []
        super().__init__(asker, claims_per_call, _LABELS, ["True", "False"], topic)
        self.reads_passages = retrieval
        self.nonparametric = nonparametric
        self.name = "retrieval" if retrieval else "no_context"
        of = "factscore_2502.18573" if wording == "factreasoner" else f"factscore_{self.name}"
        self.prompt = Prompt(_PROMPTS / f"{of}.jinja")

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        verdicts = super().__call__(documents, claims, passages)
        if self.nonparametric is None:
            return verdicts
        supported = [
            [claim for claim, v in zip(own, said, strict=True) if v.label == "supported"]
            for own, said in zip(claims, verdicts, strict=True)
        ]
        judged = self.nonparametric(documents, supported, passages)
        return [_with_np(own, np) for own, np in zip(verdicts, judged, strict=True)]

    def messages(self, one: ClaimToJudge) -> list[Message]:
        shown = [{"title": p.title, "text": p.text.strip()} for p in reversed(one.passages)]
        if shown and shown[-1]["text"][-1:] not in string.punctuation:
            shown[-1]["text"] += "."
        topic, claim = one.document.topic, one.claim.text.strip()
        return self.prompt.messages(topic=topic, passages=shown, claim=claim)

    def read(self, text: str, one: ClaimToJudge) -> VerdictLabel | None:
        said = true_or_false(text)
        return None if said is None else "supported" if said else "not_supported"


def _with_np(own: Sequence[Verdict], np: Sequence[Verdict]) -> list[Verdict]:
    said = {one.claim: {"label": one.label, "reason": one.reason} for one in np}
    ensemble = [
        one.model_copy(update={"name": "retrieval+np"} | said.get(one.claim, {})) for one in own
    ]
    return [verdict for pair in zip(own, ensemble, strict=True) for verdict in pair]
