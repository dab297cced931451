"""Rows of other projects, recognised by their published field names and turned into our records.

One function a project; each names the files it reads. Rows in our own format pass untouched.
Documents are in ``foreign_documents.py``.
"""

from __future__ import annotations

from collections.abc import Callable

from records.foreign_documents import to_document
from records.foreign_text import kept_of, sampled, topic_of
from records.types import Document, Generation, LssExample, Record, RelationPair

# WiCE (ryokamoi/wice): only a fully supported claim is entailed; partial support is not.
WICE_LABELS = {
    "supported": "entailment",
    "partially_supported": "not_entailment",
    "not_supported": "not_entailment",
}


def _to_generation(row: dict, number: int) -> dict:
    if "text" in row:
        return row
    text = sampled(row)
    text = row.get("output", row.get("response")) if text is None else text
    return row if text is None else {"topic": topic_of(row), "text": text, **kept_of(row)}


def _citations(row: dict) -> list[dict]:
    """AmbigBio's generations: each citation is a pair with the verdict of its NLI model.

    A citation that stands behind no words (an empty ``claim``) makes no pair.
    """
    name = row.get("name") or row.get("topic")
    pairs = []
    for citation in row["citations"]:
        passage, entailed = citation["passage"], citation["entailed"]
        if entailed not in (0, 1):
            raise ValueError(f"citations: entailed: expected 0 or 1, got {entailed!r}")
        premise = passage if isinstance(passage, str) else "\n".join(passage)
        pairs.append(
            {
                "premise": premise,
                "hypothesis": citation["claim"],
                "label": "entailment" if entailed else "not_entailment",
                "source": "citations",
                "group": str(name) if name else premise,
            }
        )
    return [pair for pair in pairs if pair["hypothesis"].strip()]


def _to_relation(row: dict, number: int) -> dict | list[dict]:
    if isinstance(row.get("citations"), list) and "premise" not in row:
        return _citations(row)
    if "evidence" in row and "claim" in row and "premise" not in row:
        label = row.get("label")
        if label not in WICE_LABELS:
            raise ValueError(f"label: expected one of {', '.join(WICE_LABELS)}, got {label!r}")
        evidence = row["evidence"]
        premise = evidence if isinstance(evidence, str) else "\n".join(evidence)
        return {
            "premise": premise,
            "hypothesis": row["claim"],
            "label": WICE_LABELS[label],
            "source": "wice",
            "group": _article(row) or premise,
        }
    return row


def _article(row: dict) -> str | None:
    """What holds WiCE's claims together: the Wikipedia article that they are from, else the claim.

    An article cites one page for many claims, and says one thing several times.
    """
    meta = row.get("meta") or {}
    named = meta.get("claim_title") or meta.get("id")
    return None if named is None else str(named)


def _to_lss(row: dict, number: int) -> dict:
    if "claim_tokens" in row and "non_supported_spans" in row:
        tokens, dropped = row["claim_tokens"], row["non_supported_spans"]
        if len(tokens) != len(dropped):
            raise ValueError("non_supported_spans: must be as long as claim_tokens")
        # A few tokens hold a blank; `keep` is by whitespace token, as the claim is read again.
        words = [(w, drop) for t, drop in zip(tokens, dropped, strict=True) for w in t.split()]
        given = row["evidence"]
        evidence = [given] if isinstance(given, str) else given
        cited = [evidence[i] for i in sorted({i for s in row["supporting_sentences"] for i in s})]
        return {
            "claim": " ".join(tokens),
            # The cited sentences come first so that a model of short inputs sees them at all.
            "reference": "\n".join([*cited, *(e for e in evidence if e not in set(cited))]),
            "annotations": [{"lss": " ".join(word for word, drop in words if not drop)}],
            "keep": [not drop for _, drop in words],
            "source": "wice",
            **({"group": article} if (article := _article(row)) else {}),
        }
    return row


_ADAPTERS: dict[type[Record], Callable[[dict, int], dict | list[dict]]] = {
    Document: to_document,
    Generation: _to_generation,
    RelationPair: _to_relation,
    LssExample: _to_lss,
}


def adapt(row: dict, kind: type[Record], number: int) -> list[dict]:
    """Give ``row`` the field names of ``kind`` if it is a known project's row.

    Returns:
        One row; for a project that keeps many records in a row, as many as there are.

    Raises:
        ValueError: the row is recognised but incomplete or inconsistent; the message starts with
            the field.
    """
    adapter = next((_ADAPTERS[one] for one in kind.__mro__ if one in _ADAPTERS), None)
    if adapter is None:
        return [row]
    try:
        found = adapter(row, number)
        return found if isinstance(found, list) else [found]
    except KeyError as error:
        raise ValueError(f"{error.args[0]}: field required") from None
    except (AttributeError, IndexError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"record: not as its project writes it ({error})") from None
