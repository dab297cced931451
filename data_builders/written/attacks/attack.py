"""What an attack is: a document in, an adversarial document out, and what it keeps.

A new one is a subclass of :class:`Attack` in any file; ``attacks`` of the builder picks it by
``class_path``. It says what it ``keeps``, a :class:`~.validity.Invariant`, which is checked on
every text: a text that breaks it is counted as invalid and never as a success.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import Attacked, Invariant, NotApplicable


class Attack(ABC):
    """Makes an adversarial text of a document.

    The options are the parameters of the constructor, kept under their names.
    """

    keeps: Invariant

    @property
    def identity(self) -> dict[str, Any]:
        """The class and its options: all that decides the texts, and no secret."""
        own = {n: v for n, v in vars(self).items() if n[0] != "_" and n != "keeps"}
        told = {name: getattr(value, "identity", value) for name, value in own.items()}
        return {"attack": type(self).__name__, **told}

    @abstractmethod
    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        """The adversarial text of one document.

        Args:
            source: the document, its claims with labels where they have any.
            world: what is known to be true of this and other topics.
            rng: for all choices; depends on the seed, the attack's name and the document.

        Raises:
            NotApplicable: the document has not what it takes.
        """

    def attack_all(
        self, sources: Sequence[Source], world: World, rngs: Sequence[random.Random], seed: int
    ) -> list[Attacked | NotApplicable]:
        """Texts of some documents; to be overridden where a model is asked for all at once.

        Args:
            sources: the documents.
            world: as for :meth:`attack`.
            rngs: of each document.
            seed: of the build, for what a model samples.
        """
        found: list[Attacked | NotApplicable] = []
        for source, rng in zip(sources, rngs, strict=True):
            try:
                found.append(self.attack(source, world, rng))
            except NotApplicable as reason:
                found.append(reason)
        return found
