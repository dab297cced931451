"""Rows to score from two sets: WildHallucinations' topics and ExpertQA's judged answers."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from pathlib import Path

from components.words import name_key
from data_builders.published.knowledge.page_sources import (
    area_of,
    evidence_of,
    field,
    report_bad_types,
    web_pages,
)
from records import BadInput, Claim, Document, Passage, iter_rows

# ExpertQA's judgement of a claim (2309.07852) to a label, as in its compute_factuality_f1.py, where
# "Unsure" is in neither class.
CORRECTNESS = {
    "Definitely correct": "S",
    "Probably correct": "S",
    "Unsure": None,
    "Likely incorrect": "NS",
    "Definitely incorrect": "NS",
}

OTHER_CATEGORY = "entity or question of another category"


def rows(files: Sequence[Path], limit: int | None) -> Iterator[tuple[Path, int, dict]]:
    all_rows = ((path, number, row) for path in files for number, row in iter_rows(path))
    return islice(all_rows, limit)


def topics(
    files: Sequence[Path],
    limit: int | None,
    titles: Container[str],
    in_wikipedia: bool,
    dropped: Counter[str],
) -> Iterator[dict]:
    """Yield WildHallucinations' entities that have a page, without duplicates."""
    seen: set[str] = set()
    for path, number, row in rows(files, limit):
        topic = row["entity"].strip()
        texts, unavailable = web_pages(path, number, row)
        dropped["web page that was not fetched or is empty"] += unavailable
        if topic in seen or topic not in titles:
            continue
        seen.add(topic)
        if in_wikipedia and row.get("wiki") != 1:
            dropped["entity that is not in Wikipedia"] += 1
            continue
        yield {
            "topic": topic,
            "group": row.get("category"),
            "wiki": row.get("wiki"),
            "perplexity": row.get("perplexity"),
            "pages": len(texts),
        }


def answers(
    files: Sequence[Path], limit: int | None, dropped: Counter[str], category: str | None = None
) -> Iterator[Document]:
    """Yield ExpertQA's answers, with the experts' judgements as labels and evidence as passages."""
    for index, (path, number, row) in enumerate(rows(files, limit)):
        if category is not None and name_key(area_of(row)) != name_key(category):
            dropped["question of another category"] += 1
            continue
        with report_bad_types("ExpertQA", path, number):
            documents = list(_read_answers(index, path, number, row, dropped))
        yield from documents


def _read_answers(
    index: int, path: Path, number: int, row: dict, dropped: Counter[str]
) -> Iterator[Document]:
    question = row["question"].strip()
    area = (row.get("metadata") or {}).get("field")
    for model, answer in field(path, number, row, "answers", dict).items():
        answer = answer or {}
        if not (answer.get("answer_string") or "").strip():
            dropped["answer without text"] += 1
        elif not question:
            dropped["answer to an empty question"] += 1
        else:
            claims, passages = _read_claims(f"{path}:{number}", answer, question, dropped)
            yield Document(
                id=f"expertqa-{index}-{model}",
                topic=question,
                text=answer["answer_string"],
                claims=claims,
                passages=passages,
                kind="normal",
                generator=model,
                field=area,
            )


def _read_claims(
    where: str, answer: dict, question: str, dropped: Counter[str]
) -> tuple[list[Claim], list[Passage]]:
    claims: list[Claim] = []
    ids: dict[str, str] = {}
    for index, claim in enumerate(answer.get("claims") or []):
        text = (claim.get("claim_string") or "").strip()
        judged = claim.get("correctness")
        if judged is not None and judged not in CORRECTNESS:
            expected = ", ".join(CORRECTNESS)
            raise BadInput([f"{where}: correctness: expected one of {expected}, got {judged!r}"])
        if not text:
            dropped["claim without text"] += 1
            continue
        evidence = evidence_of(claim)
        for piece in evidence:
            ids.setdefault(piece, f"e{len(ids)}")
        claims.append(
            Claim(
                id=f"c{len(claims)}",
                text=text,
                sentence=index,
                label=CORRECTNESS.get(judged),
                contexts=[ids[piece] for piece in evidence],
                correctness=judged,
                support=claim.get("support"),
            )
        )
    passages = [
        Passage(id=name, title=question, text=piece, source="expertqa")
        for piece, name in ids.items()
    ]
    return claims, passages
