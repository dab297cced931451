"""Counting the inputs of an engine without running it, for ``--dry_run``."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from components.encoding import Pair


@dataclass
class PairCount:
    """Number of an engine's inputs.

    Attributes:
        pairs: inputs that are not in the cache.
        cached: inputs that are in the cache.
        counted_keys: keys that have been counted; no pair is counted twice.
    """

    pairs: int = 0
    cached: int = 0
    counted_keys: set[bytes] = field(default_factory=set)


class CountsPairs:
    """An engine that can count pairs instead of judging them."""

    _count: PairCount | None = None

    @contextmanager
    def counting(self, counted_keys: set[bytes]) -> Iterator[PairCount]:
        """Count pairs instead of judging them; the engine returns placeholder answers.

        Args:
            counted_keys: keys counted before, by any engine; newly counted keys are added.

        Raises:
            NotImplementedError: from an engine without placeholder answers, when called.
        """
        self._count = PairCount(counted_keys=counted_keys)
        try:
            yield self._count
        finally:
            self._count = None

    def _stand_in(self, pair: Pair) -> np.ndarray:
        raise NotImplementedError

    def _counted(
        self, missing: Sequence[Pair], keys: Mapping[Pair, bytes], cached: int
    ) -> dict[Pair, np.ndarray]:
        # `missing`: distinct pairs not in the cache; `keys`: of all pairs, empty without a cache.
        new = [pair for pair in missing if keys.get(pair) not in self._count.counted_keys]
        self._count.pairs += len(new)
        self._count.cached += cached
        self._count.counted_keys.update(keys[pair] for pair in new if pair in keys)
        return {pair: self._stand_in(pair) for pair in missing}
