"""VeriScore (2406.19276): ``claims_*.jsonl``, ``evidence_*.jsonl`` and verification files."""

from records.formats.row_fields import document_of

# Inconclusive claims count as not supported (2406.19276).
_VERISCORE = {"supported": "S"} | dict.fromkeys(
    ("unsupported", "contradicted", "inconclusive"), "NS"
)
_CLAIM_LISTS = ("claim_list", "claim_lst_lst")
_CLAIM_HITS = ("claim_search_results", "claim_snippets_dict", "claim_srch_res_lst")


def veriscore(row: dict, number: int) -> dict | None:
    """Read VeriScore's ``claims_*.jsonl``, ``evidence_*.jsonl`` and verification files.

    ``claim_list`` holds the claims by sentence, ``claim_search_results`` the results by claim; some
    releases use other names. Sentences without claims have null or a placeholder line. Search
    results without text are skipped. ``answer`` keeps the verdict's word. A text that ``abstained``
    does not respond.
    """
    lists = next((row[name] for name in _CLAIM_LISTS if isinstance(row.get(name), list)), None)
    if lists is None and row.get("abstained") is not True:
        return None
    hits = next((row[name] for name in _CLAIM_HITS if row.get(name)), {})
    results = row.get("claim_verification_result") or []
    answers = {r["claim"]: r["verification_result"] for r in results}
    claims, passages, names = [], [], {}
    for text, claim_hits in hits.items():
        usable = [hit for hit in claim_hits if hit.get("snippet") or hit["title"]]
        names[text] = [f"p{len(names)}_{index}" for index in range(len(usable))]
        for name, hit in zip(names[text], usable, strict=True):
            text_of = hit.get("snippet") or hit["title"]
            passages.append({"id": name, "title": hit["title"], "text": text_of})
            passages[-1]["url"] = hit.get("link")
    for index, sentence_claims in enumerate(lists or []):
        for text in sentence_claims:
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
