"""How far annotators agree: identical LSS of two and of three, weighted kappa of the ratings.

2308.12157, section 4.1, reports of triples how many are all the same, have two the same, or are all
different (Table 1), and the quadratic weighted kappa. Here every two annotations of the same pair
are compared as well. Where annotators have no names, the first, second, … annotation of a pair
stand for them; the table says so, and the pooled kappa, which needs no names, is then the one to
read.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations

import numpy as np

from components.statistics import kappa
from components.words import align, split_words
from data_builders.annotated.lss.votes import is_adjudicated
from records import Annotation, LssExample

LEVELS = 5
# Table 1's rows, by how many different texts three annotators wrote.
CASES = {1: "all_same", 2: "two_same", 3: "all_different"}
# A kappa of two people from fewer pairs than this is noise and is left out of the mean.
LEAST = 10


def agreement(examples: Sequence[LssExample]) -> dict:
    """The table of agreement of all pairs with two annotations or more.

    Returns:
        ``pairs`` and ``comparisons``; ``pairs_by_annotations``, of all pairs; ``triples``: of the
        pairs with three annotations the shares of Table 1, letter by letter and by their words;
        shares of identical LSS and LSS* (``identical``: the same words whatever their case and
        marks; ``identical_text``: letter by letter); ``words_alike``: mean share of a claim's words
        that aligned LSS of two people both keep or both drop; of the ratings the share that is
        identical, that is at most 1 apart, ``kappa_pooled``, and ``kappa_mean`` over
        ``by_annotators`` weighted by their comparisons. ``None`` where there is nothing to compare.
    """
    independent = [_independent(example) for example in examples]
    several = [e for e in independent if len(e.annotations) > 1]
    sizes = Counter(len(e.annotations) for e in independent)
    named = all((a.model_extra or {}).get("annotator") for e in several for a in e.annotations)
    compared = [
        (one, other)
        for e in several
        for one, other in combinations(_named(e, named), 2)
        if one[0] != other[0]  # whoever answered twice is not compared with themselves
    ]
    rated: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for two in compared:
        (one, first), (other, second) = sorted(two, key=lambda entry: entry[0])
        if first.rating is not None and second.rating is not None:
            rated[one, other].append((_level(first.rating), _level(second.rating)))
    ratings = [pair for pairs in rated.values() for pair in pairs]
    people = [
        {"annotators": list(who), "comparisons": len(pairs), "kappa": _kappa_of(pairs)}
        for who, pairs in sorted(rated.items())
    ]
    counted = [p for p in people if p["comparisons"] >= LEAST and p["kappa"] is not None]
    return {
        "pairs": len(several),
        "pairs_by_annotations": {str(size): n for size, n in sorted(sizes.items())},
        "comparisons": len(compared),
        "triples": {field: _triples(several, field) for field in ("lss", "lss_star")},
        "annotators": "by name" if named else "by place in the row",
        "lss": {**_identical(compared, "lss"), "words_alike": _words_alike(several, named)},
        "lss_star": _identical(compared, "lss_star"),
        "rating": {
            "comparisons": len(ratings),
            "identical": _share([a == b for a, b in ratings]),
            "within_1": _share([abs(a - b) <= 1 for a, b in ratings]),
            # Nobody is first: each comparison counts both ways round.
            "kappa_pooled": _kappa_of(ratings + [(b, a) for a, b in ratings]),
            "kappa_mean": _mean(counted),
            "by_annotators": people,
        },
    }


def _independent(example: LssExample) -> LssExample:
    own = [a for a in example.annotations if not is_adjudicated(a)]
    return example.model_copy(update={"annotations": own})


def _triples(examples: Sequence[LssExample], field: str) -> dict:
    """Table 1 of the texts of a field: of letters as they stand, and of words alone."""
    triples = [[getattr(a, field) for a in e.annotations] for e in examples]
    triples = [texts for texts in triples if len(texts) == 3 and None not in texts]
    alike: dict[str, Callable[[str], Hashable]] = {
        "letters": lambda text: " ".join(text.split()),
        "words": lambda text: tuple(_plain(text)),
    }
    found: dict[str, object] = {"pairs": len(triples)}
    for name, form in alike.items():
        cases = Counter(len({form(text) for text in texts}) for texts in triples)
        shares = {case: cases[size] / len(triples) for size, case in CASES.items() if triples}
        found[name] = {case: round(share, 4) for case, share in shares.items()}
    return found


def _words_alike(examples: Sequence[LssExample], named: bool) -> float | None:
    shares = []
    for example in examples:
        words = split_words(example.claim)
        kept = [(who, align(a.lss, words)) for who, a in _named(example, named)]
        for (one, left), (other, right) in combinations([k for k in kept if k[1] is not None], 2):
            if one != other:
                shares.append(sum(a == b for a, b in zip(left, right, strict=True)) / len(words))
    return round(sum(shares) / len(shares), 4) if shares else None


def _named(example: LssExample, named: bool) -> list[tuple[str, Annotation]]:
    return [
        (str(a.model_extra["annotator"]) if named else f"annotation {place}", a)
        for place, a in enumerate(example.annotations, 1)
    ]


def _identical(compared: Sequence[tuple], field: str) -> dict:
    texts = [(getattr(a, field), getattr(b, field)) for (_, a), (_, b) in compared]
    texts = [two for two in texts if None not in two]
    return {
        "comparisons": len(texts),
        "identical": _share([_plain(a) == _plain(b) for a, b in texts]),
        "identical_text": _share([a == b for a, b in texts]),
    }


def _plain(text: str) -> list[str]:
    return [word.text.lower() for word in split_words(text) if word.text[0].isalnum()]


def _level(rating: float) -> int:
    return min(LEVELS, max(1, round(rating)))


def _kappa_of(pairs: Sequence[tuple[int, int]]) -> float | None:
    table = np.zeros((LEVELS, LEVELS))
    for first, second in pairs:
        table[first - 1, second - 1] += 1
    value = kappa(table)
    return None if math.isnan(value) else round(value, 4)


def _share(flags: Sequence[bool]) -> float | None:
    return round(sum(flags) / len(flags), 4) if flags else None


def _mean(people: Sequence[dict]) -> float | None:
    total = sum(p["comparisons"] for p in people)
    return round(sum(p["kappa"] * p["comparisons"] for p in people) / total, 4) if total else None


def as_markdown(table: dict) -> str:
    """The table for the card."""
    rows = [
        (name, part["comparisons"], part["identical"], part["identical_text"])
        for name, part in (("LSS", table["lss"]), ("LSS*", table["lss_star"]))
    ]
    lines = ["| | comparisons | identical words | identical letters |", "|---|---|---|---|"]
    lines += [f"| {name} | {n} | {_shown(a)} | {_shown(b)} |" for name, n, a, b in rows]
    lines += ["", "| three annotators | pairs | all same | two same | all different |"]
    lines += ["|---|---|---|---|---|"]
    for name, field in (("LSS", "lss"), ("LSS*", "lss_star")):
        own = table["triples"][field]
        for form in ("letters", "words"):
            shares = [_shown(own[form].get(case)) for case in CASES.values()]
            lines.append(f"| {name}, {form} | {own['pairs']} | {' | '.join(shares)} |")
    rating = table["rating"]
    return "\n".join(
        [
            *lines,
            "",
            f"On {_shown(table['lss']['words_alike'])} of a claim's words two LSS agree. Ratings: "
            f"{rating['comparisons']} comparisons, identical {_shown(rating['identical'])}, "
            f"at most 1 apart {_shown(rating['within_1'])}; quadratic weighted kappa, pooled "
            f"{_shown(rating['kappa_pooled'])}, mean of annotators ({table['annotators']}) "
            f"{_shown(rating['kappa_mean'])}.",
        ]
    )


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
