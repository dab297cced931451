"""A valid row of everything that the readers know: our records, and other projects' rows."""

from records import (
    Document,
    Generation,
    LssExample,
    Passage,
    Preference,
    RelationPair,
    SourcePrior,
    UnliPair,
    Verdict,
)

PAIR = {"premise": "A dog runs.", "hypothesis": "An animal moves."}
CLAIM = {"id": "c0", "text": "Ann paints.", "sentence": 0, "label": "S", "contexts": ["p0"]}
PASSAGE = {"id": "p0", "title": "Ann", "text": "Ann paints.", "url": "x", "prior": 0.9}
DOCUMENT = {"id": "d", "topic": "Ann", "text": "Ann paints.", "claims": [CLAIM]}
VERDICT = {"claim": "c0", "assessor": "nli", "label": "supported", "p": 0.5, "evidence": ["p0"]}
ATOM = {"atom": "Ann paints.", "is_supported": True, "supporting_topic": "Ann"}
CITATION = {"claim": "Ann paints.", "passage": ["Title: Ann\nAnn paints.\n"], "entailed": 1}
LABEL = {"label": "supported"}

OWN = {
    UnliPair: [PAIR | {"label": 0.5, "source": "x", "weight": 1.0}],
    RelationPair: [
        PAIR | {"label": "neutral", "weight": 1.0},
        PAIR | {"label": {"entailment": 0.75, "neutral": 0.25}},
        PAIR | {"label": [0.25, 0.25, 0.5], "soft": [0.25, 0.25, 0.5]},
    ],
    LssExample: [
        {
            **{
                "reference": "Ann paints.",
                "claim": "Ann paints well.",
                "keep": [True, True, False],
            },
            "annotations": [{"lss": "Ann paints", "lss_star": "Ann paints.", "rating": 3}],
        }
    ],
    Generation: [
        {
            **{"topic": "Ann", "text": "Ann paints.", "kind": "normal", "citations": [CITATION]},
            "sentences": [{"text": "Ann paints.", "true": True}],
        }
    ],
    Document: [DOCUMENT | {"passages": [PASSAGE], "group": "g", "bin": "rare"}],
    Passage: [PASSAGE],
    SourcePrior: [{"source": "x", "prior": 0.5, "agreed": 1, "seen": 2}],
    Verdict: [VERDICT],
    Preference: [
        {"prompt": "p", "chosen": "a", "rejected": "b", "score_chosen": 1, "score_rejected": 0}
    ],
}

