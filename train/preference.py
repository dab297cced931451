"""Training directly against a metric: direct preference optimisation (DPO) of the adversary.

The records say which of two texts on a topic a metric prefers; ``python -m data_builders
preferences`` makes them by scoring samples with the pipeline. Training never runs the metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, set_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import logsigmoid
from tqdm import tqdm

from components.base import describe_base
from components.checkpoint import read_component
from components.measures import Measures, preference_measures
from records import Preference as PreferenceRecord
from records import UserError
from records.errors import first_line
from train.adversary import CausalLora
from train.checks import at_row
from train.items import Item, Loss, rows_of, to_numpy


@dataclass(frozen=True)
class PairItem(Item):
    """Two texts for one prompt, which must be in the same batch.

    ``inputs["input_ids"]`` is prompt and chosen text, ``inputs["rejected_ids"]`` prompt and
    rejected text; ``target`` is the number of the prompt's tokens.
    """

    @property
    def length(self) -> int:
        """Tokens of the longer of the two."""
        return max(len(ids) for ids in self.inputs.values())

    def texts(self) -> tuple[Item, Item]:
        """The chosen and the rejected text as items of their own."""
        chosen, rejected = self.inputs["input_ids"], self.inputs["rejected_ids"]
        return tuple(Item(self.row, {"input_ids": ids}, self.target) for ids in (chosen, rejected))


def dpo_loss(margin: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The DPO loss of each pair (Rafailov et al. 2023, eq. 7), in nats.

    -ln sigma(m) with m the difference of the implicit rewards
    r = beta ln(pi(y|x) / pi_ref(y|x)) of the chosen and the rejected text. With label smoothing e
    (conservative DPO; Mitchell 2023) it is -(1 - e) ln sigma(m) - e ln sigma(-m).

    Args:
        margin: m, of any shape.
        label_smoothing: e, the probability that a pair is the wrong way round.
    """
    return -(1 - label_smoothing) * logsigmoid(margin) - label_smoothing * logsigmoid(-margin)


