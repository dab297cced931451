"""Sets of claims that people judged against evidence, by their published fields, as documents.

One function a set; each gives documents of claims with ``label`` (S: the evidence supports it; NS:
it does not) and the set's own, finer word for that in ``finer``. A claim on which people agree
neither way has no label. Beside them:

- a document's ``group`` is the source of a set that was put together of several, its ``unit`` what
  must not be torn apart when documents are drawn (an article, a question);
- a claim's ``share`` is the share of the people who called it supported, ``people`` how many these
  were, where votes are told;
- a passage's ``evidence_label`` says what it alone says of the claim.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping

# The words of all sets: S, NS or neither, and one finer word for each. What is supported in part is
# not supported, as in WiCE and LLM-AggreFact; evidence that conflicts decides nothing.
_MEANT: dict[tuple[str | None, str], tuple[str, ...]] = {
    ("S", "supported"): (
        "supported", "supports", "support", "entailment", "e", "attributable", "completely support",
        "complete", "consistent",
    ),
    ("S", "benign"): ("benign",),
    ("NS", "partially_supported"): ("partially supported", "partially support", "partial"),
    ("NS", "not_supported"): (
        "not supported", "not attributable", "not entailment", "incomplete", "missing",
    ),
    ("NS", "refuted"): ("refuted", "refutes", "refute", "contradiction", "contradicted", "c"),
    ("NS", "not_enough"): ("not enough info", "not enough evidence", "neutral", "n"),
    ("NS", "irrelevant"): ("irrelevant",),
    ("NS", "questionable"): ("questionable",),
    ("NS", "unwanted"): ("unwanted",),
    (None, "disputed"): ("disputed", "conflicting evidence/cherrypicking"),
    (None, "unknown"): ("unknown", "n/a", "na", "hidden", "not available", "-", "-1"),
}  # fmt: skip
_WORDS = {word: meant for meant, words in _MEANT.items() for word in words}
_SUPPORTED, _NOT = ("S", "supported"), ("NS", "not_supported")
_YES_NO = {"1": _SUPPORTED, "0": _NOT, "True": _SUPPORTED, "False": _NOT}
_VOTES = {"yes": _SUPPORTED, "no": _NOT}
_HUB = {
    "0": ("S", "supported"), "1": ("NS", "not_enough"), "2": ("NS", "refuted"),
    "-1": (None, "unknown"),
}  # fmt: skip
_UNLI = {"0": ("NS", "refuted"), "1": ("NS", "not_enough"), "2": ("S", "supported")}
_WORST = ("benign", "questionable", "unwanted")  # FaithBench, by severity
# ExpertQA's evidence: a number, an address, and the passage where there is one.
_ADDRESS = re.compile(r"^\s*(?:\[\d+\]\s*)?(?:https?://\S+)?\s*")
# Factcheck-Bench's people quote a page and give its address, before it or behind it.
_ADDRESSES = re.compile(r"(?:\b(?:URL|Link):\s*)?https?://\S+")

Meant = tuple[str | None, str | None]


def meant_by(
    word: object, field: str, words: Mapping[str, tuple[str | None, str]] = _WORDS
) -> Meant:
    """S, NS or neither, and the finer word; neither of them for a row without a label.

    Raises:
        ValueError: nobody knows the word; the message starts with the field.
    """
    if word is None or word == "" or (isinstance(word, float) and math.isnan(word)):
        return None, None
    if isinstance(word, float) and word.is_integer():
        word = int(word)
    elif isinstance(word, str) and re.fullmatch(r"-?\d\.0", word):
        word = word[:-2]  # a number in the CSV of a table with gaps
    said = " ".join(str(word).lower().replace("_", " ").replace("-", " ").split()) or "-"
    known = words.get(str(word), words.get(said))
    if known is None:
        raise ValueError(f"{field}: expected one of {', '.join(words)}, got {word!r}")
    return known


def _text(row: Mapping, field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        said = "field required" if value is None else f"expected a text, got {value!r}"
        raise ValueError(f"{field}: {said}")
    return value.strip()


def _name_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _passages(texts: str | Iterable[str], prefix: str = "p") -> list[dict]:
    every = [texts] if isinstance(texts, str) else list(texts)
    there = [text.strip() for text in every if isinstance(text, str) and text.strip()]
    return [{"id": f"{prefix}{place}", "text": text} for place, text in enumerate(there)]


def _claim(text: str, meant: Meant, passages: list[dict], name: str = "c0", **more: object) -> dict:
    label, finer = meant
    contexts = [passage["id"] for passage in passages]
    return {"id": name, "text": text, "label": label, "finer": finer, "contexts": contexts, **more}


def _pair(
    row: Mapping,
    number: int,
    claim: str,
    evidence: str | Iterable[str],
    meant: Meant,
    unit: str | None,
    source: str | None = None,
    **more: object,
) -> dict:
    """A document that is a claim with its own evidence.

    Args:
        unit: what is drawn together; the evidence where there is none.
        source: of a set of several.
        more: further fields of the claim.
    """
    passages = _passages(evidence)
    unit = str(unit) if unit else _name_of("\n".join(passage["text"] for passage in passages))
    name = row.get("id", row.get("uid"))
    question = row.get("question")
    return {
        "id": f"d{number}" if name is None else str(name),
        "topic": question if isinstance(question, str) and question.strip() else claim,
        "text": claim,
        "claims": [_claim(claim, meant, passages, **more)],
        "passages": passages,
        "unit": unit,
    } | ({} if source in (None, "") else {"group": str(source)})


# Claims with evidence


def aggrefact(row: dict, number: int) -> dict | None:
    """LLM-AggreFact (2404.10774): ``doc``, ``claim``, ``label`` 1 or 0 or empty, ``dataset``."""
    if not {"doc", "claim"} <= set(row) or "text" in row:
        return None
    meant = meant_by(row.get("label"), "label", _YES_NO)
    doc = _text(row, "doc")
    return _pair(row, number, _text(row, "claim"), doc, meant, _name_of(doc), row.get("dataset"))


def attribution_bench(row: dict, number: int) -> dict | None:
    """AttributionBench (2402.15089): ``claim``, ``references``, ``attribution_label``."""
    if not {"claim", "references", "attribution_label"} <= set(row):
        return None
    meant = meant_by(row["attribution_label"], "attribution_label")
    unit, source = row.get("question"), row.get("src_dataset")
    return _pair(row, number, _text(row, "claim"), row["references"], meant, unit, source)


def claim_and_evidence(row: dict, number: int) -> dict | None:
    """WiCE (2303.01432), VitaminC, HealthVer: ``claim``, ``evidence``, ``label``.

    WiCE's evidence is a list of sentences and becomes one passage; claims of an article belong
    together, as do VitaminC's of a ``page`` and HealthVer's of a ``question``. Factcheck-Bench's
    pairs (2311.09000) call their label ``stance``.
    """
    field = "stance" if "stance" in row else "label"
    if not {"claim", "evidence"} <= set(row) or isinstance(row["evidence"], dict):
        return None
    evidence, meta = row["evidence"], row.get("meta") or {}
    evidence = evidence if isinstance(evidence, str) else "\n".join(evidence)
    unit = meta.get("claim_title") or meta.get("id") or row.get("page") or row.get("question")
    claim = _text(row, "claim")
    return _pair(row, number, claim, evidence, meant_by(row.get(field), field), unit or claim)


# Pairs of natural language inference: premise, hypothesis and label of each set
_NLI = (
    ("hypothesis", "premise", "fever_gold_label"),  # FEVER on the Hub: its premise is the claim
    ("premise", "hypothesis", "label"),
    ("premise", "hypothesis", "nli"),
    ("pre", "hyp", "nli"),  # u-SNLI
    ("context", "hypothesis", "label"),  # ANLI
    ("context", "query", "label"),  # FEVER as pairs
    ("sentence1", "sentence2", "gold_label"),  # SNLI, MultiNLI
    ("sentence_A", "sentence_B", "entailment_label"),  # SICK
    ("sentence_A", "sentence_B", "entailment_judgment"),
    ("sentence_A", "sentence_B", "label"),
)


def inference(row: dict, number: int) -> dict | None:
    """Pairs of premise and hypothesis: SNLI, MultiNLI, ANLI, SICK, FEVER, u-SNLI, and ours.

    Numbers as labels are the Hub's (0 entailment); u-SNLI's ``nli`` counts the other way round, and
    its probability (``unli``) becomes the claim's ``share``. In its copy on the Hub that is called
    ``label``; what the numbers of its ``snli-label`` mean is told nowhere, so they are not read. A
    pair without a premise is a claim without evidence.
    """
    fields = next((names for names in _NLI if set(names) <= set(row)), None)
    if fields is None:
        return None
    premise = _text(row, fields[0]) if row[fields[0]] else ""
    hypothesis = _text(row, fields[1])
    more: dict = {}
    if "nli" in row:
        meant = meant_by(row["nli"], "nli", _UNLI)
        more = _probability(row, "unli" if "unli" in row else "label")
    elif "snli-label" in row:
        meant, more = (None, None), _probability(row, "label")
    else:
        label = row[fields[2]]
        numbered = str(label).removesuffix(".0").lstrip("-").isdigit()
        meant = meant_by(label, fields[2], _HUB if numbered else _WORDS)
    unit = row.get("group") or row.get("sentence_A_original")
    unit = unit or (_name_of(premise) if premise else hypothesis)
    return _pair(row, number, hypothesis, premise, meant, unit, row.get("source"), **more)


def _probability(row: Mapping, field: str) -> dict[str, float]:
    value = row.get(field)
    if value is None:
        return {}
    try:
        return {"share": float(value)}
    except (TypeError, ValueError):
        raise ValueError(f"{field}: expected a probability, got {value!r}") from None


# Texts with evidence


def factcheck_bench(row: dict, number: int) -> dict | None:
    """Factcheck-Bench (2311.09000): a response, its sentences, their claims, evidence and verdicts.

    A claim that is no factual one is irrelevant (IR); one that people could not decide has no
    label. Its contexts are what was found (``evidence_label``: the stance), and what people quoted
    for it, without addresses. ``sentences`` keeps each sentence with its form that stands alone.
    """
    if not isinstance(row.get("sentences"), dict) or "response" not in row:
        return None
    claims, passages, sentences = [], [], []
    for index, sentence in enumerate(row["sentences"].values()):
        told = ("text", "decontext", "sentence_checkworthiness")
        sentences.append({name: sentence[name] for name in told})
        columns = ("claim_checkworthiness", "claims_factuality_label", "auto_evidence")
        columns += ("stance_claim_autoEvid", "human_evidence")
        every = zip(sentence["claims"], *(sentence[name] for name in columns), strict=True)
        for text, worth, verdict, found, stances, theirs in every:
            prefix = f"p{len(claims)}_"
            own = _passages(found, prefix) if len(_passages(found)) == len(found) else []
            for passage, stance in zip(own, stances, strict=False):
                passage["evidence_label"] = stance
            if theirs and theirs.strip().upper() != "NA":
                own += _passages(_ADDRESSES.sub("", theirs), f"{prefix}h")
            passages += own
            label = {"true": "S", "false": "NS"}.get(str(verdict).lower())
            finer = {"S": "supported", "NS": "refuted"}.get(label, "unknown")
            meant = ("IR", "irrelevant") if worth != "factual" else (label, finer)
            more = {"sentence": index, "source": sentence["text"], "checkworthiness": worth}
            claims.append(_claim(text, meant, own, f"c{len(claims)}", **more))
    return {
        "id": f"d{number}",
        "topic": _text(row, "prompt"),
        "text": row["response"],
        "claims": claims,
        "passages": passages,
        "sentences": sentences,
    }


def ragtruth(row: dict, number: int) -> dict | None:
    """RAGTruth (2401.00396): a response whose unsupported spans people marked.

    The response is the claim, as in the set's own measure of responses: supported where no span is
    marked. One whose ``quality`` is not good (a wrong refusal, cut off) has no label: the set's own
    scripts leave it out. ``response.jsonl`` has no sources: each of ``source_info.jsonl`` is a
    document without claims, and who reads both joins them by ``source_id``. In the copy on the Hub
    a row has both (``context``, ``output``, ``hallucination_labels``).
    """
    if {"source_info", "source_id"} <= set(row) and "response" not in row:
        told = row["source_info"]
        if isinstance(told, dict):
            told = told.get("passages") or json.dumps(told, ensure_ascii=False)
        source = {"topic": str(row["source_id"]), "text": "", "passages": _passages(told)}
        source |= {"id": f"source {row['source_id']}", "source_id": str(row["source_id"])}
        return source | ({"group": row["task_type"]} if row.get("task_type") else {})
    if {"context", "output", "hallucination_labels"} <= set(row):
        labels = row["hallucination_labels"]
        try:
            labels = json.loads(labels) if isinstance(labels, str) else labels
        except ValueError:
            raise ValueError(f"hallucination_labels: expected JSON, got {labels[:60]!r}") from None
        text, context = _text(row, "output"), _text(row, "context")
        unit = _name_of(context)
        meant = _marked(labels, row.get("quality"))
        found = _pair(row, number, text, context, meant, unit, row.get("task_type"))
    elif {"response", "source_id", "labels"} <= set(row):
        unit = str(row["source_id"])
        meant = _marked(row["labels"], row.get("quality"))
        found = _pair(row, number, _text(row, "response"), (), meant, unit)
        found |= {"source_id": unit}
        del found["claims"][0]["contexts"]  # all of the source that is joined
    else:
        return None
    return found | ({"generator": row["model"]} if row.get("model") else {})


def _marked(spans: list[dict] | None, quality: str | None) -> Meant:
    if quality not in (None, "good"):
        return None, "unknown"
    if spans is None:  # nobody looked for spans, which is not that none was found
        return None, None
    if not spans:
        return "S", "supported"
    conflict = any("conflict" in str(span["label_type"]).lower() for span in spans)
    return "NS", "refuted" if conflict else "not_enough"


def faithbench(row: dict, number: int) -> dict | None:
    """FaithBench (2410.13210): a summary with people's annotations, the worst of which decides.

    Unwanted and questionable is not supported, benign is, as in the set's own script. In its table
    (``FaithBench.csv``) a row has that worst label, and ``LLM`` for the summarizer.
    """
    if not {"source", "summary"} <= set(row) or not {"annotations", "worst-label"} & set(row):
        return None
    if "annotations" in row:
        told = [label for annotation in row["annotations"] for label in annotation["label"]]
    else:
        told = [row["worst-label"]]
    said = {label.split(".")[0].lower() for label in told} - {"consistent"}
    unknown = said - set(_WORST)
    if unknown:
        known = ", ".join(word.capitalize() for word in _WORST)
        raise ValueError(f"annotations: label: expected one of {known}, got {min(unknown)!r}")
    worst = max(said, key=_WORST.index, default="consistent")
    source, meta = _text(row, "source"), row.get("metadata") or {}
    summary = _text(row, "summary")
    found = _pair(row, number, summary, source, meant_by(worst, "label"), _name_of(source))
    writer = meta.get("summarizer") or row.get("meta_model") or row.get("LLM")
    return found | ({"generator": writer} if writer else {})


def qags(row: dict, number: int) -> dict | None:
    """QAGS (2004.04228): an article and a summary, each sentence of which some people judged.

    The majority decides; ``share`` is that of the ``people`` who said yes.
    """
    if not {"article", "summary_sentences"} <= set(row):
        return None
    passages = _passages(_text(row, "article"))
    claims = []
    for place, sentence in enumerate(row["summary_sentences"]):
        said = [meant_by(one["response"], "response", _VOTES)[0] for one in sentence["responses"]]
        votes = [vote == "S" for vote in said if vote]
        share = sum(votes) / len(votes) if votes else None
        meant: Meant = (None, "disputed" if votes else None)
        if share is not None and share != 0.5:
            meant = ("S", "supported") if share > 0.5 else ("NS", "not_supported")
        more = {"sentence": place} | ({"share": share, "people": len(votes)} if votes else {})
        claims.append(_claim(sentence["sentence"], meant, passages, f"c{place}", **more))
    text = " ".join(claim["text"] for claim in claims)
    unit = _name_of(row["article"])
    found = {"id": f"d{number}", "topic": f"article {unit}", "text": text, "unit": unit}
    return found | {"claims": claims, "passages": passages}


def expertqa(row: dict, number: int) -> list[dict] | None:
    """ExpertQA (2309.07852): answers of several systems, whose claims experts judged.

    Supported is a claim whose ``support`` is complete. Evidence that is only an address is none.
    """
    if not isinstance(row.get("answers"), dict) or "question" not in row:
        return None
    found = []
    for model, answer in row["answers"].items():
        if answer is None:  # a table has a column for every system, and most answered a part
            continue
        claims, passages = [], []
        for claim in answer["claims"]:
            texts = [_ADDRESS.sub("", text) for text in claim.get("evidence") or []]
            own = _passages(texts, f"p{len(claims)}_")
            meant = meant_by(claim.get("support"), "support")
            claims.append(_claim(_text(claim, "claim_string"), meant, own, f"c{len(claims)}"))
            passages += own
        own = {"id": f"d{number}.{model}", "topic": row["question"], "generator": model}
        own |= {"text": answer.get("answer_string") or " ".join(c["text"] for c in claims)}
        found.append(own | {"claims": claims, "passages": passages})
    return found or None


LABELLED: dict[str, Callable[[dict, int], dict | list[dict] | None]] = {
    "aggrefact": aggrefact,
    "attribution_bench": attribution_bench,
    "claim_and_evidence": claim_and_evidence,
    "inference": inference,
    "factcheck_bench": factcheck_bench,
    "ragtruth": ragtruth,
    "faithbench": faithbench,
    "qags": qags,
    "expertqa": expertqa,
}