FOREIGN = [
    {
        **{"input": "Question: Tell me a bio of Ann.", "output": "Ann paints.", "topic": "Ann"},
        "cat": ["rare", "Asia"],
        "annotations": [
            {
                "text": "Ann paints.",
                "human-atomic-facts": [{"text": "Ann paints.", "label": "S"}],
                "model-atomic-facts": [{"text": "Ann paints."}],
            }
        ],
    },
    {"prompt": "Who is Ann?", "response": "A painter.", "model": "m", "prompt_source": "x"},
    {"topic": "Ann", "output": {"raw": "…", "parsed": "Ann paints."}},
    {
        **{"question": "Who?", "response": "Ann paints.", "abstained": False, "model": "m"},
        "claim_list": [["Ann paints."], ["No verifiable claim."], [None]],
        "claim_search_results": {"Ann paints.": [{"title": "Ann", "snippet": "x", "link": "y"}]},
        "claim_verification_result": [{"claim": "Ann paints.", "verification_result": "supported"}],
    },
    {
        **{
            "prompt": "Who?",
            "side1_response": "Ann paints.",
            "side2_response": "No.",
            "side_1": "m",
        },
        "side1_posthoc_eval_data": {
            "response": "Ann paints.",
            "all_atomic_facts": [{"sentence": "Ann paints."}],
            "checked_statements": [
                {
                    **{"sentence": "Ann paints.", "atomic_fact": "Ann paints."},
                    **{"self_contained_atomic_fact": "Ann paints.", "annotation": "Supported"},
                }
            ],
            "past_steps_jsonified_all": [{"google_searches": [{"query": "q", "result": "r"}]}],
        },
    },
    {"prompt": "Tell me a bio of Ann.", "facts": ["Ann paints."], "ChatGPT_Labels": ["S"]},
    {
        **{"input": "Who?", "output": "Ann paints.", "topic": "Ann", "cat": ["rare", "Asia"]},
        "atoms": [{"id": "a0", "text": "Ann paints.", "label": "S", "contexts": ["c0"]}],
        "contexts": [{"id": "c0", "title": "Ann", "text": "", "snippet": "x", "link": "y"}],
        "results": {
            "predictions": {"a0": "S"},
            "marginals": [{"variable": "a0", "probabilities": [0.1, 0.9]}],
        },
    },
    {"qid": 1, "name": "Ann", "output": "Ann paints.", "citations": [CITATION]},
    {
        **{"qid": 1, "name": "Ann", "generator": "m", "output": "Ann paints."},
        **{"atoms_independent": [ATOM], "atoms_grouped": [ATOM | {"supporting_topic": ["Ann"]}]},
        "citations": [CITATION],
    },
    {"question": "Who?", "output": "x [1]", "docs": [{"title": "Ann", "text": "Ann paints."}]},
    {"topic": "Ann", "response": "Ann.", "atoms": "| Ann paints. \tTrue |\n| Ann. \tFalse |"},
    {"topic": "Ann", "output": "Ann.", "atoms": [{"text": "Ann paints.", "label": "NS"}]},
    {
        **{"claim_id": 7, "claim": "It warms.", "claim_label": "SUPPORTS"},
        "evidences": [
            {
                **{"evidence_id": "e", "article": "Climate", "evidence": "It warms."},
                **{"evidence_label": "SUPPORTS", "votes": ["SUPPORTS", None], "entropy": 0.5},
            }
        ],
    },
    {
        **{"claim": "It warms.", "label": "Supported"},
        "questions": [
            {
                "question": "Does it?",
                "answers": [
                    {"answer": "Yes", "boolean_explanation": "It does.", "source_url": "x"}
                ],
            }
        ],
    },
    {"doc": "Ann paints.", "claim": "Ann.", "label": 1, "dataset": "x"},
    {
        **{"question": "Who?", "claim": "Ann.", "references": ["Ann paints."]},
        **{"attribution_label": "attributable", "src_dataset": "x"},
    },
    LABEL | {"claim": "Ann.", "evidence": ["Ann paints.", "x"], "meta": {"claim_title": "Ann"}},
    {"claim": "Ann.", "evidence": "Ann paints.", "label": "SUPPORTS", "page": "Ann"},
    {"claim": "Ann.", "evidence": "Ann paints.", "stance": "refute"},
    PAIR | {"label": 0},
    PAIR | {"label": 0.3, "nli": 1, "unli": 0.3},
    PAIR | {"label": 2, "fever_gold_label": "SUPPORTS"},
    {"context": "Ann paints.", "hypothesis": "Ann.", "label": "e"},
    {"context": "Ann paints.", "query": "Ann.", "label": "SUPPORTS"},
    {"sentence1": "Ann paints.", "sentence2": "Ann.", "gold_label": "-"},
    {
        **{"sentence_A": "Ann paints.", "sentence_B": "Ann.", "sentence_A_original": "Ann"},
        **{"entailment_label": "ENTAILMENT", "entailment_BA": "B_neutral_A"},
    },
    {
        **{"prompt": "Who?", "response": "Ann paints."},
        "sentences": {
            "sentence1": {
                **{"text": "Ann paints.", "decontext": "Ann.", "sentence_checkworthiness": "x"},
                **{"claims": ["Ann paints."], "claim_checkworthiness": ["factual"]},
                **{"claims_factuality_label": [True], "auto_evidence": [["Ann paints."]]},
                **{"stance_claim_autoEvid": [["refute"]], "human_evidence": ["Ann\nURL: x"]},
            }
        },
    },
    {"source_id": 7, "source_info": {"passages": "Ann paints."}, "task_type": "QA"},
    {"source_id": 7, "response": "Ann.", "labels": [{"label_type": "Conflict"}], "model": "m"},
    {"context": "Ann paints.", "output": "Ann.", "hallucination_labels": '[{"label_type": "x"}]'},
    {
        **{"source": "Ann paints.", "summary": "Ann.", "metadata": {"summarizer": "m"}},
        "annotations": [{"label": ["Unwanted.Intrinsic"]}],
    },
    {
        "article": "Ann paints.",
        "summary_sentences": [{"sentence": "Ann.", "responses": [{"response": "yes"}]}],
    },
    {
        "question": "Who?",
        "answers": {
            "gpt": {
                "answer_string": "Ann.",
                "claims": [
                    {
                        **{"claim_string": "Ann.", "support": "Complete"},
                        "evidence": ["[1] https://x.y Ann paints."],
                    }
                ],
            }
        },
    },
    {
        **{"claim_tokens": ["Ann", "paints"], "non_supported_spans": [False, True]},
        **{"supporting_sentences": [[0]], "evidence": ["Ann paints."], "meta": {"id": "x"}},
    },
    {"reference": "Ann paints.", "claim": "Ann.", "annotations": [{"lss": "Ann"}]},
]
# Files that are one object.
WHOLE = [
    {"per_prompt_data": [FOREIGN[4]], "side_1": "m", "side_2": "placeholder"},
    {"samples": [FOREIGN[30]]},
    {"args": {}, "data": [FOREIGN[9]]},
    {
        "autoais_log": [
            {
                **{"qid": 0, "question": "Tell me a bio of Ann", "output": "x [1]"},
                **{"claim": "x [1]", "passage": ["Title: Ann\nx"], "model_output": 1},
            }
        ]
    },
    {"decisions": [[ATOM]], "global_decisions": [[ATOM]]},
]
