"""Texts of other projects as our documents, with their claims and passages where they have any."""

from __future__ import annotations

from collections.abc import Callable

from records import foreign_ambigbio as ambigbio
from records.foreign_checked import averitec, climate_fever, halogen
from records.foreign_factreasoner import factreasoner
from records.foreign_labelled import LABELLED
from records.foreign_text import document_of, sampled


def _factscore_labelled(row: dict, number: int) -> dict | None:
    """FActScore's labelled biographies: ``annotations`` with atomic facts.

    The humans' facts become ``claims``, the model's, which have no labels, ``model_claims``. A text
    whose ``annotations`` are null does not respond, whatever it says: so FActScore (2305.14251)
    counts 99.5 % of InstructGPT's 183 texts and 90.7 % of PerplexityAI's as responses.
    """
    sentences = row.get("annotations")
    if sentences is None and "annotations" in row and "output" in row:
        return document_of(row, number, row["output"], responds=False)
    if not isinstance(sentences, list) or "output" not in row:
        return None
    found = {
        "claims": _atomic_facts(sentences, "human-atomic-facts"),
        "model_claims": _atomic_facts(sentences, "model-atomic-facts"),
    }
    return document_of(row, number, row["output"], kind="normal", **found)


def _atomic_facts(sentences: list[dict], field: str) -> list[dict]:
    claims = []
    for index, sentence in enumerate(sentences):
        for fact in sentence.get(field) or []:
            claim = {"id": f"c{len(claims)}", "text": fact["text"], "sentence": index}
            claim["source"] = sentence["text"]
            if field.startswith("human"):
                claim["label"] = fact["label"]
            claims.append(claim)
    return claims


def _response(row: dict, number: int) -> dict | None:
    """FActScore (``output``), SAFE/LongFact and VeriScore (``response``), our generations.

    The samples of adversarial-factuality have ``output`` twice, as ``raw`` and as ``parsed``.
    """
    for field in ("output", "response"):
        if isinstance(row.get(field), str):
            return document_of(row, number, row[field])
    if isinstance(row.get("text"), str):  # ours, but for the id or the topic
        return row | document_of(row, number, row["text"])
    text = sampled(row)
    return None if text is None else document_of(row, number, text)


# A claim that its evidence does not decide counts as one that is not supported (2406.19276).
_VERISCORE = {"supported": "S"} | dict.fromkeys(
    ("unsupported", "contradicted", "inconclusive"), "NS"
)


_CLAIM_LISTS = ("claim_list", "claim_lst_lst")
_CLAIM_HITS = ("claim_search_results", "claim_snippets_dict", "claim_srch_res_lst")


def _veriscore(row: dict, number: int) -> dict | None:
    """VeriScore's ``claims_*.jsonl``, ``evidence_*.jsonl`` and verification files.

    ``claim_list`` holds the claims sentence by sentence, ``claim_search_results`` what was found
    for each; both have other names in some releases. A sentence without any has a line that says
    so, or null. A search result without any text is left out. ``answer`` keeps the verdict's word.
    A text that ``abstained`` does not respond.
    """
    lists = next((row[name] for name in _CLAIM_LISTS if isinstance(row.get(name), list)), None)
    if lists is None and row.get("abstained") is not True:
        return None
    hits = next((row[name] for name in _CLAIM_HITS if row.get(name)), {})
    results = row.get("claim_verification_result") or []
    answers = {r["claim"]: r["verification_result"] for r in results}
    claims, passages, names = [], [], {}
    for text, every in hits.items():
        own = [hit for hit in every if hit.get("snippet") or hit["title"]]
        names[text] = [f"p{len(names)}_{place}" for place in range(len(own))]
        for name, hit in zip(names[text], own, strict=True):
            text_of = hit.get("snippet") or hit["title"]
            passages.append({"id": name, "title": hit["title"], "text": text_of})
            passages[-1]["url"] = hit.get("link")
    for index, own in enumerate(lists or []):
        for text in own:
            if text and text.strip() and not text.startswith("No verifiable claim"):
                claim = {"id": f"c{len(claims)}", "text": text, "sentence": index}
                answer = answers.get(text)
                more = {"answer": answer, "label": _VERISCORE.get(answer)} if answer else {}
                if text in names:
                    more["contexts"] = names[text]
                claims.append(claim | more)
    more = {"passages": passages} if hits else {}
    if row.get("abstained") is True:
        more["responds"] = False
    return document_of(row, number, row["response"], claims=claims, **more)


