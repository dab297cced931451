"""Judged claims of a text in one format, from a verifier, from the input file, or from people."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from eval.metrics.citations import CitedSentence, given_sentences, precision, recall
from eval.metrics.document import Scored, length_penalty
from records import Document, Verdict
from records.types import Record

Source = Literal["automatic", "file", "people"]
Name = Literal["independent", "grouped"]
Label = Literal["one person", "merged", "kept apart", "split", "nobody"]
TYPES: tuple[Label, ...] = ("one person", "merged", "kept apart", "split", "nobody")


class JudgedClaim(BaseModel):
    """A claim with its verdicts alone and within its person's group.

    Attributes:
        group: the person that the claim is about.
        entity: the title that the group is linked to.
        grouped: whether that person's passages support it; ``None``: not judged.
        independent: whether any passages support it (FActScore); ``None``: not judged.
        alone: the title that supports it when the claim is linked alone.
        failed: names of the failed verdicts.
    """

    text: str
    group: str | None = None
    entity: str | None = None
    grouped: bool | None = None
    independent: bool | None = None
    alone: str | None = None
    failed: list[Name] = []


class JudgedText(Record):
    """A text and its judged claims from one source.

    Attributes:
        responded: whether the text responds; ``None`` if the source has no claims for it.
        failed: number of sentences whose decomposition failed.
        citations: judged sentences with citations; ``None`` if not judged.
        titles: of its passages.
    """

    source: Source
    id: str
    topic: str
    generator: str
    responded: bool | None = True
    failed: int = 0
    claims: list[JudgedClaim]
    citations: list[CitedSentence] | None = None
    titles: list[str] = Field(default_factory=list)


# The values of one text


def failures(text: JudgedText, names: Sequence[Name]) -> int:
    """Count claims with a failed verdict among ``names``, and failed sentences."""
    return text.failed + sum(not set(names).isdisjoint(claim.failed) for claim in text.claims)


def ungrouped(text: JudgedText) -> int:
    """Count claims with unknown group."""
    return sum(claim.group is None and "grouped" in claim.failed for claim in text.claims)


def factual_precision(text: JudgedText, name: Name) -> float | None:
    """FActScore (``independent``) or D-FActScore (``grouped``) of a text, without length penalty.

    Supported claims / judged claims; 0 for a responding text without claims, ``None`` if the text
    does not respond or no claim could be judged.
    """
    if not text.responded:
        return None
    if not text.claims and not text.failed:
        return 0.0
    judged = [getattr(claim, name) for claim in text.claims if getattr(claim, name) is not None]
    return sum(judged) / len(judged) if judged else None


def gap(text: JudgedText) -> float | None:
    """FActScore - D-FActScore, over the claims that have both verdicts.

    For source ``file``, the difference of the two scores, whose claim lists differ.
    """
    if text.source != "file":
        both = [c for c in text.claims if c.independent is not None and c.grouped is not None]
        lost = text.failed + len(text.claims) - len(both)
        text = text.model_copy(update={"claims": both, "failed": lost})
    alone, linked = factual_precision(text, "independent"), factual_precision(text, "grouped")
    return None if alone is None or linked is None else alone - linked


def penalised(text: JudgedText, name: Name) -> float | None:
    """:func:`factual_precision` times FActScore's length penalty by the number of claims.

    Departure: the released code of D-FActScore uses the number of groups in the penalty.
    """
    value = factual_precision(text, name)
    return None if value is None else value * length_penalty(len(text.claims))


def biographies(text: JudgedText) -> int | None:
    """Number of groups, i.e. people (2402.05629: number of biographies).

    ``None`` if the group of a claim is unknown.
    """
    if ungrouped(text):
        return None
    groups = {claim.group for claim in text.claims if claim.group is not None}
    return len(groups) or None


def entities(text: JudgedText) -> int | None:
    """Number of distinct titles when claims are linked alone (2402.05629, appendix B.1)."""
    judged = any(claim.independent is not None for claim in text.claims)
    titles = {c.alone for c in text.claims if c.independent and c.alone is not None}
    return len(titles) if judged else None


def linked_people(text: JudgedText) -> int | None:
    """Number of distinct titles of the groups with supported claims; ``None`` if unknown."""
    judged = any(claim.grouped is not None for claim in text.claims)
    titles = {claim.entity for claim in text.claims if claim.grouped}
    known_titles = titles - {None}
    return len(known_titles) if judged and (known_titles or not titles) else None


def output_type(text: JudgedText) -> Label | None:
    """Classify a responding text by output type (2402.05629, section 2.4 and Table 2).

    - ``one person``: one biography supported by one person's passages;
    - ``merged``: one biography supported by several people's passages;
    - ``kept apart``: several biographies and several people.

    The paper's fourth type is a text that does not respond. Two types are not in the paper:
    ``split``, several biographies of one person, and ``nobody``, no claim is supported.
    """
    people_described, people_linked = biographies(text), entities(text)
    if people_described is None or people_linked is None:
        return None
    if people_linked == 0:
        return "nobody"
    if people_linked == 1:
        return "one person" if people_described == 1 else "split"
    return "merged" if people_described == 1 else "kept apart"


def main_person(text: JudgedText) -> str | None:
    """Return the title with most supported claims; the first of equals."""
    counts = Counter(c.entity for c in text.claims if c.grouped and c.entity is not None)
    return counts.most_common(1)[0][0] if counts else None


def citation_recall(text: JudgedText) -> float | None:
    """Recall over responding texts; for source ``file`` over non-empty texts, as in ALCE."""
    if text.citations is None or (not text.responded and text.source != "file"):
        return None
    return recall(text.citations)


def citation_precision(text: JudgedText) -> float | None:
    """Citation precision; ``None`` for source ``file``, which has no verdicts on citations."""
    if text.citations is None or not text.responded or text.source == "file":
        return None
    return precision(text.citations)


# Sources


def from_pipeline(scored: Scored, citations: list[CitedSentence] | None) -> JudgedText:
    """Convert the verdicts ``independent`` and ``grouped`` of a D-FActScore verifier."""
    document = scored.document
    by_name: dict[str, dict[str, Verdict]] = {"independent": {}, "grouped": {}}
    for verdict in scored.verdicts:
        if verdict.name in by_name:
            by_name[verdict.name][verdict.claim] = verdict
    claims = []
    for claim in scored.claims:
        if claim.failed is None:
            alone, linked = (by_name[name].get(claim.id) for name in ("independent", "grouped"))
            claims.append(
                JudgedClaim(
                    text=claim.text,
                    group=linked and linked.group,
                    entity=linked and linked.entity,
                    grouped=_supported(linked),
                    independent=_supported(alone),
                    alone=alone and alone.entity,
                    failed=[n for n in by_name if _failed(by_name[n].get(claim.id))],
                )
            )
    return JudgedText(
        source="automatic",
        **_shared(document),
        responded=bool(scored.scores),
        failed=sum(claim.failed is not None for claim in scored.claims),
        claims=claims,
        citations=citations,
        titles=list(dict.fromkeys(passage.title for passage in scored.passages if passage.title)),
    )


def _failed(verdict: Verdict | None) -> bool:
    return verdict is None or verdict.label == "failed"


def _supported(verdict: Verdict | None) -> bool | None:
    if verdict is None or verdict.label in ("failed", "irrelevant"):
        return None
    return verdict.label == "supported"


def atoms_fault(document: Document) -> str | None:
    """Return the error in AmbigBio's verdicts of a document, or ``None``."""
    for name in ("atoms_independent", "atoms_grouped"):
        atoms = (document.model_extra or {}).get(name) or []
        if not isinstance(atoms, list):
            return f"{name}: expected a list or null"
        for place, atom in enumerate(atoms):
            row = atom if isinstance(atom, dict) else {}
            topic = row.get("supporting_topic", 0)
            right = isinstance(row.get("atom"), str) and isinstance(row.get("is_supported"), bool)
            if not right or not isinstance(topic, str | None):
                fields = (
                    "atom (text), is_supported (true or false), supporting_topic (text or null)"
                )
                return f"{name}[{place}]: expected the fields {fields}"
    return None


