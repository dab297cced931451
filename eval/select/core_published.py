"""Core with the settings of its released code (2407.03572; zipJiang/adversarial-factuality).

Settings of the code that the paper does not state:

- p = 1: claims that their sentence does not entail are removed before the program is solved;
- ε = 1e-3, and the minimum probability in ``−ln`` is 1e-3, so that weights are at most 6.9 nats;
- Entail and the cap use the most probable relation, of one or two models (the paper names
  DeBERTa-v3-base-mnli-fever-anli for both);
- Rel is judged for every sentence first.

Differences: there the solver decides between equal optima, here the result does not depend on the
order of claims. There the length penalty, also for SAFE, counts the claims that Core keeps (two
supported ones give e⁻⁴, not 1); here it counts the claims before Core.
"""

from eval.select.core import Core
from eval.select.weights import BleachedClaims
from eval.stages import EntailmentModel, Relevance, UnliModel


class CorePublished(Core):
    """The selector stage with the released settings; only the models are options.

    Args:
        entailment: model for document entailment and exclusion.
        unli: model for p(claim | bleached claim).
        bleached: as in :class:`eval.select.core.Core`; the paper's Table 8 for biographies.
        relevance: model for Rel; the released code uses ``eval.select.relevance.Prompted`` with
            ``question: factcheck_gpt``; null: all sentences are relevant.
        cap: model for whether a bleached claim entails a claim; null: ``entailment``.
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
        # recorded in the results, since the configuration does not contain the settings
        judges = {"entailment": entailment, "unli": unli, "relevance": relevance, "cap": cap}
        self.identity = {**settings, **judges, "bleached": self.bleached}
