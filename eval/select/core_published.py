"""Core as its authors' released code runs it (2407.03572; zipJiang/adversarial-factuality).

The settings that the paper leaves open, read out of that code:

- p = 1: a claim that its sentence does not entail is out before the program is solved;
- ε = 1e-3, and the least probability of ``−ln`` is 1e-3 as well, so that no claim weighs more than
  6.9 nats;
- Entail and the cap are the most probable relation, of two models that may be the same one (the
  paper names DeBERTa-v3-base-mnli-fever-anli for both);
- Rel is asked of every sentence first.

There the optimum among equals is the solver's, here it does not depend on the order of claims. Its
scores have FActScore's length penalty by the claims that Core keeps (two supported ones that are
left of a text give e⁻⁴, not 1), for SAFE too; ours, where it is asked for, is by those before Core.
"""

from eval.select.core import Core, Relevance
from eval.select.weights import BleachedClaims
from eval.stages import EntailmentModel, UnliModel


class CorePublished(Core):
    """The selector stage with the released settings; there is nothing to choose but the models.

    Args:
        entailment: judges document entailment and exclusion.
        unli: judges p(claim | bleached claim).
        bleached: as :class:`eval.select.core.Core`; the paper's for biographies are its Table 8.
        relevance: judges Rel; the released code asks Factcheck-GPT's prompt, which is
            ``eval.select.relevance.Prompted`` with ``question: factcheck_gpt``. Null leaves it
            out, which the released code does not.
        cap: judges whether a bleached claim entails a claim; null: ``entailment``.
    """

    def __init__(
        self,
        entailment: EntailmentModel,
        unli: UnliModel,
        bleached: BleachedClaims,
        relevance: Relevance | None,
        cap: EntailmentModel | None = None,
    ):
        settings = {"weighting": "capped", "p": 1.0, "epsilon": 1e-3, "floor": 1e-3}
        super().__init__(entailment, unli, bleached, relevance=relevance, cap=cap, **settings)
        # No configuration says them, so the results do.
        self.identity = {"selector": "core_published", **settings}
