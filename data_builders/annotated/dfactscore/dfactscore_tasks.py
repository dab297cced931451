"""Convert texts to Label Studio tasks, and exports back to judgements.

The controls of ``label_config.xml`` are repeated for each claim: ``group_0``, ``group_1``, …
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from data_builders.annotated.labelstudio_exports import read_tasks
from eval.metrics.judged_texts import JudgedClaim
from eval.verify.dfactscore.grouping import number_groups
from records import BadInput, Claim, Document, Passage

FORM = Path(__file__).parent

PEOPLE = 6  # fits on the screen
NO_PAGE, ANOTHER_PAGE, NOBODY = "no page", "another page", "nobody"
SUPPORTED, OF_ANOTHER, NOT_SUPPORTED, IRRELEVANT = (
    "supported",
    "of another person",
    "not supported",
    "irrelevant",
)
CHOICES = {
    "group": [*(f"person {number}" for number in range(1, PEOPLE + 1)), NOBODY],
    "verdict": [SUPPORTED, OF_ANOTHER, NOT_SUPPORTED, IRRELEVANT],
}


class Answer(NamedTuple):
    """An annotation of a text; ``record`` is the text's ``id``, ``topic`` and ``generator``."""

    record: dict
    annotator: str | None
    claims: list[JudgedClaim]


def to_task(document: Document, claims: Sequence[Claim], passages: Sequence[Passage]) -> dict:
    """Build a task to import."""
    pages: dict[str, list[str]] = {}
    for passage in passages:
        pages.setdefault(passage.title or "(without a title)", []).append(passage.text)
    return {
        "data": {
            "topic": document.topic,
            "text": document.text,
            "claims": [{"text": claim.text} for claim in claims],
            "pages": [{"title": t, "text": "\n\n".join(texts)} for t, texts in pages.items()],
            "titles": [{"value": title} for title in [*pages, ANOTHER_PAGE, NO_PAGE]],
            "record": {
                "id": document.id,
                "topic": document.topic,
                "generator": document.generator or "given",
            },
        }
    }


def read_answers(path: str, dropped: Counter[str]) -> list[Answer]:
    """Read the annotations of a ``.json`` export."""
    answers = []
    for task in read_tasks(path, dropped):
        try:
            record = {name: str(task.data["record"][name]) for name in ("id", "topic", "generator")}
            texts = [claim["text"] for claim in task.data["claims"]]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError
        except (KeyError, TypeError):
            fault = "record, claims: fields required; is it a task of this project?"
            raise BadInput([f"{task.where}: {fault}"]) from None
        for answer in task.answers:
            values = {
                name: text for name, entries in answer.values.items() if (text := _single(entries))
            }
            if fault := _unknown_choice(values):
                raise BadInput([f"{task.where}: {fault}"])
            claims = _judged(texts, values, dropped)
            if claims is None:
                dropped["annotation without any answer"] += 1
            else:
                answers.append(Answer(record, answer.annotator, claims))
    return answers


def _unknown_choice(values: dict[str, str]) -> str | None:
    for name, value in values.items():
        kind, _, number = name.partition("_")
        if number.isdigit() and value not in CHOICES.get(kind, {value}):
            choices = ", ".join(CHOICES[kind])
            return (
                f"{name}: {value!r} is not a choice of the project; rename it to one of {choices}"
            )
    return None


def _single(values: Sequence[object]) -> str | None:
    value = values[0] if values else None
    return value.strip() if isinstance(value, str) and value.strip() else None


def _judged(
    texts: Sequence[str], values: dict[str, str], dropped: Counter[str]
) -> list[JudgedClaim] | None:
    verdicts = [values.get(f"verdict_{k}") for k in range(len(texts))]
    named = [values.get(f"group_{k}") for k in range(len(texts))]
    if not any(verdicts) and not any(named):
        return None
    groups = number_groups([None if name in (None, NOBODY) else name for name in named])
    open_pages = [name for name in {*named} - {None, NOBODY} if _page(values, name) is None]
    dropped["person without a chosen page, counted as no page"] += len(open_pages)
    claims = []
    for k, (text, group, verdict) in enumerate(zip(texts, groups, verdicts, strict=True)):
        dropped["claim without a verdict"] += verdict is None
        entity = _title(values, named[k])
        judged = verdict in (SUPPORTED, OF_ANOTHER, NOT_SUPPORTED)
        owner = {SUPPORTED: entity, OF_ANOTHER: _page_title(values.get(f"owner_{k}"))}.get(verdict)
        claims.append(
            JudgedClaim(
                text=text,
                group=group,
                entity=entity,
                grouped=verdict == SUPPORTED if judged else None,
                independent=verdict != NOT_SUPPORTED if judged else None,
                alone=owner,
                failed=[] if verdict else ["independent", "grouped"],
            )
        )
    return claims


def _title(values: dict[str, str], person: str | None) -> str | None:
    return None if person in (None, NOBODY) else _page_title(_page(values, person))


def _page(values: dict[str, str], person: str) -> str | None:
    number = person.removeprefix("person ")
    title = values.get(f"title_{number}")
    return values.get(f"other_title_{number}") if title == ANOTHER_PAGE else title


def _page_title(title: str | None) -> str | None:
    return None if title in (NO_PAGE, ANOTHER_PAGE) else title


def keep_latest(answers: Sequence[Answer], dropped: Counter[str]) -> list[Answer]:
    """Keep the latest annotation per annotator and text; keep all unnamed ones."""
    kept: dict[tuple, Answer] = {}
    for index, answer in enumerate(answers):
        key = (answer.record["id"], answer.annotator or index)
        dropped["annotation replaced by a later one"] += key in kept
        kept[key] = answer
    return list(kept.values())
