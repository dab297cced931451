"""The values of the D-FActScore experiment, with bootstrap intervals over topics (names).

A result's ``kind`` is the source (``automatic``, ``file``, ``people``), and ``against`` the source
that the automatic verdicts are compared with.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from components.statistics import auroc, pearson, spearman
from eval.experiments.dfactscore.page_views import Views
from eval.experiments.quantities import Quantity, accuracy_of_classes, array, estimate, explode
from eval.metrics.judged_texts import (
    TYPES,
    JudgedClaim,
    JudgedText,
    Name,
    biographies,
    by_generator,
    citation_precision,
    citation_recall,
    entities,
    factual_precision,
    failures,
    gap,
    linked_people,
    main_person,
    matched,
    output_type,
    penalised,
    ungrouped,
)

ALL = "all"
# Metric and variant.
Measure = tuple[str, str | None]


class TextValue(NamedTuple):
    """The value of a text (``None`` excludes it) and its number of failures."""

    value: Callable[[JudgedText], float | None]
    failed: Callable[[JudgedText], int]


def _fails(*names: Name) -> Callable[[JudgedText], int]:
    return lambda text: failures(text, names)


def _failed_citations(text: JudgedText) -> int:
    return sum(sentence.failed for sentence in text.citations or [])


def _is_type(kind: str) -> Callable[[JudgedText], float | None]:
    def value(text: JudgedText) -> float | None:
        type_of_text = output_type(text) if text.responded else None
        return None if type_of_text is None else float(type_of_text == kind)

    return value


def _responding(value: Callable[[JudgedText], float | None]) -> Callable:
    return lambda text: value(text) if text.responded else None


FACTSCORE: Measure = ("factual_precision", "independent")
D_FACTSCORE: Measure = ("factual_precision", "grouped")
GAP: Measure = ("gap", None)
LINKED: Measure = ("linked_people", None)
VALUES: dict[Measure, TextValue] = {
    FACTSCORE: TextValue(lambda t: factual_precision(t, "independent"), _fails("independent")),
    D_FACTSCORE: TextValue(lambda t: factual_precision(t, "grouped"), _fails("grouped")),
    GAP: TextValue(gap, _fails("independent", "grouped")),
    ("factscore", "independent"): TextValue(
        lambda t: penalised(t, "independent"), _fails("independent")
    ),
    ("factscore", "grouped"): TextValue(lambda t: penalised(t, "grouped"), _fails("grouped")),
    ("biographies", None): TextValue(_responding(biographies), lambda t: t.failed + ungrouped(t)),
    ("entities", None): TextValue(_responding(entities), _fails("independent")),
    LINKED: TextValue(_responding(linked_people), _fails("grouped")),
    ("claims", None): TextValue(_responding(lambda t: len(t.claims)), _fails()),
    ("respond_ratio", None): TextValue(lambda t: t.responded, lambda t: 0),
    ("citation_recall", None): TextValue(citation_recall, _failed_citations),
    ("citation_precision", None): TextValue(citation_precision, _failed_citations),
    **{
        ("output_type", name): TextValue(_is_type(name), _fails("independent", "grouped"))
        for name in TYPES
    },
}
# Measures whose values per text are compared between sources.
COMPARED = (
    FACTSCORE,
    D_FACTSCORE,
    GAP,
    ("biographies", None),
    ("entities", None),
    LINKED,
    ("citation_recall", None),
)
_VERDICTS: tuple[Name, ...] = ("independent", "grouped")
# Two sources of verdicts on the same text: ours and theirs.
Pairs = Sequence[tuple[JudgedText, JudgedText]]


def compute_values(texts: Sequence[JudgedText], views: Views | None, seed: int) -> list[dict]:
    """Compute the fields of the results, without shared fields."""
    sources = {
        name: [t for t in texts if t.source == name] for name in ("automatic", "file", "people")
    }
    rows = [row for name, group in sources.items() for row in _means(name, group, seed)]
    automatic = {text.id: text for text in sources["automatic"]}
    for name in ("file", "people"):
        both = [text for text in sources[name] if text.id in automatic]
        if both and len(both) < len(automatic):
            ours = [automatic[text.id] for text in both]
            rows += _means(f"automatic on {name}'s texts", ours, seed)
        for generator, part in _parts(both):
            pairs = [(automatic[text.id], text) for text in part]
            shared = {"kind": "automatic", "generator": generator, "against": name}
            rows += [row for row in _comparison(shared, pairs, seed) if row["value"] is not None]
    if views is not None:
        rows += _views(sources["automatic"], views, seed)
    return rows


def _parts(texts: Sequence[JudgedText]) -> Iterator[tuple[str, list[JudgedText]]]:
    parts = by_generator(texts)
    yield from parts.items()
    if len(parts) > 1:
        yield ALL, list(texts)


def _named(measure: Measure, **more: object) -> dict:
    return {"metric": measure[0], "variant": measure[1], **more}


def _means(kind: str, texts: Sequence[JudgedText], seed: int) -> Iterator[dict]:
    # Some released files have no titles after grouping; without a title, people were not linked.
    linked = {t.generator for t in texts if any(c.entity is not None for c in t.claims)}
    for generator, part in _parts(texts):
        quantities = []
        for measure, (value, failed) in VALUES.items():
            column = array(map(value, part))
            if measure == LINKED:
                column[[text.generator not in linked for text in part]] = np.nan
            fields = _named(measure, kind=kind, generator=generator)
            quantities.append(Quantity(fields, [column], failed=sum(map(failed, part))))
        for row in estimate(quantities, [text.topic for text in part], seed):
            if row["value"] is not None or (row["failed"] and kind == "automatic"):
                yield row


def _comparison(shared: Mapping[str, str], pairs: Pairs, seed: int) -> Iterator[dict]:
    """Compare the automatic verdicts with a source's.

    - ``balanced_accuracy``, variants ``independent`` and ``grouped``: over verdicts on claims;
      claims without an automatic verdict count as failed. ``several_people``: over texts, whether
      the supported claims have more than one title.
    - ``linked_alike``: share of the source's supported claims with the same title here; claims
      without an automatic verdict count as failed.
    - ``pearson_of_…``, ``spearman_of_…``: over the values per text.
    - ``citation_auroc``, ``citation_accuracy``: over the sentences' citations.
    """
    topics = [theirs.topic for _, theirs in pairs]
    claims = [matched(*pair) for pair in pairs]
    for name in _VERDICTS:
        verdicts = [[(getattr(t, name), getattr(m, name)) for m, t in both] for both, _ in claims]
        due = [[pair for pair in listed if pair[0] is not None] for listed in verdicts]
        failed = sum(ours is None for listed in due for _, ours in listed)
        failed += sum(unmatched for _, unmatched in claims)
        fields = _named(("balanced_accuracy", name), **shared)
        columns, units = explode(due, topics, 2)
        yield from estimate([Quantity(fields, columns, accuracy_of_classes, failed)], units, seed)
    yield from estimate([_several_people(shared, pairs)], topics, seed)
    alike = [
        [(m.entity == t.entity,) for m, t in both if m.grouped is not None and _is_linked(t)]
        for both, _ in claims
    ]
    failed = sum(map(_is_linked, (c for _, theirs in pairs for c in theirs.claims)))
    failed -= sum(map(len, alike))
    columns, units = explode(alike, topics, 1)
    fields = _named(("linked_alike", None), **shared)
    yield from estimate([Quantity(fields, columns, failed=failed)], units, seed)
    sides = {
        m: [array(map(VALUES[m].value, s)) for s in zip(*pairs, strict=True)] for m in COMPARED
    }
    correlations = [
        Quantity(_named((f"{name}_of_{metric}", variant), **shared), columns, correlation)
        for (metric, variant), columns in sides.items()
        for name, correlation in (("pearson", pearson), ("spearman", spearman))
    ]
    yield from estimate(correlations, topics, seed)
    (theirs, ours, p), units = explode([_sentences(*pair) for pair in pairs], topics, 3)
    cited = [s for ours, theirs in pairs if theirs.citations for s in ours.citations or []]
    failed = sum(sentence.recalled is None for sentence in cited)
    fields = [_named((name, None), **shared) for name in ("citation_auroc", "citation_accuracy")]
    alike = np.where(np.isnan(p), np.nan, theirs == ours)
    auc = Quantity(fields[0], (p, theirs), auroc, failed)
    yield from estimate([auc, Quantity(fields[1], [alike], failed=failed)], units, seed)


def _is_linked(claim: JudgedClaim) -> bool:
    return claim.grouped is True and claim.entity is not None


def _several_people(shared: Mapping[str, str], pairs: Pairs) -> Quantity:
    counts = [[linked_people(text) for text in (theirs, ours)] for ours, theirs in pairs]
    columns = array(counts).T
    columns = np.where(np.isnan(columns), np.nan, columns > 1)
    fields = _named(("balanced_accuracy", "several_people"), **shared)
    return Quantity(fields, columns, accuracy_of_classes)


def _sentences(ours: JudgedText, theirs: JudgedText) -> list[tuple[bool, bool, float]]:
    """Return their decision, our decision and our probability of each sentence."""
    if ours.citations is None or theirs.citations is None:
        return []
    pairs = zip(ours.citations, theirs.citations, strict=True)
    return [
        (t.recalled is True, m.recalled is True, m.p)
        for m, t in pairs
        if m.p is not None and m.text
    ]


def _views(texts: Sequence[JudgedText], views: Views, seed: int) -> Iterator[dict]:
    """Analyse page views (section 5.3).

    Over texts with one biography and at least two retrieved people with page views:

    - ``most_viewed``: share whose person (the title with most supported claims) has the most-viewed
      page; ``most_viewed_by_chance``: the chance level.

    Our additions, over all texts with a person:

    - ``views_of_the_person``: mean of log10(1 + views) of the main person's page.
    - ``spearman_of_…``: correlation of D-FActScore, and of FActScore - D-FActScore, with it.
    """
    for generator, part in _parts([text for text in texts if text.responded]):
        people = [(main_person(text), views.candidates(text)) for text in part]
        described = list(map(biographies, part))
        single = [p if n == 1 else (None, []) for n, p in zip(described, people, strict=True)]
        # The generator has a choice if it describes one of several retrieved people.
        choices = sum(
            n in (1, None) and len(pages) > 1
            for n, (_, pages) in zip(described, people, strict=True)
        )
        first = array(views.is_first(*person) for person in single)
        chance = array(views.chance(*person) for person in single)
        seen = array(views.logarithm(title) for title, _ in people)
        unchosen = choices - int((~np.isnan(first)).sum())
        shared = {"kind": "automatic", "generator": generator}
        quantities = [
            Quantity(_named(("most_viewed", None), **shared), [first], failed=unchosen),
            Quantity(_named(("most_viewed_by_chance", None), **shared), [chance], failed=unchosen),
        ]
        for (metric, variant), columns, statistic in (
            (("views_of_the_person", None), [seen], None),
            *(
                ((f"spearman_of_{m[0]}", m[1]), [seen, array(map(VALUES[m].value, part))], spearman)
                for m in (D_FACTSCORE, GAP)
            ),
        ):
            # Texts without views of the person, or without a value.
            failed = int(np.isnan(np.stack(columns)).any(axis=0).sum())
            fields = _named((metric, variant), **shared)
            fields |= {"against": "views"} if statistic else {}
            quantities.append(Quantity(fields, columns, statistic, failed))
        rows = estimate(quantities, [text.topic for text in part], seed)
        yield from (row for row in rows if row["value"] is not None)
