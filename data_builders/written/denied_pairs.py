"""``denied_pairs``: evidence that denies what a statement affirms, with true twins.

Models that were trained on statements that evidence states take evidence that denies them, refuses
or retracts them for support, since it has the same words. In each pair of a premise and an entailed
statement, the sentences that state it are replaced by one that denies or affirms it.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from components.overlap import covered_share, stem_weights
from components.sentences import split_sentences
from data_builders.builder import Builder, Made, Work
from data_builders.evenness import pair_card
from data_builders.written.attacks.phrases import phrases
from data_builders.written.claims.clauses import capitalise, mid_sentence, strip_period
from data_builders.written.distant_lss.transform import NEGATED
from records import RelationPair, UserError, group_of, read_records

STATES = 0.6  # share of a statement's stems in a sentence that is taken to state it
ALONE = 0.4  # share of the premises that are only the denial
# Words before or after a verb that change what a negation denies.
_SCOPE = re.compile(r"\b(?:who|which|that|whose|when|while|if|because|although|may|might|only)\b")
_COPULA = re.compile(r"(?P<s>[^,;:()]{2,60}?) (?P<be>is|was) (?P<rest>[^;:]+)")


class Forms(NamedTuple):
    """A sentence that denies a statement, one that affirms it, and a statement that denies it.

    ``contradicted`` is false if evidence was only withdrawn.
    """

    denied: str
    affirmed: str
    negation: str | None
    contradicted: bool


@dataclass
class DeniedPairs(Builder):
    """Entailed pairs whose evidence now denies the statement, with twins that affirm it.

    Args:
        pairs: files of relation pairs, or of a supported project's format; only pairs with label
            ``entailment`` are used, and others with the same premise as further denied statements.
        share: share of the entailed pairs that are used.
    """

    pairs: list[str]
    share: float = 0.25

    reads = ("pairs",)
    probabilities = ("share",)

    def files(self) -> dict[str, dict[str, str]]:
        return {"relation": {"train": "relation_train.jsonl"}}

    def make(self, work: Work) -> Made:
        files = [read_records(path, RelationPair)[: self.limit] for path in self.pairs]
        written = self._rows([pair for pairs in files for pair in pairs], work.dropped)
        unique = {(pair.premise, pair.hypothesis): pair for pair in written}
        rows = list(unique.values())
        if not rows:
            raise UserError("pairs: no entailed statement has a verb that can be denied")
        card, details = pair_card("denied_pairs", rows)
        return Made({"relation_train.jsonl": rows}, card, details=details)

    def _rows(self, pairs: list[RelationPair], dropped: Counter[str]) -> Iterator[RelationPair]:
        weight = stem_weights(pair.premise for pair in pairs)
        unsupported = defaultdict(list)
        for pair in pairs:
            if pair.label != "entailment":
                unsupported[pair.premise].append(pair.hypothesis)
        for pair in pairs:
            rng = random.Random(f"{self.seed}:{pair.premise}\0{pair.hypothesis}")
            if pair.label != "entailment" or rng.random() >= self.share:
                continue
            forms = denials_of(pair.hypothesis, rng)
            if forms is None:
                dropped["statement without a verb that can be denied"] += 1
                continue
            sentences = split_sentences(pair.premise)
            states = [covered_share(pair.hypothesis, [s], weight) >= STATES for s in sentences]
            is_alone = not any(states) or rng.random() < ALONE
            for evidence, supports in ((forms.denied, False), (forms.affirmed, True)):
                premise = evidence if is_alone else _replaced(sentences, states, evidence)
                label = "contradiction" if forms.contradicted else "not_entailment"
                label = "entailment" if supports else label
                yield _row(
                    pair, premise, pair.hypothesis, label, "affirmed" if supports else "denied"
                )
                if forms.negation and rng.random() < 0.5:
                    label = "contradiction" if supports else "entailment"
                    yield _row(pair, premise, forms.negation, label, "negation")
            texts = [text for text in unsupported[pair.premise] if not NEGATED.search(text)]
            false_forms = denials_of(rng.choice(texts), rng) if texts else None
            if false_forms:
                premise = f"{pair.premise} {false_forms.denied}"
                yield _row(pair, premise, pair.hypothesis, "entailment", "another denied")


def denials_of(statement: str, rng: random.Random) -> Forms | None:
    """Forms of a statement in one clause; ``None`` if no rule reads it."""
    text = strip_period(statement)
    if NEGATED.search(text) or _SCOPE.search(text):
        return None
    bank, verbs = _denials(), _denials()["verbs"]
    if rng.random() < 0.3:
        slots, kind = {"p": mid_sentence(text)}, "clause"
    elif match := _verb_pattern().match(text):
        slots, kind = match.groupdict() | {"base": verbs[match["past"]]}, "verb"
    elif match := _COPULA.match(text):
        slots, kind = match.groupdict(), "copula"
    else:
        return None
    sides = []
    for side, twin in (("denied", "seen"), ("affirmed", "true_seen")):
        templates = bank[kind][side].splitlines()
        if kind == "clause":
            templates += [t for t in _frames(twin) if "{p}" in t]
        sides.append(_filled(rng.choice(templates), slots))
    if kind == "clause":
        return Forms(*sides, None, contradicted=False)
    template = rng.choice(bank[kind]["hypothesis"].splitlines())
    return Forms(*sides, _filled(template, slots), contradicted=True)


def _filled(template: str, slots: dict[str, str]) -> str:
    inner = slots | ({"s": mid_sentence(slots["s"])} if "s" in slots else {})
    return capitalise(template.format(**inner))


@cache
def _denials() -> dict:
    return yaml.safe_load(Path(__file__).with_name("denials.yaml").read_text("utf-8"))


@cache
def _verb_pattern() -> re.Pattern:
    verbs = "|".join(_denials()["verbs"])
    subject = r"(?:(?!\b(?:is|was|were|are|be|had|has|have|to|by|as)\b)[^,;:()]){2,60}?"
    rest = rf"(?:(?! and (?:{verbs}|was|is|had)\b)[^;:])+"
    return re.compile(rf"(?P<s>{subject}) (?P<past>{verbs}) (?P<rest>{rest})$")


def _frames(bank: str) -> list[str]:
    kinds = ("denied", "refuted")
    return [t for kind in kinds for t in phrases(kind, bank) if "{w}" not in t and "{X}" not in t]


def _replaced(sentences: Sequence[str], states: Sequence[bool], evidence: str) -> str:
    """The sentences with the first that states it replaced by ``evidence``, the others removed."""
    first = states.index(True)
    kept = [
        evidence if index == first else sentence
        for index, (sentence, is_stated) in enumerate(zip(sentences, states, strict=True))
        if index == first or not is_stated
    ]
    return " ".join(kept)


def _row(pair: RelationPair, premise: str, text: str, label: str, kind: str) -> RelationPair:
    return RelationPair(
        premise=premise,
        hypothesis=text,
        label=label,
        source=f"denied/{kind}",
        group=group_of(pair),
    )
