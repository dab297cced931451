"""Conversions that format declarations name: values that paths cannot describe."""

import ast
import hashlib
import json
import re
from collections.abc import Callable, Mapping

from records.formats import ambigbio, lss, nested

# The bins of FActScore's ``cat``, in the spellings of FActScore and FactReasoner.
_FREQUENCIES = {"very rare", "rare", "medium", "frequent", "very frequent", "freq", "very freq"}
# Prompts of FActScore, HALoGEN and AmbigBio.
_BIOGRAPHY = re.compile(
    r"Question: Tell me a bio of (.+?)\.?|Tell me a (?:bio|biography) of\s+(.+?)\s*", re.DOTALL
)
# One file of HALoGEN has all its topics in quotation marks.
_QUOTED = re.compile(r"""\s*(['"])\s*(.+?)\s*\1\s*""")
_PRONOUN = re.compile(r"\b(?:([Hh]e|[Ss]he)|([Hh]is|[Hh]er))\b")
_EVIDENCE_WORDS = 200  # of a WiCE claim
_BY_SEVERITY = ("consistent", "benign", "questionable", "unwanted")  # FaithBench


def short_hash(text: str) -> str:
    """Return a short name that depends only on the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def name_of_prompt(prompt: object) -> object:
    """Return the name in a biography prompt (``Tell me a bio of …``), else the prompt."""
    match = isinstance(prompt, str) and _BIOGRAPHY.fullmatch(prompt)
    return match[1] or match[2] if match else prompt


def frequency_bin(cat: object) -> str | None:
    """Return the frequency bin in FActScore's ``cat``."""
    return next((name for name in _names(cat) if name in _FREQUENCIES), None)


def group_of_cat(cat: object) -> str | None:
    """Return the group in FActScore's ``cat``."""
    return next((name for name in _names(cat) if name not in _FREQUENCIES), None)


def _names(cat: object) -> list:
    return cat if isinstance(cat, list) else [cat] if isinstance(cat, str) else []


def _unquoted(topic: object) -> object:
    match = isinstance(topic, str) and _QUOTED.fullmatch(topic)
    return match[2] if match else topic


def _worst(labels: list[str] | str | None) -> str | None:
    if labels is None:
        return None
    listed = [labels] if isinstance(labels, str) else labels
    words = {label.split(".")[0].lower() for label in listed}
    if unknown := words - set(_BY_SEVERITY):
        expected = ", ".join(word.capitalize() for word in _BY_SEVERITY)
        raise ValueError(f"annotations: label: expected one of {expected}, got {min(unknown)!r}")
    return max(words, key=_BY_SEVERITY.index, default="consistent")


def _share(votes: list[str]) -> float | None:
    for vote in votes:
        if vote not in ("yes", "no"):
            raise ValueError(f"response: expected one of yes, no, got {vote!r}")
    return votes.count("yes") / len(votes) if votes else None


def _majority(votes: list[str]) -> str | None:
    share = _share(votes)
    if share in (None, 0.5):
        return share and "disputed"
    return "supported" if share > 0.5 else "not_supported"


def _probability(value: object) -> float | None:
    try:
        return None if value in (None, "") else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"label: expected a probability, got {value!r}") from None


def _source_text(info: object) -> object:
    if isinstance(info, dict):
        return info.get("passages") or json.dumps(info, ensure_ascii=False)
    return info


def _lines(value: list[str] | str) -> str:
    """Join lines, also of a list in a CSV."""
    if isinstance(value, str) and (value == "[]" or value[:2] in ("['", '["')):
        value = ast.literal_eval(value)
    return "\n".join(value) if isinstance(value, list) else value


def _wice_evidence(row: Mapping) -> str:
    """Return the first set of cited sentences and others up to 200 words, in the page's order.

    As in WiCE's own chunks, other sentences are added, so that the number of sentences does not
    tell whether the claim is supported.
    """
    sentences, sets = row["evidence"], row["supporting_sentences"]
    cited = sets[0] if sets else []
    uncited = set(range(len(sentences))) - set(cited)
    kept, words = [], 0
    for number in [*cited, *sorted(uncited, key=lambda number: short_hash(sentences[number]))]:
        words += len(sentences[number].split())
        if words <= _EVIDENCE_WORDS or number in cited:
            kept.append(number)
    return "\n".join(sentences[number] for number in sorted(kept))


def _named_sentence(row: Mapping) -> str:
    """A sentence about a person with the name in the place of its first pronoun."""
    sentence, name = row.get("sentence") or row["claim"], row.get("topic") or row["original_entity"]
    if name.split()[-1] in sentence:
        return sentence
    return _PRONOUN.sub(lambda match: f"{name}'s" if match[2] else name, sentence, count=1)


CONVERSIONS: dict[str, Callable] = {
    "name": name_of_prompt,
    "bin": frequency_bin,
    "group": group_of_cat,
    "unquoted": _unquoted,
    "hash": short_hash,
    "text": str,
    "lines": _lines,
    "joined": " ".join,
    "named_sentence": _named_sentence,
    "wice_evidence": _wice_evidence,
    "count": len,
    "items": lambda value: value or [],
    "false_if_null_annotations": lambda row: False if row.get("annotations", 0) is None else None,
    "normal_if_set": lambda value: None if value is None else "normal",
    "worst": _worst,
    "share": _share,
    "majority": _majority,
    "probability": _probability,
    "source_text": _source_text,
    "without_addresses": nested.without_addresses,
    "spans": nested.word_of_spans,
    "halogen_atoms": nested.halogen_atoms,
    "halogen_text": nested.halogen_text,
    "factcheck_claims": nested.factcheck_claims,
    "factreasoner_atoms": nested.factreasoner_atoms,
    "safe_sides": nested.safe_sides,
    "veriscore_claims": nested.veriscore_claims,
    "generation_id": ambigbio.generation_id,
    "text_number": ambigbio.text_number,
    "cited_sections": ambigbio.cited_sections,
    "single_titles": ambigbio.single_titles,
    "truth": ambigbio.word_of_truth,
    "citation_pairs": ambigbio.citation_pairs,
    "atom_pairs": ambigbio.atom_pairs,
    "wice_lss": lss.of_wice_tokens,
    "published_answer": lss.published_answer,
    "lss_pairs": lss.pairs_of_lss,
    "sick_pairs": nested.sick_pairs,
}
