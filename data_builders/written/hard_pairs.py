"""``hard_pairs``: entailed pairs, each with one whose claim is minimally changed and false.

A model that reads overlap as entailment sees no difference: a number or a name gives way to another
one of the same premise, two names change places, or the sentence is denied, and a pair stays only
where the share of the claim's words that the premise has is nearly what it was. After FactCC
(1910.12840, section 3.1), whose changes come from anywhere. The labels are rules, not judgments: a
premise may well support what a rule calls false.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from components.overlap import covered_share, stem_weights
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card
from data_builders.evenness import overlap_auroc
from data_builders.kb.graph import MONTHS
from data_builders.written.distant_lss.transform import (
    NEGATED,
    Pieces,
    Pool,
    Setting,
    entities,
    negate,
    swap_entity,
)
from records import RelationPair, UserError, group_of, read_records

Edit = Literal["number", "value", "role", "negation"]

# Neither a range (2003–04), nor a score (3–2), nor a citation ([3]).
_NUMBER = re.compile(r"(?<![\w.,/–\[-])(?:\d[\d,.]*\d|\d)(?![\w/–\]-])")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
# Behind these another number may be as true: who has won 12 has won more than 9.
_BOUND = re.compile(
    r"\b(?:at least|at most|more than|less than|fewer than|up to|over|under|above|below|nearly|"
    r"almost|about|around|approximately|roughly|before|after|since|until|by|within) "
    r"(?:the )?[$€£]?$",
    re.IGNORECASE,
)
_MONTH = "|".join(MONTHS)
_BESIDE_MONTH = re.compile(rf"(?:{_MONTH}) $"), re.compile(rf" (?:{_MONTH})\b")
# Denied behind one of these, a claim may hold beside what it was: "some are not", "may not have
# been", "a man who does not run".
_LEAVES_OPEN = re.compile(
    r"\b(?:some|several|many|most|few|one|who|whose|which|that|where|when|while|if|because|although|"
    r"though|may|might|would|could|should|must)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][\w’'-]+(?: (?:(?:of|de|van|von|the) )?[A-Z][\w’'-]+)*")
# What is as true the other way round.
_BOTH_WAYS = re.compile(
    r"\b(?:and|or|with|between|both|together|same|met|married|marries|near|beside|like|versus|"
    r"shared?|faces?|faced|facing|fought|fights?|equals?|twins?|siblings?|brothers?|sisters?|"
    r"friends?|partners?|spouses?|also|as)\b",
    re.IGNORECASE,
)
# A place does not beat a person: a name behind one of these changes places with another such alone.
_PLACED = re.compile(
    r"\b(?:in|at|from|to|for|of|on|as|into|near|than|against|after|before|during|since|until|over|"
    r"under|through|around|via) (?:the )?$"
)
# Between two names with nothing else they are one name, or one is the other: "George W. Bush",
# "Firs (Abies)", "Rahal is Lebanese".
_SAME = frozenset(("is", "was", "are", "were", "a", "an", "the"))
_NOT_NAMES = frozenset(
    """The A An He She It They His Her Its Their This That These Those There In On At By With For
    From As After Before During While When Since Until One Two Three Most Many Some All January
    February March April May June July August September October November December""".split()  # noqa: SIM905
)


@dataclass
class HardPairs(Builder):
    """Entailed pairs of a file, each beside a minimally changed one that is not, of equal overlap.

    Args:
        pairs: files of relation pairs (or another project's, by its field names); those with label
            ``entailment`` are used.
        edits: which changes are tried: ``number`` and ``value`` (another number or name of the
            premise), ``role`` (two names of the claim change places), ``negation``.
        per_pair: at most this many changed claims of a pair, each by another change.
        margin: largest difference in the IDF-weighted share of the claim's stems that the premise
            has; a change beyond it is left out.
        limit: only the first so many pairs of each file, for a trial.
    """

    pairs: list[str]
    edits: tuple[Edit, ...] = ("number", "value", "role", "negation")
    per_pair: int = 1
    margin: float = 0.05

    reads = ("pairs",)
    least: ClassVar = {"per_pair": 1}
    probabilities = ("margin",)

    def faults(self) -> Iterable[str]:
        if not self.edits:
            yield "edits: give at least one of number, value, role, negation"

    def files(self) -> dict[str, dict[str, str]]:
        return {"relation": {"train": "relation_train.jsonl"}}

    def make(self, work: Work) -> Made:
        read = [p for path in self.pairs for p in read_records(path, RelationPair)[: self.limit]]
        entailed = [pair for pair in read if pair.label == "entailment"]
        work.dropped["pair that is not entailed"] += len(read) - len(entailed)
        unique: dict[tuple[str, str], RelationPair] = {}
        for pair in entailed:
            unique.setdefault((pair.premise, pair.hypothesis), pair)
        work.dropped["pair that was there already"] += len(entailed) - len(unique)
        # Who does not play for Rome does not play for Oslo, either.
        plain = [pair for pair in unique.values() if not NEGATED.search(pair.hypothesis)]
        work.dropped["pair whose claim denies something"] += len(unique) - len(plain)
        beyond: Counter[Edit] = Counter()  # changes, of which a pair may have several
        found = list(self._rows(plain, work.dropped, beyond))
        if not found:
            raise UserError("pairs: none is entailed and can be changed within the margin")
        even = overlap_auroc(found)
        counts = Counter(pair.source for pair in found)
        rows = "\n".join(f"| `{name}` | {number} |" for name, number in sorted(counts.items()))
        card = Card(
            pretty_name="Entailed pairs and minimally changed ones",
            license="other",
            tags=("factuality", "nli", "contrast-set"),
            text=CARD.format(rows=rows, even=even),
        )
        tried = {"overlap_auroc": even, "changes_beyond_margin": dict(sorted(beyond.items()))}
        return Made({"relation_train.jsonl": found}, card, found=tried)

    def _rows(
        self, entailed: list[RelationPair], dropped: Counter[str], beyond: Counter[Edit]
    ) -> Iterator[RelationPair]:
        weight = stem_weights(pair.premise for pair in entailed)
        seen: set[tuple[str, str]] = {(pair.premise, pair.hypothesis) for pair in entailed}
        for pair in entailed:
            share = covered_share(pair.hypothesis, [pair.premise], weight)
            made = []
            for edit, text in self._changed(pair):
                near = abs(covered_share(text, [pair.premise], weight) - share) <= self.margin
                beyond[edit] += not near
                if near and (pair.premise, text) not in seen:
                    seen.add((pair.premise, text))
                    made.append(_row(pair, text, edit))
                if len(made) == self.per_pair:
                    break
            if not made:
                dropped["pair without a change"] += 1
                continue
            yield _row(pair, pair.hypothesis, None)
            yield from made

    def _changed(self, pair: RelationPair) -> Iterator[tuple[Edit, str]]:
        rng = random.Random(f"{self.seed}:{pair.premise}\0{pair.hypothesis}")
        for edit in rng.sample(self.edits, len(self.edits)):
            pieces = _EDITS[edit](pair.hypothesis, pair.premise, rng)
            text = pieces and "".join(part for part, _ in pieces)
            if text and text != pair.hypothesis:
                yield edit, text


def _row(pair: RelationPair, text: str, edit: Edit | None) -> RelationPair:
    label = "not_entailment" if edit else "entailment"
    # Only some sets name documents, by which rows stay on one side.
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
    """Another number of the premise: a year for a year, a day for a day, else one as long."""
    there = sorted({match[0] for match in _NUMBER.finditer(premise)})
    found = list(_NUMBER.finditer(claim))
    rng.shuffle(found)
    for match in found:
        start, end = match.span()
        if _BOUND.search(claim[:start]):
            continue
        year = bool(_YEAR.fullmatch(match[0]))
        day = not year and (
            _BESIDE_MONTH[0].search(claim[:start]) or _BESIDE_MONTH[1].match(claim[end:])
        )
        others = [
            number
            for number in there
            if number not in claim
            and bool(_YEAR.fullmatch(number)) == year
            and abs(len(number) - len(match[0])) <= 1
            and (not day or re.fullmatch(r"[1-9]|[12]\d|3[01]", number))
        ]
        if others:
            return [(claim[:start], True), (rng.choice(others), False), (claim[end:], True)]
    return None


def change_value(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """Another name of the premise, after the same preposition."""
    return swap_entity(claim, Setting(premise, entities(premise), Pool(), share_near=1.0), rng)


def change_roles(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """Two names of the claim in each other's place, where the order makes the difference."""
    found = [
        match
        for match in _NAME.finditer(claim)
        if match[0].split()[0] not in _NOT_NAMES
        # A first word has its capital anyway.
        and (match.start() or " " in match[0] or re.search(rf"[\w,;] {match[0]}\b", premise))
    ]
    pairs = [
        (left, right)
        for place, left in enumerate(found)
        for right in found[place + 1 :]
        if not set(left[0].split()) & set(right[0].split())
        and _differ(claim[left.end() : right.start()])
        and bool(_PLACED.search(claim, 0, left.start()))
        == bool(_PLACED.search(claim, 0, right.start()))
    ]
    if not pairs or _BOTH_WAYS.search(claim):
        return None
    left, right = rng.choice(pairs)
    between = claim[left.end() : right.start()]
    return [
        (claim[: left.start()], True),
        (right[0] + between + left[0], False),
        (claim[right.end() :], True),
    ]


def _differ(between: str) -> bool:
    told = set(re.findall(r"[a-z]{2,}", between.replace("'s", ""))) - _SAME
    return bool(told) and not re.search(r'[,()"“”]', between)


def deny(claim: str, premise: str, rng: random.Random) -> Pieces | None:
    """ "Not" or "never" behind an auxiliary of the main clause, where that contradicts."""
    pieces = negate(claim, Setting(premise, {}, Pool(), share_near=0.0), rng)
    if pieces is None:
        return None
    subject, _, _ = pieces[0][0].rpartition(" ")  # all that stands before the auxiliary
    return None if _LEAVES_OPEN.search(subject) else pieces


_EDITS: dict[Edit, Callable[[str, str, random.Random], Pieces | None]] = {
    "number": change_number,
    "value": change_value,
    "role": change_roles,
    "negation": deny,
}


CARD = """\
Entailed pairs (`hard/whole`) and the same with one change of the claim. Nobody judged them:
`hard/number` and `hard/value` have another number or name of the premise, in `hard/role` two names
change places (`not_entailment`), `hard/negation` is denied (`contradiction`). Some premises support
a changed claim all the same. `group` is that of the pair.

| source | rows |
|---|---|
{rows}

AUROC of entailment by the IDF-weighted share of a claim's stems that its premise has: {even} (0.5:
overlap says nothing). No entailed claim denies anything, so that "not" alone tells `hard/negation`:
train on them beside other pairs. The licence is that of the pairs.
"""
