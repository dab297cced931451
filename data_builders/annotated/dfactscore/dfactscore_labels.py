"""``dfactscore_labels``: human judgements of texts, from Label Studio exports."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from data_builders.annotated.dfactscore.annotator_agreement import (
    agreement,
    as_markdown,
    rand_indices,
)
from data_builders.annotated.dfactscore.dfactscore_tasks import Answer, keep_latest, read_answers
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card, read_card
from eval.metrics.judged_texts import JudgedClaim, JudgedText
from records import UserError


@dataclass
class DFActScoreLabels(Builder):
    """Human groups, pages and verdicts of biographies, with inter-annotator agreement.

    If a text has several annotators, groups and pages are those of the annotator with the highest
    mean adjusted Rand index to the others. Verdicts are decided by majority; ties go to that
    annotator. ``judgements.jsonl`` is the ``people`` option of ``eval experiment dfactscore``.

    Args:
        output: folder of the dataset.
        annotations: exports (``JSON``) of a ``dfactscore_project``.
        limit: use only the first N texts, for a trial.
        seed: seed of the bootstrap.
    """

    annotations: list[str]

    reads = ("annotations",)

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: {"test": f"{kind}.jsonl"} for kind in ("judgements", "answers")}

    def make(self, work: Work) -> Made:
        texts: dict[str, list[Answer]] = {}
        answers = [a for path in self.annotations for a in read_answers(path, work.dropped)]
        for answer in keep_latest(answers, work.dropped):
            texts.setdefault(answer.record["id"], []).append(answer)
        if not texts:
            raise UserError("annotations: no usable answer; check that the export is not empty")
        texts = dict(list(texts.items())[: self.limit])
        for annotations in texts.values():
            _check_alike(annotations)
        table = agreement(
            [[a.claims for a in annotators] for annotators in texts.values()], self.seed
        )
        files = {
            "judgements.jsonl": [merge_annotations(annotations) for annotations in texts.values()],
            "answers.jsonl": [_row(a) for annotations in texts.values() for a in annotations],
        }
        page = json.dumps(table, indent=2, ensure_ascii=False) + "\n"
        return Made(files, _card(table), {"agreement.json": page})


def _check_alike(answers: Sequence[Answer]) -> None:
    texts = {tuple(claim.text for claim in answer.claims) for answer in answers}
    if len(texts) > 1:
        raise UserError(
            f"text {answers[0].record['id']!r}: its annotations have different claims; "
            "use exports of one project"
        )


def merge_annotations(answers: Sequence[Answer]) -> JudgedText:
    """Merge the annotations of a text into one judgement."""
    first = max(answers, key=lambda answer: _nearness(answer, answers))  # ties: the first
    claims = []
    for index, claim in enumerate(first.claims):
        voters = [answer.claims[index] for answer in answers]
        # Annotators who skipped the claim do not vote, unless all did.
        voters = [vote for vote in voters if not vote.failed] or voters
        votes = Counter((c.grouped, c.independent) for c in voters)
        most = max(votes.values())
        preferred = (claim.grouped, claim.independent)
        winners = [pair for pair, n in votes.items() if n == most]
        # A missing verdict has the same fields as "irrelevant" and breaks no tie.
        grouped, independent = (
            preferred if preferred in winners and not claim.failed else winners[0]
        )
        claims.append(claim.model_copy(update=_verdict(claim, voters, grouped, independent)))
    return JudgedText(source="people", **first.record, claims=claims, annotators=len(answers))


def _verdict(
    claim: JudgedClaim,
    voters: Sequence[JudgedClaim],
    grouped: bool | None,
    independent: bool | None,
) -> dict:
    """Return the verdict fields; ``alone`` is the person's page or the one most voters name."""
    alone = claim.entity if grouped else None
    if independent and not grouped:
        owners = Counter(c.alone for c in voters if c.independent and not c.grouped and c.alone)
        alone = owners.most_common(1)[0][0] if owners else None
    return {
        "grouped": grouped,
        "independent": independent,
        "alone": alone,
        "failed": voters[0].failed,
    }


def _nearness(answer: Answer, answers: Sequence[Answer]) -> float:
    rest = [other for other in answers if other is not answer]
    indices = []
    for other in rest:
        both = [(a.group, b.group) for a, b in zip(answer.claims, other.claims, strict=True)]
        indices.append(rand_indices([labels for labels in both if None not in labels])[1])
    return sum(indices) / len(indices) if indices else 1.0


def _row(answer: Answer) -> dict:
    claims = [claim.model_dump(mode="json") for claim in answer.claims]
    return {**answer.record, "annotator": answer.annotator, "claims": claims}


def _card(table: dict) -> Card:
    counts = {name: table[name] for name in ("texts", "claims", "comparisons")}
    return read_card("dfactscore_labels", agreement=as_markdown(table), **counts)
