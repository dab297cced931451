"""``hard_pairs``: entailed pairs, each with a minimally changed claim that is not entailed.

Word overlap cannot separate the two: a number or a name is replaced by another one of the same
premise, two names are swapped, or the sentence is negated, and a changed pair is kept only if the
premise covers nearly the same share of the claim's words. After FactCC (1910.12840, section 3.1),
which replaces values by any others. Labels come from rules: a premise may still support a changed
claim.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from components.english import MONTH, OPENERS
from components.overlap import covered_share, stem_weights
from data_builders.builder import Builder, Made, Work
from data_builders.evenness import pair_card
from data_builders.written.distant_lss.transform import (
    NEGATED,
    Pieces,
    Pool,
    Setting,
    entities,
    negate,
    replace_span,
    swap_entity,
)
from data_builders.written.number_forms import other_forms
from records import RelationPair, UserError, group_of, read_records

NEAR_YEARS = (-10, -3, -1, 1, 3, 10)

Edit = Literal["number", "value", "role", "subject", "negation"]

# Except ranges (2003–04), scores (3–2) and citations ([3]).
_NUMBER = re.compile(r"(?<![\w.,/–\[-])(?:\d[\d,.]*\d|\d)(?![\w/–\]-])")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_YEAR_WORD = re.compile(rf"(?<![\w.,/–-]){_YEAR.pattern}(?![\w/–-])")
# After these words another number may be true as well: 12 wins are more than 9 wins.
_BOUND = re.compile(
    r"\b(?:at least|at most|more than|less than|fewer than|up to|over|under|above|below|nearly|"
    r"almost|about|around|approximately|roughly|before|after|since|until|by|within) "
    r"(?:the )?[$€£]?$",
    re.IGNORECASE,
)
_NEXT_TO_MONTH = re.compile(f"{MONTH} $"), re.compile(rf" {MONTH}\b")
# After these words a negated claim need not contradict the original: "some are not", "may not
# have been", "a man who does not run".
_WEAK_SCOPE = re.compile(
    r"\b(?:some|several|many|most|few|one|who|whose|which|that|where|when|while|if|because|although|"
    r"though|may|might|would|could|should|must)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][\w’'-]+(?: (?:(?:of|de|van|von|the) )?[A-Z][\w’'-]+)*")
# Symmetric relations: swapping the names does not change the meaning.
_SYMMETRIC = re.compile(
    r"\b(?:and|or|with|between|both|together|same|met|married|marries|near|beside|like|versus|"
    r"shared?|faces?|faced|facing|fought|fights?|equals?|twins?|siblings?|brothers?|sisters?|"
    r"friends?|partners?|spouses?|also|as)\b",
    re.IGNORECASE,
)
# A name after a preposition is swapped only with another name after a preposition.
_IN_PHRASE = re.compile(
    r"\b(?:in|at|from|to|for|of|on|as|into|near|than|against|after|before|during|since|until|over|"
    r"under|through|around|via) (?:the )?$"
)
# Two names with only these words between them are one name or equivalent: "George W. Bush",
# "Firs (Abies)", "Rahal is Lebanese".
_COPULA = frozenset(("is", "was", "are", "were", "a", "an", "the"))
_NOT_A_NAME = re.compile(
    f"{OPENERS}|When|With|As|Since|Until|One|Two|Three|Most|Many|Some|All|{MONTH}"
)


@dataclass
class HardPairs(Builder):
    """Entailed pairs, each with a minimally changed pair of equal overlap that is not entailed.

    Args:
        pairs: files of relation pairs, or of a supported project's format; only pairs with label
            ``entailment`` are used.
        edits: changes to try: ``number`` and ``value`` (another number or name of the premise),
            ``role`` (swap two names of the claim), ``subject`` (another name of the premise as the
            subject of the claim), ``negation``.
        per_pair: maximum changed claims per pair, each by a different edit.
        margin: maximum difference of the IDF-weighted share of the claim's stems that the premise
            covers; changes beyond it are skipped.
        other_forms: share of the pairs of which the claims, changed or not, have dates and numbers
            in another form ("May 12, 1901", "three") than the premise.
    """

    pairs: list[str]
    edits: tuple[Edit, ...] = ("number", "value", "role", "negation")
    per_pair: int = 1
    margin: float = 0.05
    other_forms: float = 0.0

    reads = ("pairs",)
    least: ClassVar = {"per_pair": 1}
    probabilities = ("margin", "other_forms")

    def faults(self) -> Iterable[str]:
        if not self.edits:
            yield "edits: expected at least one of number, value, role, negation"

    def files(self) -> dict[str, dict[str, str]]:
        return {"relation": {"train": "relation_train.jsonl"}}

    def make(self, work: Work) -> Made:
        read = [p for path in self.pairs for p in read_records(path, RelationPair)[: self.limit]]
        entailed = [pair for pair in read if pair.label == "entailment"]
        work.dropped["pair that is not entailed"] += len(read) - len(entailed)
        unique: dict[tuple[str, str], RelationPair] = {}
        for pair in entailed:
            unique.setdefault((pair.premise, pair.hypothesis), pair)
        work.dropped["duplicate pair"] += len(entailed) - len(unique)
        # A negated claim stays true with another value: not in Rome, not in Oslo either.
        plain = [pair for pair in unique.values() if not NEGATED.search(pair.hypothesis)]
        work.dropped["pair with a negated claim"] += len(unique) - len(plain)
        beyond: Counter[Edit] = Counter()  # counts changes; a pair may have several
        rows = list(self._rows(plain, work.dropped, beyond))
        if not rows:
            raise UserError("pairs: no entailed pair can be changed within the margin")
        card, details = pair_card("hard_pairs", rows)
        details["changes_beyond_margin"] = dict(sorted(beyond.items()))
        return Made({"relation_train.jsonl": rows}, card, details=details)

    def _rows(
        self, entailed: list[RelationPair], dropped: Counter[str], beyond: Counter[Edit]
    ) -> Iterator[RelationPair]:
        weight = stem_weights(pair.premise for pair in entailed)
        seen: set[tuple[str, str]] = {(pair.premise, pair.hypothesis) for pair in entailed}
        for pair in entailed:
            share = covered_share(pair.hypothesis, [pair.premise], weight)
            changed = []
            for edit, text in self._changed(pair):
                is_near = abs(covered_share(text, [pair.premise], weight) - share) <= self.margin
                beyond[edit] += not is_near
                if is_near and (pair.premise, text) not in seen:
                    seen.add((pair.premise, text))
                    changed.append(_row(pair, text, edit))
                if len(changed) == self.per_pair:
                    break
            if not changed:
                dropped["pair without a change"] += 1
                continue
            rng = random.Random(f"{self.seed}:forms:{pair.premise}\0{pair.hypothesis}")
            rewrite = other_forms if rng.random() < self.other_forms else str
            for row in (_row(pair, pair.hypothesis, None), *changed):
                yield row.model_copy(update={"hypothesis": rewrite(row.hypothesis)})

    def _changed(self, pair: RelationPair) -> Iterator[tuple[Edit, str]]:
        rng = random.Random(f"{self.seed}:{pair.premise}\0{pair.hypothesis}")
        for edit in rng.sample(self.edits, len(self.edits)):
            pieces = _EDITS[edit](pair.hypothesis, pair.premise, rng)
            text = pieces and "".join(part for part, _ in pieces)
            if text and text != pair.hypothesis:
                yield edit, text


def _row(pair: RelationPair, text: str, edit: Edit | None) -> RelationPair:
    label = "not_entailment" if edit else "entailment"
    # Only some sets have documents, which tie rows to one split.
    documents = (pair.model_extra or {}).get("documents")
    return RelationPair(
        premise=pair.premise,
        hypothesis=text,
        label="contradiction" if edit == "negation" else label,
        source=f"hard/{edit or 'whole'}",
        group=group_of(pair),
        **({"documents": documents} if documents else {}),
    )


def change_number(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """Replace a number by one of the premise: year by year, day by day, else of similar length."""
    premise_numbers = sorted({match[0] for match in _NUMBER.finditer(premise)})
    matches = list(_NUMBER.finditer(claim))
    rng.shuffle(matches)
    for match in matches:
        start, end = match.span()
        if _BOUND.search(claim[:start]):
            continue
        year = bool(_YEAR.fullmatch(match[0]))
        day = not year and (
            _NEXT_TO_MONTH[0].search(claim[:start]) or _NEXT_TO_MONTH[1].match(claim[end:])
        )
        candidates = [
            number
            for number in premise_numbers
            if number not in claim
            and bool(_YEAR.fullmatch(number)) == year
            and abs(len(number) - len(match[0])) <= 1
            and (not day or re.fullmatch(r"[1-9]|[12]\d|3[01]", number))
        ]
        if candidates:
            return replace_span(claim, start, end, rng.choice(candidates))
    return None


def shift_year(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """Replace a year by one nearby that the premise lacks."""
    years = [m for m in _YEAR_WORD.finditer(claim) if not _BOUND.search(claim[: m.start()])]
    if not years:
        return None
    match = rng.choice(years)
    near = [str(int(match[0]) + away) for away in NEAR_YEARS]
    possible = [year for year in near if year not in premise]
    return replace_span(claim, *match.span(), rng.choice(possible)) if possible else None


def change_value(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """Replace a name by another name of the premise after the same preposition."""
    return swap_entity(claim, Setting(premise, entities(premise), Pool(), share_near=1.0), rng)


def change_roles(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """Swap two names of the claim if their order changes the meaning."""
    names = [
        match
        for match in _NAME.finditer(claim)
        if not _NOT_A_NAME.fullmatch(match[0].split()[0])
        # A first word is capitalised in any case.
        and (match.start() or " " in match[0] or re.search(rf"[\w,;] {match[0]}\b", premise))
    ]
    pairs = [
        (left, right)
        for index, left in enumerate(names)
        for right in names[index + 1 :]
        if not set(left[0].split()) & set(right[0].split())
        and _has_content(claim[left.end() : right.start()])
        and bool(_IN_PHRASE.search(claim, 0, left.start()))
        == bool(_IN_PHRASE.search(claim, 0, right.start()))
    ]
    if not pairs or _SYMMETRIC.search(claim):
        return None
    left, right = rng.choice(pairs)
    swapped = right[0] + claim[left.end() : right.start()] + left[0]
    return replace_span(claim, left.start(), right.end(), swapped)


def change_subject(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """Replace the name that a claim begins with by another name of the premise."""
    subject = _NAME.match(claim)
    if not subject or subject[0] not in premise or _SYMMETRIC.search(claim):
        return None
    words = set(subject[0].split())
    names = {
        match[0]
        for match in _NAME.finditer(premise)
        if " " in match[0]
        and not words & set(match[0].split())
        and match[0] not in claim
        and not _NOT_A_NAME.fullmatch(match[0].split()[0])
    }
    return replace_span(claim, 0, subject.end(), rng.choice(sorted(names))) if names else None


def _has_content(between: str) -> bool:
    words = set(re.findall(r"[a-z]{2,}", between.replace("'s", ""))) - _COPULA
    return bool(words) and not re.search(r'[,()"“”]', between)


def negate_claim(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """Insert "not" or "never" after an auxiliary of the main clause if that contradicts it."""
    pieces = negate(claim, Setting(premise, {}, Pool(), share_near=0.0), rng)
    if pieces is None:
        return None
    subject, _, _ = pieces[0][0].rpartition(" ")
    return None if _WEAK_SCOPE.search(subject) else pieces


_EDITS: dict[Edit, Callable[[str, str, random.Random], Pieces | None]] = {
    "number": change_number,
    "value": change_value,
    "role": change_roles,
    "subject": change_subject,
    "negation": negate_claim,
}
