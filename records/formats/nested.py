"""Projects whose rows no path describes: facts and evidence stand in parallel lists or tables."""

import json
import re

# HALoGEN's table rows: ``| An atom. <tab> True |``.
_ATOM = re.compile(r"^\|?\s*(.+?)\s*(?:\t\s*(True|False))?\s*\|?$")
# Annotators quote pages with their address before or after the quote.
_ADDRESSES = re.compile(r"^\s*\[\d+\]|(?:\b(?:URL|Link):\s*)?https?://\S+")
# Values of FactReasoner's ``predictions``.
_PREDICTED = {"S": "supported", "NS": "not_supported", "C": "contradicted", "U": "undecided"}
_CLAIM_LISTS = ("claim_list", "claim_lst_lst")
_CLAIM_HITS = ("claim_search_results", "claim_snippets_dict", "claim_srch_res_lst")
# SICK's label of the swapped pair, e.g. ``B_neutral_A``.
_SWAPPED = {"entails": "entailment", "neutral": "neutral", "contradicts": "contradiction"}


def without_addresses(texts: list[str] | None) -> list[str] | None:
    """Remove web addresses and their numbers from quoted evidence."""
    return texts and [_ADDRESSES.sub("", text) for text in texts]


def word_of_spans(row: dict) -> str | None:
    """Return the word for a text by its marked unsupported spans (RAGTruth, LettuceDetect).

    Responses whose ``quality`` is not good (wrong refusal, truncated) have no label, as in
    RAGTruth's scripts.
    """
    spans = row.get("hallucination_labels", row.get("labels"))
    if row.get("quality") not in (None, "good"):
        return "unknown"
    try:
        spans = json.loads(spans) if isinstance(spans, str) else spans
    except ValueError:
        raise ValueError(f"hallucination_labels: expected JSON, got {spans[:60]!r}") from None
    if not spans:
        return None if spans is None else "supported"
    kinds = [str(span.get("label_type", span.get("label"))).lower() for span in spans]
    return "refuted" if any("conflict" in kind for kind in kinds) else "nei"


def halogen_atoms(atoms: str | list[dict] | None) -> list[dict]:
    """Return atoms of a table of lines, or of a list; atoms without a verdict have no label."""
    if isinstance(atoms, list):
        return atoms
    lines = [line.strip() for line in (atoms or "").splitlines() if line.strip("| \t")]
    return [dict(zip(("text", "label"), _ATOM.match(line).groups(), strict=True)) for line in lines]


def halogen_text(row: dict) -> str | None:
    """Return the text, unless it is only the topic and the atoms replace it."""
    text = row.get("output", row.get("response"))
    is_topic = isinstance(text, str) and text.strip() == str(row.get("topic", "")).strip()
    return None if is_topic and halogen_atoms(row.get("atoms")) else text


def factcheck_claims(sentence: dict) -> list[dict]:
    """Return the claims of a sentence of Factcheck-Bench, with evidence and stances.

    Claims that are not factual are irrelevant. The annotators' quotes follow the retrieved
    evidence, without addresses.
    """
    columns = ("claims", "claim_checkworthiness", "claims_factuality_label", "auto_evidence")
    columns += ("stance_claim_autoEvid", "human_evidence")
    claims = []
    for text, worth, verdict, texts, stances, quoted in zip(
        *(sentence[name] for name in columns), strict=True
    ):
        evidence = [{"text": passage} for passage in texts]
        for passage, stance in zip(evidence, stances, strict=False):
            passage["evidence_label"] = stance
        if quoted and quoted.strip().upper() != "NA":
            evidence.append({"text": _ADDRESSES.sub("", quoted).strip()})
        word = {"true": "supported", "false": "refuted"}.get(str(verdict).lower(), "unknown")
        label = word if worth == "factual" else "IR"
        claims.append({"text": text, "worth": worth, "label": label, "evidence": evidence})
    return claims


