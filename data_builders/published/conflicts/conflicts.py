"""``conflicts``: claims of ConflictBank, each with a supporting and a conflicting context.

FactReasoner (2502.18573, section 4) asks of 1,000 such claims whether an assessor is misled when
what was retrieved disagrees with itself. Every claim of it is true; a balanced set of true and
false claims is ``kb_conflicts``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from tqdm import tqdm

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card
from data_builders.published.conflicts.bank import Group, Kind, sample
from data_builders.rows import source_name, source_rows
from records import Claim, Document, Passage, RelationPair, UserError


@dataclass
class Conflicts(Builder):
    """Claims of ConflictBank with a supporting and a conflicting context each.

    Args:
        bank: ConflictBank's files (JSONL or Parquet, any number of shards in any order), or
            ``hub:Warrieryes/CB_claim_evidence`` to stream it from the Hub.
        kind: what the conflicting context conflicts by: another object (``fact``), another time
            (``temporal``), or another meaning of the subject (``semantic``).
        number: how many claims.
        prior: probability that a context is true, for the assessors that use one; the same for
            both contexts, since nothing about their sources is known.
        seed: of the sample.
        limit: only the first so many rows of each file, for a trial.
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
                "give all shards, or another kind"
            )
        work.dropped["claim that was asked for and not found"] += self.number - len(groups)
        files = {
            "documents.jsonl": self._documents(groups),
            "relation.jsonl": self._relation(groups),
        }
        return Made(files, _card(self.kind, len(groups)))

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
                        id=f"c_{place}",
                        title=group.subject,
                        text=told.evidence,
                        source=f"conflictbank/{self.kind}/{side}",
                        prior=self.prior,
                    )
                    for place, (side, told) in enumerate(sides)
                ],
                kind=self.kind,
            )

    def _relation(self, groups: list[Group]) -> Iterator[RelationPair]:
        for group in groups:
            for told, label in ((group.true, "entailment"), (group.conflicting, "contradiction")):
                yield RelationPair(
                    premise=told.evidence,
                    hypothesis=group.true.claim,
                    label=label,
                    source=f"conflictbank/{self.kind}",
                    group=group.subject,
                )


def _card(kind: Kind, number: int) -> Card:
    return Card(
        pretty_name="Claims with a supporting and a conflicting context",
        license="cc-by-sa-4.0",
        tags=("factuality", "knowledge-conflicts", "nli"),
        text=CARD.format(kind=kind, number=number),
    )


CARD = """\
{number} true claims of ConflictBank (Su et al. 2024, 2408.12076), each with a context that supports
it and one that conflicts with it, as FactReasoner (2502.18573, section 4) uses them. The conflict
is of the kind `{kind}`.

- `documents`: one claim a document (`label` S), its two passages `c_0` (supports) and `c_1`
  (conflicts), both with the same `prior`. `topic` is the claim's subject.
- `relation`: each context against the claim, entailment and contradiction; `group` is the subject,
  which must not stand on both sides of a split.

The contexts were written by a language model, and **the conflicting ones are false on purpose**:
never show them without their mark. The relations are rules, nobody judged the pairs. A `temporal`
context moves the claim to another time, a `semantic` one speaks of a namesake; both conflict with
the claim by design, but a reader may find that they leave it open. Every claim is true and the
supporting context comes first, so this set cannot tell an assessor from one that says yes always,
or one that trusts the first context; `kb_conflicts` is balanced in both.
"""
