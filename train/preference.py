"""Direct preference optimisation (DPO) of the adversary against a metric.

Each record holds two texts on a topic and the metric's scores. ``python -m data_builders
preferences`` creates them by scoring samples with the pipeline; training never runs the metric.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jsonargparse.typing import NonNegativeFloat, PositiveFloat
from peft import LoraConfig
from safetensors import SafetensorError
from torch.nn.functional import logsigmoid

from components.adapter import load_adapter
from components.base import describe_base
from components.checkpoint import read_component
from components.measures import Measures, preference_measures
from records import Preference as PreferenceRecord
from records import UserError
from records.errors import first_line
from train.adversary import CausalLora
from train.module import Item, Loss, rows_of, to_numpy


@dataclass(frozen=True)
class PairItem(Item):
    """Two texts for one prompt, always in the same batch.

    ``input_ids`` has prompt and chosen text, ``rejected_ids`` prompt and rejected text;
    ``target`` is the number of prompt tokens.
    """

    @property
    def length(self) -> int:
        """Tokens of the longer text."""
        return max(len(ids) for ids in self.inputs.values())

    def texts(self) -> tuple[Item, Item]:
        """The chosen and the rejected text as separate items."""
        chosen, rejected = self.inputs["input_ids"], self.inputs["rejected_ids"]
        return tuple(Item(self.row, {"input_ids": ids}, self.target) for ids in (chosen, rejected))


class Preference(CausalLora):
    """A LoRA adversary trained against a metric on pairs of texts ranked by the metric.

    The reference policy is the base model, or the adversary ``start``, whose adapter is then copied
    into a trained and a frozen adapter. Only the trained adapter is exported, relative to the base
    model, so ``eval`` needs neither ``start`` nor the reference.

    A text's log-probability is a sum over its tokens, as in the paper; the implicit reward
    therefore grows with length, which favours long texts if the metric does. The reference has no
    dropout. The prompt template must be the one used to sample the records.

    Args:
        start: folder of an adversary to initialise from; its base, prompt, r, alpha and layers must
            equal the options set here. Null: the base model.
        beta: strength of the constraint to stay close to the reference policy.
    """

    record_type = PreferenceRecord
    batch_size, eval_batch_size = 4, 4  # pairs, each of two texts
    style = "preference"
    item_type = PairItem
    intended = (
        "Writes texts about a topic that a factuality metric scores highly; trained against that "
        "metric. For testing metrics only: its texts are not reliable."
    )
    judged_with = ("quantize", "start", "beta")

    def __init__(
        self,
        start: str | None = None,
        beta: PositiveFloat = 0.1,
        lr: NonNegativeFloat = 1e-4,
        monitor: str = "dev/dpo_loss",
        **lora: Any,
    ):
        super().__init__(lr, monitor, **lora)
        self.start, self.beta = start, beta

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
            base.pop("package_version", None)  # versions can share weights
        settings = {
            "base": (ours, theirs.base),
            "prompt_template": (self.prompt_template, theirs.prompt_template),
            "chat": (self.chat, theirs.chat),
            "r": (self.lora.r, adapter.r),
            "alpha": (self.lora.lora_alpha, adapter.lora_alpha),
        }
        wrong = [f"{key} {value!r}" for key, (option, value) in settings.items() if option != value]
        if wrong:
            raise UserError(f"--model.start {start}: has {', '.join(wrong)}; set the same values")

    def _load_start(self, start: Path) -> None:
        self.model.add_adapter("reference", replace(self.lora, lora_dropout=0.0))
        try:
            for name in ("default", "reference"):
                load_adapter(self.model, start, name)
        except (OSError, RuntimeError, SafetensorError, UserError) as error:
            raise UserError(
                f"--model.start {start}: its adapter does not fit ({first_line(error)}); set the "
                "same --model.target_modules"
            ) from None
        self.model.set_adapter("default")

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Switch the model to the reference policy, without dropout and gradients."""
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

    def texts_of(self, record: PreferenceRecord) -> tuple[str, dict[str, str]]:
        before, _, after = self.prompt_template.partition("{topic}")
        fits = record.prompt.startswith(before) and record.prompt.endswith(after)
        if not fits or len(record.prompt) < len(before) + len(after):
            raise UserError(
                f"prompt {record.prompt[:60]!r} does not match --model.prompt_template "
                f"{self.prompt_template!r}; set the template used to sample the texts"
            )
        is_ranked = not (record.model_extra or {}).get("shuffled")  # else the control
        scores = (record.score_chosen, record.score_rejected)
        if is_ranked and None not in scores and scores[0] <= scores[1]:
            raise UserError(
                f"prompt {record.prompt[:60]!r}: expected score_chosen above score_rejected, got "
                f"{record.score_chosen} and {record.score_rejected}; drop the row or swap its texts"
            )
        return record.prompt, {"input_ids": record.chosen, "rejected_ids": record.rejected}

    def collate(self, items: Sequence[PairItem], indices: Sequence[int]) -> dict:
        """All chosen, then all rejected texts: tensors of shape (2 x pairs, longest)."""
        texts = [item.texts() for item in items]
        return super().collate([c for c, _ in texts] + [r for _, r in texts], indices)

    def model_step(self, batch: dict) -> tuple[Loss, list[tuple[float, float]]]:
        """The mean DPO loss over pairs (Rafailov et al. 2023, eq. 7), in nats.

        -ln sigma(m) with m the difference of the implicit rewards
        r = beta ln(pi(y|x) / pi_ref(y|x)) of the chosen and the rejected text.

        The output of a pair is the implicit rewards of its chosen and rejected text.
        """
        with self.reference():
            reference, _ = self.completion_nll(batch)  # (2 x pairs,)
        policy, _ = self.completion_nll(batch)
        # beta ln(pi / pi_ref), from negative log-likelihoods
        chosen, rejected = (self.beta * (reference - policy)).chunk(2)  # (pairs,) each
        losses = -logsigmoid(chosen - rejected)
        outputs = zip(to_numpy(chosen).tolist(), to_numpy(rejected).tolist(), strict=True)
        return Loss(losses.sum(), len(losses)), list(outputs)

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        chosen, rejected = np.asarray(outputs, dtype=np.float64).T
        prompts = [record.prompt for record in rows_of(records, items)]
        return preference_measures(chosen, rejected, prompts, resamples=0)
