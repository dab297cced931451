"""``conflicts``: claims of ConflictBank, each with a supporting and a conflicting context.

FactReasoner (2502.18573, section 4) uses 1,000 such claims to test whether contradictory contexts
mislead an assessor. All claims are true.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from tqdm import tqdm

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from data_builders.published.conflicts.conflict_bank import Group, Kind, sample
from data_builders.rows import source_name, source_rows
from records import Claim, Document, Passage, RelationPair, UserError


@dataclass
class Conflicts(Builder):
    """Claims of ConflictBank with a supporting and a conflicting context each.

    Args:
        bank: ConflictBank's files (JSONL or Parquet, any number of shards in any order), or
            ``hub:Warrieryes/CB_claim_evidence`` to stream it from the Hub.
        kind: kind of conflict: another object (``fact``), another time (``temporal``), or another
            meaning of the subject (``semantic``).
        number: number of claims.
        prior: probability that a context is true, for assessors that use one; the same for both
            contexts.
    """

    bank: list[str]
    kind: Kind = "fact"
    number: int = 1000
    prior: float = 0.9

    reads = ("bank",)
    least: ClassVar = {"number": 1}
    probabilities = ("prior",)

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: {"test": f"{kind}.jsonl"} for kind in ("documents", "relation")}

    def inputs(self) -> list[str]:
        return sorted(super().inputs())

    def config(self) -> dict[str, object]:
        return super().config() | {"bank": sorted(map(source_name, self.bank))}

    def make(self, work: Work) -> Made:
        groups = sample(self._rows, self.kind, self.number, self.seed, work.dropped)
        if not groups:
            raise UserError(
                f"bank: no claim has a supporting and a {self.kind} conflicting evidence; "
                "pass all shards or set another kind"
            )
        work.dropped["requested claim that is not available"] += self.number - len(groups)
        files = {
            "documents.jsonl": self._documents(groups),
            "relation.jsonl": self._relation(groups),
        }
        return Made(files, read_card("conflicts", kind=self.kind, number=len(groups)))

    def _rows(self) -> Iterator[tuple[str, dict]]:
        for source in self.bank:
            rows = islice(source_rows(source), self.limit)
            yield from tqdm(rows, desc=source_name(source), unit=" rows", disable=None)

    def _documents(self, groups: list[Group]) -> Iterator[Document]:
        for index, group in enumerate(groups):
            sides = (("supports", group.true), ("conflicts", group.conflicting))
            yield Document(
                id=f"cb_{index}",
                topic=group.subject,
                text=group.true.claim,
                claims=[
                    Claim(
                        id="a0",
                        text=group.true.claim,
                        source=group.true.claim,
                        label="S",
                        contexts=["c_0", "c_1"],
                    )
                ],
                passages=[
                    Passage(
                        id=f"c_{number}",
                        title=group.subject,
                        text=pair.evidence,
                        source=f"conflictbank/{self.kind}/{side}",
                        prior=self.prior,
                    )
                    for number, (side, pair) in enumerate(sides)
                ],
                kind=self.kind,
            )

    def _relation(self, groups: list[Group]) -> Iterator[RelationPair]:
        for group in groups:
            for pair, label in ((group.true, "entailment"), (group.conflicting, "contradiction")):
                yield RelationPair(
                    premise=pair.evidence,
                    hypothesis=group.true.claim,
                    label=label,
                    source=f"conflictbank/{self.kind}",
                    group=group.subject,
                )
