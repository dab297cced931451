"""What an encoder would be asked, without asking it: for ``--dry_run``."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from components.encoding import Pair


@dataclass
class PairCount:
    """What an engine would be asked.

    Attributes:
        pairs: that no cache answers.
        known: answers from the cache.
        asked: keys of pairs that are counted, here or before; what a cache would keep by then is
            not counted twice.
    """

    pairs: int = 0
    cached: int = 0
    counted_keys: set[bytes] = field(default_factory=set)


class CountsPairs:
    """An engine that can count pairs instead of judging them."""

    _count: PairCount | None = None

    @contextmanager
    def counting(self, counted_keys: set[bytes]) -> Iterator[PairCount]:
        """While it lasts no pair is judged but counted, and stand-ins answer for the model.

        Args:
            asked: what was counted before, of this engine or another; what is counted is added.

        Raises:
            NotImplementedError: when it is asked, an engine without stand-ins.
        """
        self._count = PairCount(asked=counted_keys)
        try:
            yield self._count
        finally:
            self._count = None

    def _stand_in(self, pair: Pair) -> np.ndarray:
        raise NotImplementedError

    def _counted(
        self, missing: Sequence[Pair], keys: Mapping[Pair, bytes], cached: int
    ) -> dict[Pair, np.ndarray]:
        """Stand-ins for the distinct pairs of a call that the cache does not know.

        Args:
            missing: the pairs.
            keys: of all pairs of the call; empty without a cache.
            known: how many the cache knows.
        """
        new = [pair for pair in missing if keys.get(pair) not in self._count.counted_keys]
        self._count.pairs += len(new)
        self._count.cached += cached
        self._count.counted_keys.update(keys[pair] for pair in new if pair in keys)
        return {pair: self._stand_in(pair) for pair in missing}
