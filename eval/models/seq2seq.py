"""LSS and LSS* written by a trained sequence-to-sequence model (2308.12157, sections 3 and A.3).

Deduplication, cache and loading are those of the encoders. What is kept in the cache is the token
ids of an output: whatever reads them into words can change without asking the model again.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM

from components.encoding import Pair, batches_by_length, encode_grounded, padded_prompts
from components.subsequence import LssDecoder
from eval.models.encoder import Encoder
from eval.models.lss import Subsequence
from records import UserError


class LssSeq2Seq(Encoder):
    """Longest supported subsequences by generation, decoded as ``component.json`` says.

    An LSS is constrained to the claim's words; an LSS* is free text. Batches are of similar length,
    padded and masked: what else is asked moves a logit in its last bits only.
    """

    expected = "lss"
    auto_model = AutoModelForSeq2SeqLM

    def _check(self) -> None:
        if self.component.architecture != "seq2seq":
            raise UserError(
                f"{self.checkpoint}: a {self.component.architecture} writes nothing; use "
                "eval.models.encoder.LssTagger, or give a seq2seq checkpoint"
            )
        lacking = {"num_beams", "max_new_tokens", "constrained"} ^ set(self.component.decoding)
        if lacking or not self.component.prompt_template:
            raise UserError(
                f"{self.checkpoint}: component.json needs a prompt_template, and in decoding "
                "num_beams, max_new_tokens and constrained; export the checkpoint again"
            )

    @cached_property
    def _decoder(self) -> LssDecoder:
        return LssDecoder(self._tokenizer, **self.component.decoding)

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """What the references support of the claims; ``None`` where a claim is too long.

        Args:
            pairs: (claim, reference).
        """
        kept: list[Subsequence | None] = []
        for (claim, _), answer in zip(pairs, self._judge(pairs), strict=True):
            ids = answer.astype(int).tolist()
            kept.append(Subsequence(*self._decoder.read(claim, ids)) if ids else None)
        return kept

    @torch.inference_mode()
    def _forward(self, inputs: Sequence[Pair]) -> Iterator[dict[Pair, np.ndarray]]:
        template, longest = self.component.prompt_template, self.component.max_length
        rows = [
            encode_grounded(self._tokenizer, template, reference, claim, longest)
            for claim, reference in inputs
        ]
        yield {p: np.empty(0) for p, row in zip(inputs, rows, strict=True) if row is None}
        fitting = [place for place, row in enumerate(rows) if row is not None]
        for batch in batches_by_length([len(rows[place]) for place in fitting], self.batch_size):
            chosen = [fitting[index] for index in batch]
            prompts = [rows[place] for place in chosen]
            features = padded_prompts(prompts, self._tokenizer.pad_token_id, self.device)
            claims = [inputs[place][0] for place in chosen]
            with torch.autocast(self.device.type, torch.bfloat16, self.dtype == "bfloat16"):
                written = self._decoder.generate(self._model, features, claims)
            yield {inputs[p]: np.asarray(ids) for p, ids in zip(chosen, written, strict=True)}
