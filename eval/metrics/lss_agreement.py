"""Inter-annotator agreement: identical LSS of two and of three, weighted kappa of ratings.

2308.12157, section 4.1, reports for triples the shares of all the same, two the same and all
different (Table 1), and quadratic weighted kappa. All pairs of annotations are compared as well. If
annotators have no names, the position of the annotation replaces the name; the table states this,
and only the pooled kappa, which needs no names, is then meaningful.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from pydantic import ValidationError

from components.statistics import kappa
from components.words import align, split_words
from records import Annotation, BadInput, LssExample, iter_rows, to_bad_input
from records.formats.lss import published_answer

Pair = tuple[str, str]
Repeats = Literal["latest", "all"]

LEVELS = 5
# Table 1's rows, by how many different texts three annotators wrote.
CASES = {1: "all_same", 2: "two_same", 3: "all_different"}
MIN_COMPARISONS = 10  # kappas of two annotators from fewer pairs are excluded from the mean


def read_published_table(path: str) -> Iterator[LssExample]:
    """Read ``LSS_test.csv`` of facebookresearch/lss_eval: one record per answer."""
    for number, row in iter_rows(path):
        try:
            yield LssExample.model_validate(published_answer(row))
        except ValidationError as error:
            raise to_bad_input(f"{path}:{number}", error) from None
        except ValueError as error:
            raise BadInput([f"{path}:{number}: {error}"]) from None


def pair_of(example: LssExample) -> Pair:
    """Return the key of a pair: reference and claim with normalized whitespace."""
    return " ".join(example.reference.split()), " ".join(example.claim.split())


def merge(
    examples: Iterable[LssExample], dropped: Counter[str], repeats: Repeats = "latest"
) -> list[LssExample]:
    """Merge records into one per pair, in the order of first occurrence, with all annotations.

    ``repeats`` keeps the ``latest`` answer of a named annotator to a pair, or ``all``.
    """
    merged: dict[Pair, LssExample] = {}
    for example in examples:
        pair = pair_of(example)
        first = merged.get(pair)
        annotations = list(first.annotations) if first else []
        for annotation in example.annotations:
            name = (annotation.model_extra or {}).get("annotator") if repeats == "latest" else None
            same = [
                a for a in annotations if name and (a.model_extra or {}).get("annotator") == name
            ]
            dropped["annotation replaced by a later one"] += len(same)
            annotations = [a for a in annotations if a not in same] + [annotation]
        merged[pair] = (first or example).model_copy(update={"annotations": annotations})
    return list(merged.values())


def is_adjudicated(annotation: Annotation) -> bool:
    """Whether an annotation overrides the others."""
    return bool((annotation.model_extra or {}).get("adjudicated"))


def agreement(examples: Sequence[LssExample]) -> dict:
    """Compute agreement over the pairs with two or more annotations.

    Returns:
        ``pairs``, ``comparisons``, ``pairs_by_annotations``; ``triples``: the shares of Table 1 by
        letters and by words; shares of identical LSS and LSS* (``identical``: same words, ignoring
        case and punctuation; ``identical_text``: same letters); ``words_alike``: mean share of
        words that two aligned LSS both keep or both drop; for ratings the shares that are identical
        and at most 1 apart, ``kappa_pooled``, and ``kappa_mean`` over ``by_annotators`` weighted by
        comparisons. ``None`` if there is nothing to compare.
    """
    own_answers = [[a for a in e.annotations if not is_adjudicated(a)] for e in examples]
    sizes = Counter(map(len, own_answers))
    several = [
        example.model_copy(update={"annotations": answers})
        for example, answers in zip(examples, own_answers, strict=True)
        if len(answers) > 1
    ]
    named = all((a.model_extra or {}).get("annotator") for e in several for a in e.annotations)
    compared = [
        (left, right)
        for e in several
        for left, right in combinations(_by_annotator(e, named), 2)
        if left[0] != right[0]
    ]
    rated: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for pair in compared:
        (left, first), (right, second) = sorted(pair, key=lambda entry: entry[0])
        if first.rating is not None and second.rating is not None:
            rated[left, right].append((_level(first.rating), _level(second.rating)))
    ratings = [numbers for pairs in rated.values() for numbers in pairs]
    people = [
        {"annotators": list(names), "comparisons": len(pairs), "kappa": _kappa_of(pairs)}
        for names, pairs in sorted(rated.items())
    ]
    counted = [p for p in people if p["comparisons"] >= MIN_COMPARISONS and p["kappa"] is not None]
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
            # Annotators are not ordered: each comparison counts in both directions.
            "kappa_pooled": _kappa_of(ratings + [(b, a) for a, b in ratings]),
            "kappa_mean": _mean(counted),
            "by_annotators": people,
        },
    }


def _triples(examples: Sequence[LssExample], field: str) -> dict:
    triples = [[getattr(a, field) for a in e.annotations] for e in examples]
    triples = [texts for texts in triples if len(texts) == 3 and None not in texts]
    alike: dict[str, Callable[[str], Hashable]] = {
        "letters": lambda text: " ".join(text.split()),
        "words": lambda text: tuple(_words(text)),
    }
    table: dict[str, object] = {"pairs": len(triples)}
    for name, form in alike.items():
        cases = Counter(len({form(text) for text in texts}) for texts in triples)
        shares = {case: cases[size] / len(triples) for size, case in CASES.items() if triples}
        table[name] = {case: round(share, 4) for case, share in shares.items()}
    return table


def _words_alike(examples: Sequence[LssExample], named: bool) -> float | None:
    shares = []
    for example in examples:
        words = split_words(example.claim)
        kept = [(name, align(a.lss, words)) for name, a in _by_annotator(example, named)]
        for (first, left), (second, right) in combinations(
            [k for k in kept if k[1] is not None], 2
        ):
            if first != second:
                shares.append(sum(a == b for a, b in zip(left, right, strict=True)) / len(words))
    return round(sum(shares) / len(shares), 4) if shares else None


def _by_annotator(example: LssExample, named: bool) -> list[tuple[str, Annotation]]:
    return [
        (str(a.model_extra["annotator"]) if named else f"annotation {place}", a)
        for place, a in enumerate(example.annotations, 1)
    ]


def _identical(compared: Sequence[tuple], field: str) -> dict:
    texts = [(getattr(a, field), getattr(b, field)) for (_, a), (_, b) in compared]
    texts = [pair for pair in texts if None not in pair]
    return {
        "comparisons": len(texts),
        "identical": _share([_words(a) == _words(b) for a, b in texts]),
        "identical_text": _share([a == b for a, b in texts]),
    }


def _words(text: str) -> list[str]:
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
    """Format the agreement table for the card."""
    rows = [
        (name, part["comparisons"], part["identical"], part["identical_text"])
        for name, part in (("LSS", table["lss"]), ("LSS*", table["lss_star"]))
    ]
    lines = ["| | comparisons | identical words | identical letters |", "|---|---|---|---|"]
    lines += [f"| {name} | {n} | {_number(a)} | {_number(b)} |" for name, n, a, b in rows]
    lines += ["", "| three annotators | pairs | all same | two same | all different |"]
    lines += ["|---|---|---|---|---|"]
    for name, field in (("LSS", "lss"), ("LSS*", "lss_star")):
        triples = table["triples"][field]
        for form in ("letters", "words"):
            shares = [_number(triples[form].get(case)) for case in CASES.values()]
            lines.append(f"| {name}, {form} | {triples['pairs']} | {' | '.join(shares)} |")
    rating = table["rating"]
    return "\n".join(
        [
            *lines,
            "",
            f"Two LSS agree on {_number(table['lss']['words_alike'])} of a claim's words. Ratings: "
            f"{rating['comparisons']} comparisons, identical {_number(rating['identical'])}, "
            f"at most 1 apart {_number(rating['within_1'])}; quadratic weighted kappa, pooled "
            f"{_number(rating['kappa_pooled'])}, mean of annotators ({table['annotators']}) "
            f"{_number(rating['kappa_mean'])}.",
        ]
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
