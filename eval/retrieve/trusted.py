"""Passages with the prior of the source that they are from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

from jsonargparse.typing import ClosedUnitInterval

from eval.stages import Retriever
from records import Claim, Document, Passage, SourcePrior, read_records, sha256_file

# What a passage's source is: its field ``source``, its title, or the host of its address.
By = Literal["source", "title", "host"]

# A copy in the Wayback Machine, as most addresses of AVeriTeC are, is of the site that it copies.
_COPY = re.compile(r"https?://web\.archive\.org/web/\w+/(?=https?://)", re.IGNORECASE)


def _copied(url: str) -> str:
    copy = _COPY.match(url)
    return url[copy.end() :] if copy else url


def source_of(passage: Passage, by: By) -> str:
    """The name of a passage's source; empty where it has none, or an address that is none."""
    if by == "host":
        try:
            host = urlsplit(_copied(passage.url or "")).hostname
        except ValueError:  # brackets of no IPv6 address
            host = None
        return (host or "").removeprefix("www.")
    return (passage.title if by == "title" else passage.source) or ""


@dataclass(eq=False)
class Trusted:
    """Another retriever's passages, each with its source's ``prior``.

    FactReasoner and the weighed majority vote read it: the probability that what a passage says is
    true. Passages that have one keep it.

    Args:
        retrieve: finds the passages.
        priors: file of ``source``, ``prior``, as `data_builders source_priors` writes it.
        by: what a passage's source is: its ``source``, its ``title``, or the ``host`` of its url.
        otherwise: prior of a source that the file does not have.
    """

    retrieve: Retriever
    priors: str
    by: By = "source"
    otherwise: ClosedUnitInterval = 0.5

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What decides the priors."""
        return {
            "priors_sha256": sha256_file(self.priors),
            "by": self.by,
            "otherwise": self.otherwise,
        }

    @cached_property
    def _known(self) -> dict[str, float]:
        return {row.source: row.prior for row in read_records(self.priors, SourcePrior)}

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        found, passages = self.retrieve(documents, claims)
        return found, [[self._with_prior(passage) for passage in own] for own in passages]

    def _with_prior(self, passage: Passage) -> Passage:
        if passage.prior is not None:
            return passage
        prior = self._known.get(source_of(passage, self.by), self.otherwise)
        return passage.model_copy(update={"prior": prior})
