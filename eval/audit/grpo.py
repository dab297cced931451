"""Audit a reward while trl's ``GRPOTrainer`` trains with it, such as a learned reward."""

from pathlib import Path

from transformers import TrainerCallback

from eval.audit.audited import audit, name_of
from eval.audit.result import Audit
from eval.audit.targets import Guarded, described, load


class AuditCallback(TrainerCallback):
    """Audit a reward every ``steps`` steps: ``GRPOTrainer(..., callbacks=[AuditCallback(f)])``.

    The verdict is printed, and the excess inflation of each attack is added to the trainer's
    ``log_history``. An audit that fails is printed, and the training goes on.

    Args:
        reward: as ``reward_funcs`` of the trainer (functions and coroutines of texts or of chat
            messages, and lists of these), or another target of an audit.
        steps: number of steps between two audits.
        max_texts: as in ``audit``.

    Attributes:
        audits: step to its audit.

    Raises:
        UserError: the reward is a model, or needs columns that the texts of an audit do not have.
    """

    def __init__(self, reward: object, steps: int = 100, max_texts: int | None = None):
        load(reward) if isinstance(reward, str) else Guarded(name_of(reward), reward)
        self.reward, self.steps, self.max_texts = reward, steps, max_texts
        self.audits: dict[int, Audit] = {}

    def on_step_end(self, args, state, control, **_: object) -> None:
        step = state.global_step
        if step % self.steps or not state.is_world_process_zero:
            return
        folder = Path(args.output_dir, "audit", str(step))
        try:
            result = audit(self.reward, max_texts=self.max_texts, output=str(folder))
        except Exception as error:
            print(f"step {step}: no audit: {described(error)}; the training goes on")
            return
        self.audits[step] = result
        print(f"step {step}: {result.screen().splitlines()[0]}")
        worst = {f"audit/{attack.kind}": attack.excess_inflation for attack in result.attacks}
        state.log_history.append({"step": step} | worst)
