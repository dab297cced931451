"""Add the prior of its source to each passage."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from urllib.parse import urlsplit

from jsonargparse.typing import ClosedUnitInterval

from eval.stages import Retriever, RetrieverWrapper
from records import Passage, SourcePrior, read_records

By = Literal["source", "title", "host"]

# The Wayback Machine; most URLs of AVeriTeC are its copies.
_ARCHIVE = re.compile(r"^https?://web\.archive\.org/web/\w+/(?=https?://)", re.IGNORECASE)


def source_of(passage: Passage, by: By) -> str:
    """The name of a passage's source; empty if it has none or an invalid URL."""
    if by == "host":
        try:
            host = urlsplit(_ARCHIVE.sub("", passage.url or "")).hostname
        except ValueError:  # an invalid IPv6 address
            host = None
        return (host or "").removeprefix("www.")
    return (passage.title if by == "title" else passage.source) or ""


@dataclass(eq=False)
class Trusted(RetrieverWrapper):
    """Another retriever's passages, each with its source's ``prior``.

    The prior is the probability that a passage is true, for FactReasoner and the weighted majority
    vote. Passages with a prior are unchanged.

    Args:
        retrieve: retriever of the passages.
        priors: file with ``source`` and ``prior``, as `data_builders source_priors` writes it.
        by: field that identifies the source: ``source``, ``title``, or the ``host`` of the URL.
        otherwise: prior of sources that the file does not contain.
    """

    retrieve: Retriever
    priors: str
    by: By = "source"
    otherwise: ClosedUnitInterval = 0.5

    @cached_property
    def _priors(self) -> dict[str, float]:
        return {row.source: row.prior for row in read_records(self.priors, SourcePrior)}

    def change(self, passage: Passage) -> Passage:
        if passage.prior is not None:
            return passage
        prior = self._priors.get(source_of(passage, self.by), self.otherwise)
        return passage.model_copy(update={"prior": prior})
