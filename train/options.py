"""The options that every run of ``fit``, ``validate``, ``test`` and ``predict`` has."""

from dataclasses import dataclass, field

from jsonargparse.typing import NonNegativeInt, PositiveInt

TRAINER_DEFAULTS = {
    "num_sanity_val_steps": 0,
    "gradient_clip_val": 1.0,
    "log_every_n_steps": 10,
    # All batches know their process already (train/data.py).
    "use_distributed_sampler": False,
}


@dataclass
class RunOptions:
    """Where a run is kept and what becomes of it.

    Args:
        name: name of the run's folder.
        runs: where runs are kept.
        export_to: checkpoint folder to write when the fit ends; null: checkpoints/NAME.
        patience: stop early after this many validations without a better monitored measure.
        save_every: steps between two last.ckpt.
        export_steps: steps whose weights are exported as well, each to a checkpoint folder
            EXPORT_TO_step_STEP with measures of its own; 0 is the start. They are written when the
            fit ends.
        push_to_hub: ORG/NAME: upload the exported folder there when the fit ends.
    """

    name: str = "run"
    runs: str = "runs/train"
    export_to: str | None = None
    patience: PositiveInt = 10
    save_every: PositiveInt = 100
    export_steps: list[NonNegativeInt] = field(default_factory=list)
    push_to_hub: str | None = None