def factreasoner_atoms(row: dict) -> list[dict]:
    """Return the atoms, with the recorded verdict of an output's ``results``.

    Marginals take precedence, since FactReasoner's predictions label undecided atoms not supported.
    """
    results = row.get("results") or {}
    p = {m["variable"]: m["probabilities"][1] for m in results.get("marginals") or []}
    recorded = {}
    for name, prediction in (results.get("predictions") or {}).items():
        if name in p:
            side = "supported" if p[name] > 0.5 else "contradicted"
            recorded[name] = {"label": "undecided" if p[name] == 0.5 else side, "p": p[name]}
        elif prediction in _PREDICTED:
            recorded[name] = {"label": _PREDICTED[prediction]}
    context_ids = {context["id"] for context in row["contexts"]}
    for index, atom in enumerate(row["atoms"]):
        for name in atom.get("contexts") or []:
            if name not in context_ids:
                raise ValueError(f"atoms.{index}.contexts: {name!r} is not among the contexts")
    return [
        atom | {"contexts": atom.get("contexts") or [], "recorded": recorded.get(atom["id"])}
        for atom in row["atoms"]
    ]


def safe_sides(row: dict) -> dict[str, dict]:
    """Return SAFE's rated sides of a row, else the sides with a response, with their facts."""
    sides = {}
    rated = any(row.get(f"side{number}_posthoc_eval_data") for number in "12")
    for number in "12":
        data = row.get(f"side{number}_posthoc_eval_data")
        response, generator = row.get(f"side{number}_response"), row.get(f"side_{number}")
        # Absent sides are called none or placeholder.
        if data if rated else response and generator not in ("none", "placeholder"):
            side = {"text": response or data["response"], "generator": generator or f"side{number}"}
            sides[f"side{number}"] = side | ({"claims": _safe_claims(data)} if data else {})
    return sides


def _safe_claims(data: dict) -> list[dict]:
    order = {fact["sentence"]: place for place, fact in enumerate(data["all_atomic_facts"])}
    checked, steps = data["checked_statements"], data.get("past_steps_jsonified_all") or []
    claims = [fact | {"place": order.get(fact["sentence"], 0)} for fact in checked]
    if len(steps) == len(checked):  # else steps of rated facts only, which name no fact
        for claim, step in zip(claims, steps, strict=True):
            searches = step.get("google_searches") or []
            claim["searches"] = [s for s in searches if (s.get("result") or "").strip()]
    return claims


def veriscore_claims(row: dict) -> list[dict]:
    """Return the claims of VeriScore's files, with their results and the verdict's word.

    Sentences without claims have null or a placeholder line; some releases use other names.
    """
    lists = next((row[name] for name in _CLAIM_LISTS if isinstance(row.get(name), list)), [])
    hits = next((row[name] for name in _CLAIM_HITS if row.get(name)), {})
    results = row.get("claim_verification_result") or []
    answers = {result["claim"]: result["verification_result"] for result in results}
    return [
        {"text": text, "sentence": index, "answer": answers.get(text), "hits": hits.get(text)}
        for index, sentence_claims in enumerate(lists)
        for text in sentence_claims or ()
        if text and text.strip() and not text.startswith("No verifiable claim")
    ]


def sick_pairs(row: dict) -> list[dict]:
    """Return SICK's pair and the pair with the sentences swapped, if its label is present."""
    first, second = row["sentence_A"], row["sentence_B"]
    label = row.get("entailment_label", row.get("entailment_judgment", row.get("label")))
    pairs = [{"premise": first, "hypothesis": second, "label": label}]
    if row.get("entailment_BA"):
        word = str(row["entailment_BA"]).split("_")[1:2]
        if not word or word[0] not in _SWAPPED:
            raise ValueError(
                f"entailment_BA: expected e.g. B_entails_A, got {row['entailment_BA']!r}"
            )
        pairs.append({"premise": second, "hypothesis": first, "label": _SWAPPED[word[0]]})
    unit = row.get("sentence_A_original")
    return [pair | {"group": unit or first} for pair in pairs] if len(pairs) > 1 else pairs