_SAFE = {"Supported": "S", "Not Supported": "NS", "Irrelevant": "IR"}
# What SAFE's scripts call a side that nobody wrote.
_NO_SIDE = ("none", "placeholder")


def _safe(row: dict, number: int) -> list[dict] | None:
    """SAFE's results, one row of ``per_prompt_data``: a document for each side that was rated.

    Where none was, for each side that has a response, without claims. ``side_1`` and ``side_2`` of
    the file say who wrote the sides.
    """
    sides = [side for side in ("side1", "side2") if row.get(f"{side}_posthoc_eval_data")]
    for side in () if sides else ("side1", "side2"):
        if row.get(f"{side}_response") and row.get(f"side_{side[-1]}") not in _NO_SIDE:
            sides.append(side)
    found = []
    for side in sides:
        data = row.get(f"{side}_posthoc_eval_data")
        text = row.get(f"{side}_response") or data["response"]
        name = f"d{number}" if len(sides) == 1 else f"d{number}.{side}"
        found.append({"id": name, "topic": row["prompt"], "text": text})
        claims, passages = _checked(data) if data else (None, None)
        found[-1] |= {"claims": claims} | ({"passages": passages} if passages else {})
        found[-1]["generator"] = row.get(f"side_{side[-1]}") or side
    return found or None


def _checked(data: dict) -> tuple[list[dict], list[dict]]:
    order = {fact["sentence"]: i for i, fact in enumerate(data["all_atomic_facts"])}
    checked, steps = data["checked_statements"], data.get("past_steps_jsonified_all") or []
    # Some files have the steps of the rated facts only; then nobody can say whose they are.
    told = len(steps) == len(checked)
    claims, passages = [], []
    for place, (fact, step) in enumerate(
        zip(checked, steps if told else [{}] * len(checked), strict=True)
    ):
        searches = [s for s in step.get("google_searches") or [] if (s.get("result") or "").strip()]
        found = [
            {"id": f"c{place}_{index}", "text": search["result"], "source": "google"}
            for index, search in enumerate(searches)
        ]
        passages += [
            one | {"query": s.get("query")} for one, s in zip(found, searches, strict=True)
        ]
        claims.append(
            {
                "id": f"c{place}",
                "text": fact["self_contained_atomic_fact"],
                "original": fact["atomic_fact"],
                "sentence": order.get(fact["sentence"], 0),
                "source": fact["sentence"],
                "label": _SAFE.get(fact["annotation"]),
            }
            | ({"contexts": [one["id"] for one in found]} if told else {})
        )
    return claims, passages


def _factscore_predictions(row: dict, number: int) -> dict | None:
    """FActScore's released predictions: ``facts`` with the labels of two estimators.

    The labels are those of ChatGPT where they are there, else of LLAMA+NP; the text, which these
    files lack, is the facts one after the other.
    """
    if not isinstance(row.get("facts"), list) or "prompt" not in row:
        return None
    names = (f"{who}_{word}abels" for who in ("ChatGPT", "LLAMA+NP") for word in "Ll")
    labels = next((row[name] for name in names if name in row), [None] * len(row["facts"]))
    if len(labels) != len(row["facts"]):
        raise ValueError("facts: must be as many as their labels")
    claims = [
        {"id": f"c{place}", "text": text, "label": label if label in ("S", "NS", "IR") else None}
        for place, (text, label) in enumerate(zip(row["facts"], labels, strict=True))
    ]
    return document_of(row, number, " ".join(row["facts"]), claims=claims)


Reader = Callable[[dict, int], dict | list[dict] | None]

# Project to its reader, which answers None to a row that is not the project's. The first that
# knows a row reads it.
READERS: dict[str, Reader] = {
    "factscore": _factscore_labelled,
    "factreasoner": factreasoner,
    "safe": _safe,
    "veriscore": _veriscore,
    "factscore_predictions": _factscore_predictions,
    "ambigbio": ambigbio.judged,
    "alce": ambigbio.generation,
    "alce_scores": ambigbio.cited,
    "halogen": halogen,
    "climate_fever": climate_fever,
    "averitec": averitec,
    **LABELLED,
    "texts": _response,
}


def to_document(row: dict, number: int) -> dict | list[dict]:
    """A row of another project as a document of ours; a row of ours as it is.

    Raises:
        ValueError: it is neither.
    """
    if "id" in row and "topic" in row and "text" in row:
        return row
    found = (reader(row, number) for reader in READERS.values())
    document = next((document for document in found if document is not None), None)
    if document is None:
        raise ValueError("text: field required; a text in output or response would do")
    return document