def from_file(document: Document) -> JudgedText | None:
    """Convert the verdicts in AmbigBio's file (the authors' automatic D-FActScore), if any.

    The file has no groups. Claims of the two lists are aligned by text and order of occurrence. A
    text without a list does not respond.
    """
    extra = document.model_extra or {}
    has_atoms = "atoms_independent" in extra
    sentences = given_sentences(document)
    if not has_atoms and sentences is None:
        return None
    alone, grouped = extra.get("atoms_independent"), extra.get("atoms_grouped")
    fields: dict[tuple[str, int], dict] = {}
    for verdict, title, atoms in (("independent", "alone", alone), ("grouped", "entity", grouped)):
        times: Counter[str] = Counter()
        for atom in atoms or []:
            text = _plain(atom["atom"])
            update = {verdict: atom["is_supported"], title: atom["supporting_topic"]}
            fields.setdefault((text, times[text]), {"text": atom["atom"]}).update(update)
            times[text] += 1
    return JudgedText(
        source="file",
        **_shared(document),
        responded=isinstance(alone, list) if has_atoms else None,
        claims=[JudgedClaim(**update) for update in fields.values()],
        citations=sentences,
    )


def _shared(document: Document) -> dict:
    return {"id": document.id, "topic": document.topic, "generator": document.generator or "given"}


def _plain(text: str) -> str:
    return " ".join(text.split())


def matched(
    left: JudgedText, right: JudgedText
) -> tuple[list[tuple[JudgedClaim, JudgedClaim]], int]:
    """Pair claims of equal text; also return the number of unpaired claims of ``right``."""
    by_text = {_plain(claim.text): claim for claim in reversed(left.claims)}
    pairs = [(by_text[t], c) for c in right.claims if (t := _plain(c.text)) in by_text]
    return pairs, len(right.claims) - len(pairs)


def people_of(text: JudgedText) -> list[tuple[str, str | None, list[JudgedClaim]]]:
    """Return the groups of a text as (name, linked title, claims); without groups, by title."""
    groups: dict[str, list[JudgedClaim]] = {}
    for claim in text.claims:
        groups.setdefault(claim.group or claim.entity or "–", []).append(claim)
    return [(name, members[0].entity, members) for name, members in groups.items()]


def by_generator(texts: Sequence[JudgedText]) -> dict[str, list[JudgedText]]:
    """Group texts by generator, in order of first occurrence."""
    grouped: dict[str, list[JudgedText]] = {}
    for text in texts:
        grouped.setdefault(text.generator, []).append(text)
    return grouped
