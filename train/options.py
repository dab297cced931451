"""Options of ``fit`` next to those of Lightning's parser."""

from dataclasses import dataclass, field

from jsonargparse.typing import NonNegativeFloat, NonNegativeInt, PositiveInt

TRAINER_DEFAULTS = {
    # It counts the parts of one attribute `model`, and no operations.
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
    "gradient_clip_val": 1.0,
    "log_every_n_steps": 10,
    # train/data.py distributes batches over processes.
    "use_distributed_sampler": False,
}


@dataclass(kw_only=True)
class OutputOptions:
    """Output folders and export of a run.

    Args:
        name: name of the run's folder.
        runs: parent folder of all runs.
        export_to: checkpoint folder written at the end; null: checkpoints/NAME.
        export_steps: also export the weights of these steps, each to the checkpoint folder
            EXPORT_TO_step_STEP; 0 is the initial weights.
        overwrite: replace the checkpoints of another run.
    """

    name: str = "run"
    runs: str = "runs/train"
    export_to: str | None = None
    export_steps: list[NonNegativeInt] = field(default_factory=list)
    overwrite: bool = False


@dataclass(kw_only=True)
class RunOptions(OutputOptions):
    """Output folders, early stopping and export of a fit.

    Args:
        patience: stop after this many validations without improvement of the monitored measure.
        least_gain: smallest change of the monitored measure that counts as improvement.
        save_every: steps between two saves of last.ckpt.
    """

    patience: PositiveInt = 10
    least_gain: NonNegativeFloat = 0.0
    save_every: PositiveInt = 100
