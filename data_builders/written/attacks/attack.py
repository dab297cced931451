"""The base class of attacks: a document in, an adversarial document out.

A custom attack is a subclass of :class:`Attack` in any file; the builder's option ``attacks``
selects it by ``class_path``. Every text must be bad by its gold score. An attack whose ``keeps`` is
another :class:`~.validity.Invariant` is also checked for that. A text that breaks either is counted
as invalid, never as a success.
"""

import random
from abc import ABC, abstractmethod

from jsonargparse.typing import PositiveInt

from data_builders.written.attacks.phrases import Bank
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import Attacked, Invariant, WorseByGold
from records import Claim


class Attack(ABC):
    """Builds an adversarial text from a document.

    Constructor parameters are the options; store each in an attribute of the same name.

    Attributes:
        keeps: what its texts keep; by default they are worse by gold, which is always checked.
        family: what it exploits: ``counting``, ``judge``, ``relevance``, ``injection``,
            ``relation``, ``discourse``, ``hidden`` or ``custom``.
    """

    keeps: Invariant = WorseByGold()
    family: str = "custom"

    @abstractmethod
    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        """Build the adversarial text of one document.

        Args:
            source: the document and its claims, labelled if its file has labels.
            world: known facts about this and other topics.
            rng: for all choices; seeded by the seed, the attack's name and the document.

        Raises:
            NotApplicable: the attack cannot be applied to the document.
        """


class SizedAttack(Attack):
    """Base class of attacks with a configurable number of sentences.

    F1@K and the length penalty react to length alone, so by default attacks match the honest text.

    Args:
        sentences: maximum number of sentences; by default that of the document's claims.
    """

    def __init__(self, sentences: PositiveInt | None = None):
        self.sentences = sentences

    def length(self, source: Source) -> int:
        """Number of sentences for a document; 14 if it has no claims."""
        return self.sentences or len(source.claims) or 14


def versions_of(claim: Claim) -> list[str]:
    """A claim and, of a ladder, its rewordings."""
    return [claim.text, *(claim.model_extra or {}).get("reworded", ())]


def false_versions_of(
    claim: Claim, changed: str | None = None, bank: Bank | None = None
) -> list[str]:
    """The false versions of a ladder's claim: all, or those that differ in one respect.

    Args:
        changed: ``number``, ``name`` or ``relation``.
        bank: bank of the frame of a wrong relation.
    """
    versions = (claim.model_extra or {}).get("false", ())
    return [
        version["text"]
        for version in versions
        if changed in (None, version["changed"]) and bank in (None, version["bank"])
    ]
