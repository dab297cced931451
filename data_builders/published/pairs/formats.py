"""Other projects' pair files: one function a format turns a row into premise, hypothesis and label.

A file's format is found by its field names; where they do not tell, ``format`` in the
configuration does. Rows that ``records/foreign.py`` reads already (WiCE, AmbigBio's citations) go
through it; AmbigBio's atoms only where ``format: atoms`` asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from components.ties import documents_of
from records import Document, LssExample, RelationPair
from records.foreign import WICE_LABELS, adapt
from records.foreign_documents import READERS
from records.foreign_labelled import meant_by
from records.types import Record

Target = Literal["relation", "unli"]

ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
OURS = (ENTAILMENT, NEUTRAL, CONTRADICTION, "not_entailment")

# What people's words mean (``records/foreign_labelled.py``) as a relation. ``None`` is a row that
# nobody could agree on.
_RELATION_OF: dict[str | None, str | None] = {
    "supported": ENTAILMENT, "partially_supported": "not_entailment",
    "not_supported": "not_entailment", "refuted": CONTRADICTION, "not_enough": NEUTRAL,
    "irrelevant": NEUTRAL, "disputed": None, "unknown": None,
}  # fmt: skip


def _meant(*words: str) -> dict[str, str | None]:
    return {word: _RELATION_OF[meant_by(word, "label")[1]] for word in words}


# What each format's labels become.
LABELS: dict[str, dict[str, str | None]] = {
    "snli": _meant(ENTAILMENT, NEUTRAL, CONTRADICTION, "-"),
    "hub": {"0": ENTAILMENT, "1": NEUTRAL, "2": CONTRADICTION, "-1": None},
    "anli": _meant("e", "n", "c", ENTAILMENT, NEUTRAL, CONTRADICTION),
    "fever": _meant("SUPPORTS", "REFUTES", "NOT ENOUGH INFO", "hidden"),
    "vitaminc": _meant("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"),
    "sick": _meant("ENTAILMENT", "NEUTRAL", "CONTRADICTION")
    | {"0": ENTAILMENT, "1": NEUTRAL, "2": CONTRADICTION},
    # u-SNLI carries the class of SNLI beside the probability, the other way round.
    "unli": {"0": CONTRADICTION, "1": NEUTRAL, "2": ENTAILMENT},
    "climate_fever": _meant("SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO", "DISPUTED"),
    "averitec": _meant(
        "Supported", "Refuted", "Not Enough Evidence", "Conflicting Evidence/Cherrypicking"
    ),
    "wice": _meant("supported", "partially_supported", "not_supported"),
    "attribution_bench": _meant("attributable", "not attributable"),
    "factcheck_bench": _meant("completely-support", "partially-support", "refute", "irrelevant"),
    "citations": {"1": ENTAILMENT, "0": "not_entailment"},
    "atoms": {"True": ENTAILMENT, "False": "not_entailment"},
    "lss": {"the claim": ENTAILMENT, "a part of it": "not_entailment", "equally many": None},
    "ours": {label: label for label in OURS},
}
# SICK's label of the other direction, e.g. ``B_neutral_A``.
_BACK = {"entails": ENTAILMENT, "neutral": NEUTRAL, "contradicts": CONTRADICTION}


class Found(NamedTuple):
    """A pair of a foreign row.

    Attributes:
        premise, hypothesis: stripped; may be empty.
        label: one of our relations, or a probability; ``None`` where the row has no gold label.
        group: what must not stand on both sides of a split: the page, the name, else the premise.
        documents: names of the documents that it belongs to besides.
    """

    premise: str
    hypothesis: str
    label: str | float | None
    group: str
    documents: tuple[str, ...] = ()


class WrongRow(ValueError):
    """A row that is not as its format has it; the message starts with the field."""


def _text(row: dict, field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        raise WrongRow(f"{field}: {'field required' if value is None else 'expected a text'}")
    return " ".join(value.split())


def _label(row: dict, field: str, name: str) -> str | None:
    value = row.get(field)
    if value is None or value == "":
        return None
    known = LABELS[name]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if str(value) not in known:
        raise WrongRow(f"{field}: expected one of {', '.join(known)}, got {value!r}")
    return known[str(value)]


Reader = Callable[[dict, Target], list[Found]]


def _fields(
    premise: str, hypothesis: str, label: str, name: str, group: str | None = None
) -> Reader:
    """The reader of a set whose rows hold a pair in three fields.

    Args:
        premise, hypothesis, label: the fields.
        name: whose labels, of ``LABELS``.
        group: field of what holds pairs together; the premise, where there is none or it is empty.
    """

    def read(row: dict, target: Target) -> list[Found]:
        text = _text(row, premise)
        own = str(row.get(group) or text) if group else text
        return [Found(text, _text(row, hypothesis), _label(row, label, name), own)]

    return read


def _sick(row: dict, target: Target) -> list[Found]:
    """SICK in its own table (two spellings of the label) and on the Hub.

    Where the table has the label of the other direction, that pair is given, too.
    """
    left, right = _text(row, "sentence_A"), _text(row, "sentence_B")
    fields = ("entailment_label", "entailment_judgment", "label")
    field = next((name for name in fields if name in row), fields[0])
    # Pairs were made from each other; the sentence they come from holds them together.
    group = str(row.get("sentence_A_original") or left)
    found = [Found(left, right, _label(row, field, "sick"), group)]
    back = row.get("entailment_BA")
    if back:
        word = str(back).split("_")[1:2]
        if not word or word[0] not in _BACK:
            raise WrongRow(f"entailment_BA: expected e.g. B_entails_A, got {back!r}")
        found.append(Found(right, left, _BACK[word[0]], group))
    return found


def _ours(row: dict, target: Target) -> list[Found]:
    return _kept_together(row, _label(row, "label", "ours"))


def _unli(row: dict, target: Target) -> list[Found]:
    """u-SNLI and our own UNLI records: a probability, and the class where a relation is wanted.

    u-SNLI's own tables have ``pre`` and ``hyp``.
    """
    if {"pre", "hyp"} <= set(row):
        row = row | {"premise": row["pre"], "hypothesis": row["hyp"]}
    if target == "relation":
        return _kept_together(row, _label(row, "nli", "unli"))
    field = "unli" if "unli" in row else "label"
    value = row.get(field)
    if value is None or value == "":
        return _kept_together(row, None)
    try:
        probability = float(value)
    except (TypeError, ValueError):
        raise WrongRow(f"{field}: expected a probability, got {value!r}") from None
    if not 0 <= probability <= 1:
        raise WrongRow(f"{field}: expected a probability in [0, 1], got {value!r}")
    return _kept_together(row, probability)


def _kept_together(row: dict, label: str | float | None) -> list[Found]:
    text, premise = _text(row, "premise"), row["premise"].strip()
    documents = documents_of(Record(documents=row.get("documents")))
    group = str(row.get("group") or text)
    return [Found(premise, _text(row, "hypothesis"), label, group, tuple(documents))]


def _foreign(row: dict, target: Target) -> list[Found]:
    pairs = adapt(row, RelationPair, 0)
    # The lines of the evidence are kept: they are sentences, or passages.
    return [
        Found(p["premise"].strip(), p["hypothesis"].strip(), _label(p, "label", "ours"), p["group"])
        for p in pairs
    ]


def _lss(row: dict, target: Target) -> list[Found]:
    """Human LSS (2308.12157) and WiCE's tokens, each a pair or two of nearly equal words.

    What the reference supports of a claim is entailed; the claim is, where most kept all of it.
    """
    (given,) = adapt(row, LssExample, 0)
    reference, claim = given["reference"].strip(), " ".join(given["claim"].split())
    kept = [" ".join(str(a["lss"]).split()) for a in given["annotations"]]
    group = str(given.get("group") or reference)
    whole = sum(lss == claim for lss in kept)
    label = ENTAILMENT if 2 * whole > len(kept) else "not_entailment"
    if 2 * whole == len(kept):
        label = None
    part = next((lss for lss in kept if lss not in ("", claim)), "")
    found = [(claim, label), (part, ENTAILMENT)] if part else [(claim, label)]
    return [Found(reference, text, told, group) for text, told in found]


def _atoms(row: dict, target: Target) -> list[Found]:
    """AmbigBio's atoms after grouping, each with the cited sections of one title.

    The title that supports an atom entails it. An atom that its person's title does not support is
    not entailed by any title, but for the one that supports it where it is judged by itself.
    """
    row = {"citations": [], "atoms_independent": [], "atoms_grouped": []} | row
    (document,) = adapt(row, Document, 0)
    alone = {(a["atom"], a["supporting_topic"]) for a in row["atoms_independent"] or []}
    titles: dict[str, list[str]] = {}
    for passage in document["passages"]:
        titles.setdefault(passage["title"], []).append(passage["text"])
    found = []
    for atom in row["atoms_grouped"] or []:
        text, supporting = atom["atom"], atom["supporting_topic"]
        label = _label(atom, "is_supported", "atoms")
        for title, texts in titles.items():
            entailed = label == ENTAILMENT
            if title == supporting if entailed else (text, title) not in alone:
                premise = f"{title}. " + "\n".join(texts)
                found.append(Found(premise, text.strip(), label, str(row["name"])))
    return found


def _evidence(format: str) -> Reader:
    """Claims with evidence, as ``records`` reads their documents.

    Climate-FEVER's sentences are judged one by one, and each is a pair, under its article's title;
    AVeriTeC's answers are judged together, and are one premise. A claim holds its pairs together,
    and so does an article.
    """

    def read(row: dict, target: Target) -> list[Found]:
        document = READERS[format](row, 0)
        if document is None:
            raise WrongRow(f"row: not as {format} writes it")
        claim, passages = document["text"].strip(), document["passages"]
        if format == "averitec":
            texts = "\n".join(p["text"] for p in passages)
            return [Found(texts, claim, _label(document, "claim_label", format), claim)]
        return [
            Found(
                f"{p['title']}. {p['text']}",
                claim,
                _label(p, "evidence_label", format),
                claim,
                (p["title"],),
            )
            for p in passages
        ]

    return read


def _attribution_bench(row: dict, target: Target) -> list[Found]:
    references = row.get("references")
    if not isinstance(references, list) or not all(isinstance(r, str) for r in references):
        raise WrongRow("references: expected a list of texts")
    premise, claim = "\n".join(references).strip(), _text(row, "claim")
    label = _label(row, "attribution_label", "attribution_bench")
    return [Found(premise, claim, label, str(row.get("question") or claim))]


def _factcheck_bench(row: dict, target: Target) -> list[Found]:
    """Factcheck-Bench (2311.09000): stances of retrieved evidence to the claims of a response.

    A released response has them below its sentences, and holds them together; a row of ``claim``,
    ``evidence`` and ``stance`` is held together by its claim.
    """
    if "sentences" not in row:
        evidence, claim = _text(row, "evidence"), _text(row, "claim")
        return [Found(evidence, claim, _label(row, "stance", "factcheck_bench"), claim)]
    group, found = _text(row, "prompt"), []
    for sentence in row["sentences"].values():
        lists = [sentence[name] for name in ("claims", "auto_evidence", "stance_claim_autoEvid")]
        if len({len(own) for own in lists}) > 1:
            raise WrongRow("claims, auto_evidence, stance_claim_autoEvid: expected one length")
        for claim, texts, stances in zip(*lists, strict=True):
            # A few claims have evidence and no stance to it.
            own = stances if len(stances) == len(texts) else [None] * len(texts)
            for text, stance in zip(texts, own, strict=True):
                label = _label({"stance": stance}, "stance", "factcheck_bench")
                found.append(Found(" ".join(text.split()), claim.strip(), label, group))
    return found


FORMATS: dict[str, Reader] = {
    "attribution_bench": _attribution_bench,
    "factcheck_bench": _factcheck_bench,
    "averitec": _evidence("averitec"),
    "climate_fever": _evidence("climate_fever"),
    "anli": _fields("context", "hypothesis", "label", "anli"),
    "atoms": _atoms,
    "citations": _foreign,
    # FEVER-NLI (Nie et al. 2019): ``query`` is the claim, ``context`` the evidence.
    "fever": _fields("context", "query", "label", "fever"),
    # A copy of it on the Hub that calls the claim ``premise``; turned round here.
    "fever_hub": _fields("hypothesis", "premise", "label", "hub"),
    # SNLI, MultiNLI and ANLI on the Hub: the label is a number.
    "hub": _fields("premise", "hypothesis", "label", "hub"),
    "lss": _lss,
    "ours": _ours,
    "sick": _sick,
    # SNLI's and MultiNLI's releases.
    "snli": _fields("sentence1", "sentence2", "gold_label", "snli"),
    "unli": _unli,
    # Revisions of a page belong together.
    "vitaminc": _fields("evidence", "claim", "label", "vitaminc", group="page"),
    "wice": _foreign,
}


def pairs_of(row: dict, format: str, target: Target) -> list[Found]:
    """The pairs of a foreign row.

    Args:
        row: of the foreign file.
        format: of ``FORMATS``.
        target: whether relations or probabilities are asked for.

    Raises:
        WrongRow: it is not as its format has it.
    """
    try:
        found = FORMATS[format](row, target)
        for one in found:
            for text in (*one[:2], one.group, *one.documents):
                text.encode()
    except UnicodeEncodeError:
        raise WrongRow("row: half a character (a \\ud8… escape without its other half)") from None
    except KeyError as error:
        raise WrongRow(f"{error.args[0]}: field required") from None
    except ValueError as error:
        said = str(error)  # ours name a field; Python's own do not
        raise WrongRow(
            said if ": " in said else f"row: not as {format} writes it ({said})"
        ) from None
    except (AttributeError, IndexError, OverflowError, TypeError) as error:
        raise WrongRow(f"row: not as {format} writes it ({error})") from None
    return found


def detect(row: dict, target: Target) -> str | None:
    """The format that a row's field names tell, or ``None``."""
    fields = set(row)
    if "citations" in fields:
        return "citations"
    if {"sentence1", "sentence2", "gold_label"} <= fields:
        return "snli"
    if {"sentence_A", "sentence_B"} <= fields:
        return "sick"
    if {"query", "context"} <= fields:
        return "fever"
    if {"context", "hypothesis"} <= fields:
        return "anli"
    if {"claim", "annotations"} <= fields or {"claim_tokens", "non_supported_spans"} <= fields:
        return "lss"
    if {"claim", "evidences"} <= fields:
        return "climate_fever"
    if {"claim", "questions"} <= fields:
        return "averitec"
    if {"claim", "references", "attribution_label"} <= fields:
        return "attribution_bench"
    if {"claim", "evidence", "stance"} <= fields or {"response", "sentences"} <= fields:
        return "factcheck_bench"
    if {"claim", "evidence"} <= fields:
        return "wice" if str(row.get("label")) in WICE_LABELS else "vitaminc"
    if {"pre", "hyp", "unli"} <= fields:
        return "unli"
    if not {"premise", "hypothesis"} <= fields:
        return None
    if "fever_gold_label" in fields:
        return "fever_hub"
    if target == "unli" or fields & {"unli", "nli"}:
        return "unli"
    label = row.get("label")
    if label in OURS:
        return "ours"
    return "hub" if str(label) in LABELS["hub"] else None
