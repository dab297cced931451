"""``dfactscore_labels``: people's judgements of texts, from exports of Label Studio."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from data_builders.annotated.dfactscore.dfactscore_agreement import (
    agreement,
    as_markdown,
    rand_indices,
)
from data_builders.annotated.dfactscore.dfactscore_tasks import Answer, latest, read_answers
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card
from eval.metrics.judged_texts import JudgedClaim, JudgedText
from records import UserError


@dataclass
class DFActScoreLabels(Builder):
    """People's groups, pages and verdicts of biographies, and how far annotators agree.

    Of several annotators of a text the one whose groups are nearest to the others' (mean adjusted
    Rand index) gives groups and pages; of each claim the majority of the verdicts decides, that
    annotator's where they tie. ``judgements.jsonl`` is what ``eval experiment dfactscore`` takes as
    ``people``.

    Args:
        output: folder of the dataset.
        annotations: exports (``JSON`` or ``JSON-MIN``) of the project of ``dfactscore_project``.
        limit: only the first so many texts, for a trial.
        seed: of the bootstrap.
    """

    annotations: list[str]

    reads = ("annotations",)

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: {"test": f"{kind}.jsonl"} for kind in ("judgements", "answers")}

    def make(self, work: Work) -> Made:
        texts: dict[str, list[Answer]] = {}
        every = [a for path in self.annotations for a in read_answers(path, work.dropped)]
        for answer in latest(every, work.dropped):
            texts.setdefault(answer.record["id"], []).append(answer)
        if not texts:
            raise UserError("annotations: not one usable answer; see that the export is not empty")
        texts = dict(list(texts.items())[: self.limit])
        for answers in texts.values():
            _check_alike(answers)
        table = agreement([[a.claims for a in own] for own in texts.values()], self.seed)
        files = {
            "judgements.jsonl": [decided(answers) for answers in texts.values()],
            "answers.jsonl": [_row(a) for answers in texts.values() for a in answers],
        }
        page = json.dumps(table, indent=2, ensure_ascii=False) + "\n"
        return Made(files, _card(table), {"agreement.json": page})


def _check_alike(answers: Sequence[Answer]) -> None:
    texts = {tuple(claim.text for claim in answer.claims) for answer in answers}
    if len(texts) > 1:
        raise UserError(
            f"text {answers[0].record['id']!r}: its answers have different claims; give exports of "
            "one project"
        )


def decided(answers: Sequence[Answer]) -> JudgedText:
    """The judgement of a text that its annotators' answers make."""
    first = max(answers, key=lambda answer: _nearness(answer, answers))  # the first of equals
    claims = []
    for place, claim in enumerate(first.claims):
        said = [answer.claims[place] for answer in answers]
        # Who left the claim out has no vote, unless all did.
        said = [one for one in said if not one.failed] or said
        votes = Counter((c.grouped, c.independent) for c in said)
        most = max(votes.values())
        own = (claim.grouped, claim.independent)
        winners = [vote for vote, n in votes.items() if n == most]
        # An answer that is missing has the same fields as "irrelevant", and breaks no tie.
        grouped, independent = own if own in winners and not claim.failed else winners[0]
        claims.append(claim.model_copy(update=_verdict(claim, said, grouped, independent)))
    return JudgedText(
        source="people",
        **first.record,
        claims=claims,
        annotators=len(answers),
    )


def _verdict(
    claim: JudgedClaim,
    said: Sequence[JudgedClaim],
    grouped: bool | None,
    independent: bool | None,
) -> dict:
    """The verdict's fields; ``alone`` is the person's page, or the one that most voters name.

    Args:
        said: what the voters said of the claim.
    """
    alone = claim.entity if grouped else None
    if independent and not grouped:
        owners = Counter(c.alone for c in said if c.independent and not c.grouped and c.alone)
        alone = owners.most_common(1)[0][0] if owners else None
    return {
        "grouped": grouped,
        "independent": independent,
        "alone": alone,
        "failed": said[0].failed,
    }


def _nearness(answer: Answer, answers: Sequence[Answer]) -> float:
    others = [other for other in answers if other is not answer]
    indices = []
    for other in others:
        both = [(a.group, b.group) for a, b in zip(answer.claims, other.claims, strict=True)]
        indices.append(rand_indices([two for two in both if None not in two])[1])
    return sum(indices) / len(indices) if indices else 1.0


def _row(answer: Answer) -> dict:
    claims = [claim.model_dump(mode="json") for claim in answer.claims]
    return {**answer.record, "annotator": answer.annotator, "claims": claims}


def _card(table: dict) -> Card:
    compared = (
        f"{table['texts']} texts ({table['claims']} claims) have several annotators, "
        f"{table['comparisons']} comparisons."
    )
    return Card(
        pretty_name="D-FActScore of biographies, by people",
        license="other",
        tags=("factuality", "entity-ambiguity", "annotation"),
        text=f"{TEXT}\n## Agreement\n\n{compared}\n\n{as_markdown(table)}\n",
    )


TEXT = """\
Biographies of names that several people share, judged by people (2402.05629, section 4.2): whom
each claim is about (`group`), which page is about that person (`entity`), whether that page
supports the claim (`grouped`), or somebody else's (`independent`, `alone`).

- `judgements`: a row a text. Of several annotators the one whose groups are nearest to the others'
  gives groups and pages; the majority of the verdicts decides.
- `answers`: a row an annotator and text.
- `agreement.json`: every two annotators of a text compared.

`python -m eval experiment dfactscore --experiment.people '[judgements.jsonl]'` sets them beside the
automatic scores. The licence is that of the annotations and the texts.
"""
