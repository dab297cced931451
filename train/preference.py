"""Training directly against a metric: direct preference optimisation (DPO) of the adversary.

The records say which of two texts on a topic a metric prefers; ``python -m data_builders
preferences`` makes them by scoring samples with the pipeline. Training never runs the metric.
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

from components.base import describe_base
from components.checkpoint import read_component
from components.measures import Measures, preference_measures
from records import Preference as PreferenceRecord
from records import UserError
from records.errors import first_line
from train.adversary import CausalLora, load_adapter
from train.module import Item, Loss, rows_of, to_numpy


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
    """

    record_type = PreferenceRecord
    batch_size, eval_batch_size = 4, 4  # pairs, each of two texts
    style = "preference"
    item_type = PairItem
    intended = (
        "Writes texts about a topic that a factuality metric scores highly, having been trained "
        "against that metric. Made to test metrics; its texts are not to be trusted as facts."
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
            for name in ("default", "reference"):
                load_adapter(self.model, start, name)
        except (OSError, RuntimeError, SafetensorError, UserError) as error:
            raise UserError(
                f"--model.start {start}: its adapter does not fit ({first_line(error)}); give its "
                "own --model.target_modules"
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

    def texts_of(self, record: PreferenceRecord) -> tuple[str, dict[str, str]]:
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
        return record.prompt, {"input_ids": record.chosen, "rejected_ids": record.rejected}

    def collate(self, items: Sequence[PairItem], indices: Sequence[int]) -> dict:
        """All chosen texts, then all rejected ones: tensors of shape (2 x pairs, longest)."""
        texts = [item.texts() for item in items]
        return super().collate([c for c, _ in texts] + [r for _, r in texts], indices)

    def model_step(self, batch: dict) -> tuple[Loss, list[tuple[float, float]]]:
        """The mean DPO loss over pairs (Rafailov et al. 2023, eq. 7), in nats.

        -ln sigma(m) with m the difference of the implicit rewards
        r = beta ln(pi(y|x) / pi_ref(y|x)) of the chosen and the rejected text.

        A pair's output is the implicit rewards of its chosen and its rejected text.
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

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        return [
            {"prompt": record.prompt, "reward_chosen": chosen, "reward_rejected": rejected}
            for record, (chosen, rejected) in zip(rows_of(records, items), outputs, strict=True)
        ]