class Preference(CausalLora):
    """A LoRA adversary trained against a metric, on pairs of texts that the metric ordered.

    The reference policy is the base model, or with ``start`` the adversary that training goes on
    from. Its adapter is then copied twice: one copy is trained, the other stays as it is. What is
    exported is the trained copy alone, relative to the base model, so ``eval`` needs neither
    ``start`` nor the reference.

    A text's log-probability is a sum over its tokens, as in the paper; the implicit reward
    therefore grows with length, and a metric that likes long texts is learnt quickly. The reference
    has no dropout. The prompt template is the one that the records were sampled with.

    Args:
        start: folder of an adversary to go on from; its base, prompt, r, alpha and layers must be
            the ones given here.
        beta: how closely the policy is held to the reference.
        label_smoothing: probability that a pair is the wrong way round, in [0, 0.5).
    """

    record_type = PreferenceRecord
    batch_size, eval_batch_size = 4, 4  # pairs, each of two texts
    style = "preference"
    intended = (
        "Writes texts about a topic that a factuality metric scores highly, having been trained "
        "against that metric. Made to test metrics; its texts are not to be trusted as facts."
    )
    judged_with = ("quantize", "start", "beta", "label_smoothing")

    def __init__(
        self,
        start: str | None = None,
        beta: float = 0.1,
        label_smoothing: float = 0.0,
        lr: float = 1e-4,
        monitor: str = "dev/dpo_loss",
        **lora: Any,
    ):
        super().__init__(lr, monitor, **lora)
        if not beta > 0 or not 0 <= label_smoothing < 0.5:  # NaN is neither
            raise UserError(
                "DPO needs --model.beta above 0 and --model.label_smoothing in [0, 0.5)"
            )
        self.start = start
        self.beta = beta
        self.label_smoothing = label_smoothing

    def configure_model(self) -> None:
        if self.model is None:
            if self.start is not None:
                self._check_start(Path(self.start))
            super().configure_model()
            if self.start is not None:
                self._load_start(Path(self.start))

    def _check_start(self, start: Path) -> None:
        theirs = read_component(start, "adversary")
        adapter = LoraConfig.from_pretrained(start)
        ours = describe_base(self.base, self.revision)
        for base in (ours, theirs.base):
            base.pop("package_version", None)  # the same weights come in several versions
        pairs = {
            "base": (ours, theirs.base),
            "prompt_template": (self.prompt_template, theirs.prompt_template),
            "chat": (self.chat, theirs.chat),
            "r": (self.lora.r, adapter.r),
            "alpha": (self.lora.lora_alpha, adapter.lora_alpha),
        }
        wrong = [f"{name} {its!r}" for name, (own, its) in pairs.items() if own != its]
        if wrong:
            raise UserError(f"--model.start {start}: it has {', '.join(wrong)}; give the same here")

    def _load_start(self, start: Path) -> None:
        self.model.add_adapter("reference", replace(self.lora, lora_dropout=0.0))
        try:
            state = load_file(start / "adapter_model.safetensors")
            for name in ("default", "reference"):
                found = set_peft_model_state_dict(self.model, state, adapter_name=name)
                own = [key for key in found.missing_keys if f".{name}." in key]
                if own or found.unexpected_keys:
                    raise KeyError(f"layers differ at {[*own, *found.unexpected_keys][0]}")
        except (OSError, RuntimeError, SafetensorError, KeyError) as error:
            reason = first_line(error).strip("'\"")
            raise UserError(
                f"--model.start {start}: its adapter does not fit ({reason}); give its own "
                "--model.target_modules"
            ) from None
        self.model.set_adapter("default")

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Inside, the model is the reference policy, without dropout and without gradients."""
        training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                if self.start is None:
                    with self.model.disable_adapter():
                        yield
                else:
                    self.model.set_adapter("reference", inference_mode=True)
                    yield
        finally:
            self.model.set_adapter("default")
            self.model.train(training)

    def encode(self, records: Sequence[PreferenceRecord], train: bool) -> list[Item]:
        """Targets are the number of the prompt's tokens; what follows is the completion."""
        self.check_tokenizer()
        items, cuts = [], 0
        for row, record in enumerate(tqdm(records, "tokens", unit="row", disable=None)):
            with at_row(row):
                self._check(record)
                chosen, head, cut = self.encode_text(record.prompt, record.chosen)
                rejected, _, cut_too = self.encode_text(record.prompt, record.rejected)
            cuts += cut + cut_too
            inputs = {"input_ids": chosen, "rejected_ids": rejected}
            items.append(PairItem(row, inputs, head))
        split = "train" if train else "dev"
        total = 2 * len(items)
        print(f"preference {split}: {cuts} of {total} texts cut at {self.max_length} tokens")
        return items

    def _check(self, record: PreferenceRecord) -> None:
        before, _, after = self.prompt_template.partition("{topic}")
        fits = record.prompt.startswith(before) and record.prompt.endswith(after)
        if not fits or len(record.prompt) < len(before) + len(after):
            raise UserError(
                f"the prompt {record.prompt[:60]!r} does not follow --model.prompt_template "
                f"{self.prompt_template!r}; give the template that the texts were sampled with"
            )
        if record.score_chosen <= record.score_rejected:
            raise UserError(
                f"the prompt {record.prompt[:60]!r} has score_chosen {record.score_chosen} not "
                f"above score_rejected {record.score_rejected}; drop the row or swap its texts"
            )

    def collate(self, items: Sequence[PairItem], indices: Sequence[int]) -> dict:
        """All chosen texts, then all rejected ones: tensors of shape (2 x pairs, longest)."""
        texts = [item.texts() for item in items]
        return super().collate([c for c, _ in texts] + [r for _, r in texts], indices)

    def model_step(self, batch: dict) -> tuple[Loss, list[tuple[float, float]]]:
        """The mean DPO loss over pairs.

        A pair's output is the implicit rewards of its chosen and its rejected text.
        """
        with self.reference():
            reference, _ = self.completion_nll(batch)  # (2 x pairs,)
        policy, _ = self.completion_nll(batch)
        # beta ln(pi / pi_ref), from negative log-likelihoods
        chosen, rejected = (self.beta * (reference - policy)).chunk(2)  # (pairs,) each
        losses = dpo_loss(chosen - rejected, self.label_smoothing)
        outputs = zip(to_numpy(chosen).tolist(), to_numpy(rejected).tolist(), strict=True)
        return Loss(losses.sum(), len(losses)), list(outputs)

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        chosen, rejected = np.asarray(outputs, dtype=np.float64).T
        prompts = [record.prompt for record in rows_of(records, items)]
        return preference_measures(
            chosen, rejected, prompts, label_smoothing=self.label_smoothing, resamples=0
        )

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        return [
            {"prompt": record.prompt, "reward_chosen": chosen, "reward_rejected": rejected}
            for record, (chosen, rejected) in zip(rows_of(records, items), outputs, strict=True)
        ]
