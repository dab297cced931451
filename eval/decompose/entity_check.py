"""FActScore's check of subclaims by their dates and numbers.

After the released code of 2305.14251 (``postprocess_atomic_facts`` of
``factscore/atomic_facts.py``), which finds dates with spaCy; here a date is a run of numbers and
names of months.
"""

import re
from collections.abc import Sequence

from components.english import MONTH

_DETAIL = re.compile(rf"\b(?:\d+|{MONTH})(?:,? (?:\d+|{MONTH})|,\d{{3}})*\b")
# A subclaim that ends so is dropped if another one continues it.
_UNFINISHED = re.compile(
    r"(?: (?:appointed|characterized|described|known|member|advocate)|born|served|elected)\.$"
)


def dates_and_numbers(text: str) -> set[str]:
    return set(_DETAIL.findall(text))


def check_entities(sentence: str, claims: Sequence[str]) -> list[str]:
    """Drop subclaims with dates or numbers that the sentence lacks, and complete parts of dates.

    Equal subclaims are merged. If the subclaims together lack a date or number of the sentence, all
    are returned unchanged.
    """
    details, covered, kept = dates_and_numbers(sentence), set(), {}
    for claim in claims:
        is_unfinished = _UNFINISHED.search(claim) and not claim.endswith("founding member.")
        if is_unfinished and any(claim[:-1] in other for other in claims if other != claim):
            continue
        stated = dates_and_numbers(claim)
        covered |= stated & details
        for part in sorted(stated - details):
            whole = next((detail for detail in sorted(details) if detail.startswith(part)), None)
            if whole is None:
                break
            claim = claim.replace(part, whole)
            covered.add(whole)
        else:
            kept[claim] = None
    return list(kept) if covered == details else list(claims)
