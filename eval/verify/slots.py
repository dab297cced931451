"""A defence against a judge that reads words and not their relation: years of birth and death.

A claim and its evidence are parsed into slots (birth, death) and years. Support is withdrawn if the
evidence has other years in the slot, or if the claim dates something before the birth or after the
death. Claims that do not parse are left to the judge. The patterns were written for the sentences
of FEVER (Thorne et al., 2018).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

from eval.verify.claim_by_claim import select_passages
from eval.verify.wrapped import WithdrawsSupport
from records import Claim, Document, Passage
from records.types import VerdictLabel

Slot = Literal["birth", "death", "before", "after"]
FIRST_LINES = 300  # characters; later parentheses are terms of office and marriages
MAX_WORDS_APART = 6  # between a year and the word that names its slot
_WORDS: dict[Slot, str] = {
    "birth": r"born|birth|birthday|birthdate",
    "death": r"died|dies|death|deathdate|dead|passed away|killed|assassinated|executed|murdered",
    "before": r"before|until|prior to",
    "after": r"after|since|from",
}
_SLOT = re.compile("|".join(rf"\b(?P<{slot}>{words})\b" for slot, words in _WORDS.items()), re.I)
_YEAR = re.compile(r"\b[12]\d{3}\b(?!['’]?s)")  # no decade
# "(14 November 1900 – 2 December 1990)", "(1900-1990)", "(c. 1800 to 1850)"
_LIFE = re.compile(
    r"\((?:[^()]*?[;,] )?[^()\d]*(?:\d{1,2} \w+ |\w+ \d{1,2}, )?(?P<birth>[12]\d{3})"
    r"[^()\d]{0,20}(?:–|-|—|to)[^()\d]*(?:\d{1,2} \w+ |\w+ \d{1,2}, )?(?P<death>[12]\d{3})"
)


class DatedSlot(NamedTuple):
    """A year in a slot of a text."""

    slot: Slot
    year: int


def dated_slots(text: str) -> Iterator[DatedSlot]:
    """Yield each year of a text with the nearest word that names a slot, if one is near."""
    names = [(match.start(), match.lastgroup) for match in _SLOT.finditer(text)]
    for year in _YEAR.finditer(text):
        apart = [
            (len(text[min(place, year.start()) : max(place, year.start())].split()), name)
            for place, name in names
            if not re.search(r"[.;]\s", text[min(place, year.start()) : max(place, year.start())])
        ]
        if apart and min(apart)[0] <= MAX_WORDS_APART:
            yield DatedSlot(min(apart)[1], int(year[0]))


@lru_cache(maxsize=256)  # the claims of a text have one page
def life_years(text: str) -> dict[Slot, set[int]]:
    """Years of birth and death that a page states, in its first lines or in its sentences."""
    years: dict[Slot, set[int]] = {"birth": set(), "death": set()}
    if life := _LIFE.search(text[:FIRST_LINES]):
        for slot in years:
            years[slot].add(int(life[slot]))
    for dated in dated_slots(text):
        if dated.slot in years:
            years[dated.slot].add(dated.year)
    return years


def contradicts_years(claim: str, evidence: str) -> bool:
    """Whether the evidence has other years in the slots of a claim."""
    years = life_years(evidence)
    for slot, year in dated_slots(claim):
        match slot:
            case "birth" | "death":
                is_other = bool(years[slot]) and year not in years[slot]
            case "before":
                is_other = bool(years["birth"]) and year <= min(years["birth"])
            case "after":
                is_other = bool(years["death"]) and year >= max(years["death"])
        if is_other:
            return True
    return False


@dataclass(eq=False)
class Slots(WithdrawsSupport):
    """Withdraw support from claims whose years of birth or death are not those of the evidence.

    Args:
        verify: the verifier.
    """

    withdrawn: ClassVar[VerdictLabel] = "contradicted"

    def rejects(self, document: Document, passages: Sequence[Passage]) -> Callable[[Claim], bool]:
        by_id = {passage.id: passage for passage in passages}

        def is_contradicted(claim: Claim) -> bool:
            evidence = select_passages(claim, by_id)
            return not isinstance(evidence, str) and contradicts_years(
                claim.text, " ".join(passage.text for passage in evidence)
            )

        return is_contradicted
