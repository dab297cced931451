"""FActScore's prompted assessors: No-context LM, Retrieve→LM, Retrieve→LM + NP (2305.14251)."""

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eval.models.chat import Message, Writer
from eval.prompting.answer_forms import read_true_or_false
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from eval.verify.claim_by_claim import ClaimToJudge
from eval.verify.nonparametric import NP
from eval.verify.prompted import ByPrompt
from records import Claim, Document, Passage, UserError, Verdict
from records.types import VerdictLabel

_PROMPTS = Path(__file__).parent / "prompts"


class FActScore(ByPrompt):
    """Ask a language model whether a claim is true, by default given its passages.

    Verdicts are named after the paper's variants: ``no_context``; ``retrieval``; with
    ``nonparametric`` also ``retrieval+np``, which supports a claim if both do. As in the released
    code, NP judges only claims that the language model supports. The prompt shows the best passage
    last, and the answer's text decides. Unlike in the released code, a claim is ``failed`` if its
    answer has neither True nor False, or if it has no passages. The paper's LLaMA compares the
    logits of "True" and "False", which are not available here, so ``p`` is not set.

    Args:
        writer: the language model.
        retrieval: show the claim's passages; otherwise the model judges by its knowledge.
        nonparametric: the masked language model of the ensemble.
        temperature: sampling temperature; 0 is greedy, the released code uses 0.7 for ChatGPT.
        max_new_tokens: maximum length of an answer, in tokens.
        seed: sampling seed.
        wording: prompt of FActScore's code with the topic, or of FactReasoner's Table 31
            (2502.18573) without it, which requires ``retrieval``.
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
    ):
        if wording == "factreasoner" and not retrieval:
            raise UserError("wording: factreasoner needs passages; set retrieval to true")
        if nonparametric is not None and not retrieval:
            raise UserError("nonparametric: needs the claims' passages; set retrieval to true")
        asker = Asker(writer, temperature, max_new_tokens, retries=0, seed=seed)
        super().__init__(asker)
        self.reads_passages = self.retrieval = retrieval
        self.wording = wording
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
            [claim for claim, v in zip(row, labelled, strict=True) if v.label == "supported"]
            for row, labelled in zip(claims, verdicts, strict=True)
        ]
        by_np_all = self.nonparametric(documents, supported, passages)
        return [_with_np(row, by_np) for row, by_np in zip(verdicts, by_np_all, strict=True)]

    def messages(self, item: ClaimToJudge) -> list[Message]:
        texts = [{"title": p.title, "text": p.text.strip()} for p in reversed(item.passages)]
        if texts and texts[-1]["text"][-1:] not in string.punctuation:
            texts[-1]["text"] += "."
        topic, claim = item.document.topic, item.claim.text.strip()
        return self.prompt.messages(topic=topic, passages=texts, claim=claim)

    def read(self, text: str, item: ClaimToJudge) -> VerdictLabel | None:
        answer = read_true_or_false(text)
        return None if answer is None else "supported" if answer else "not_supported"


def _with_np(verdicts: Sequence[Verdict], np_verdicts: Sequence[Verdict]) -> list[Verdict]:
    np_labels = {v.claim: {"label": v.label, "reason": v.reason} for v in np_verdicts}
    ensemble = [
        v.model_copy(update={"name": "retrieval+np"} | np_labels.get(v.claim, {})) for v in verdicts
    ]
    return [v for pair in zip(verdicts, ensemble, strict=True) for v in pair]
