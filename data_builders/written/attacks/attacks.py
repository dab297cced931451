"""``attacks``: adversarial texts that rules make of documents, kept where they are what they say.

Beyond the two adversaries of Core (arXiv 2407.03572): an attack takes a document, with labelled
claims where it needs them, and gives a text that should not score higher. It says what it keeps
(``validity.py``), and a text that breaks this, one whose facts changed, is invalid and no success.
Each attack is a class with its source in its docstring; any other one is named by ``class_path``.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import ValidationError

from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import Card
from data_builders.journal import identity_of, journalled
from data_builders.written.attacks.attack import Attack
from data_builders.written.attacks.edits import Corrected, Edited
from data_builders.written.attacks.instructions import Instructed, InstructedPassage
from data_builders.written.attacks.montage import Montage
from data_builders.written.attacks.other_people import Merged, Namesake, Related
from data_builders.written.attacks.repetition import NearParaphrases, Split
from data_builders.written.attacks.triviality import Alternatives, Hedged, HedgedTrivia
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source, read_sources
from data_builders.written.claims.validity import Attacked, Entailment, Invariant, NotApplicable
from eval.metrics.probabilities import labelled_precision
from eval.stages import EntailmentModel, entails
from records import Document, Passage, UserError, read_records, sha256_text, to_bad_input
from records.abstention import responds

# What is made where nothing is said.
SHIPPED: dict[str, type[Attack]] = {
    "paraphrased": NearParaphrases,
    "alternatives": Alternatives,
    "trivia": HedgedTrivia,
    "hedged": Hedged,
    "split": Split,
    "namesake": Namesake,
    "merged": Merged,
    "related": Related,
    "montage": Montage,
    "edited": Edited,
    "corrected": Corrected,
    "instructed": Instructed,
    "instructed_passage": InstructedPassage,
}
HONEST = "normal"
INVALID = "invalid"
# Documents of which a kill loses the texts at most.
DOCUMENTS_PER_WRITE = 64


class AttackResult(NamedTuple):
    """What became of a document under an attack.

    Attributes:
        text: the record; ``None`` where the attack does not apply.
        why: why it does not, or why the text is invalid.
        where: in which claim.
    """

    text: Document | None
    why: str | None = None
    where: str = ""


@dataclass
class Attacks(Builder):
    """Adversarial texts that rules make of documents, and what they keep, checked.

    Args:
        documents: files of documents, with labelled ``claims`` where an attack needs them (or
            another project's, by its field names), of generations whose ``sentences`` have a
            truth, or ``scored.jsonl`` files of ``eval score``.
        attacks: kind of text to an attack, by ``class_path``; null for all that are shipped.
        pages: files of passages; what one says is true of whom its title names.
        entailment: a relation model that is to confirm what attacks keep, beside the words.
        source_kind: only the documents of this kind, e.g. ``normal``; null takes all.
        verdict: whose verdicts are the labels of scored texts, where there are several.
    """

    documents: list[str]
    attacks: dict[str, Attack] | None = None
    pages: list[str] = field(default_factory=list)
    entailment: EntailmentModel | None = None
    source_kind: str | None = None
    verdict: str | None = None

    reads: ClassVar = ("documents", "pages")

    def faults(self) -> Iterable[str]:
        if not self._attacks:
            yield "attacks: none; give at least one, or null for all that are shipped"
        for kind, attack in self._attacks.items():
            if not isinstance(getattr(attack, "keeps", None), Invariant):
                yield f"attacks: {kind}: expected an Invariant in `keeps`"
            if not re.fullmatch(r"\w+", kind) or kind in (HONEST, INVALID):
                yield (
                    f"attacks: {kind!r}: use letters, digits and _ only, and another name than "
                    f"{HONEST} and {INVALID}"
                )

    @cached_property
    def _attacks(self) -> dict[str, Attack]:
        if self.attacks is None:
            return {kind: attack() for kind, attack in SHIPPED.items()}
        return self.attacks

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: {"test": f"{kind}.jsonl"} for kind in (HONEST, *self._attacks, INVALID)}

    def plan(self) -> list[Step]:
        number = len(self._sources())
        return [Step(kind, type(a).__name__, number, "texts") for kind, a in self._attacks.items()]

    def config(self) -> dict[str, object]:
        attacks = {kind: attack.identity for kind, attack in self._attacks.items()}
        return super().config() | {"attacks": attacks, "entailment": identity_of(self.entailment)}

    def make(self, work: Work) -> Made:
        sources = self._sources()
        pages = [p for path in self.pages for p in read_records(path, Passage)]
        world = World(sources, pages)
        known = sha256_text(
            json.dumps(
                [
                    [asdict(page) for page in world.pages.values()],
                    [one.model_dump(mode="json") for own in world.passages.values() for one in own],
                ]
            )
        )
        files: dict[str, list] = {
            f"{HONEST}.jsonl": [
                source.document.model_copy(update={"id": source.id, "kind": HONEST})
                for source in sources
            ]
        }
        invalid: list[Document] = []
        figures = {}
        for kind, attack in self._attacks.items():
            tried = self._tried(kind, attack, sources, world, known, work)
            valid = [one.text for one in tried if one.text is not None and one.why is None]
            invalid += [
                one.text.model_copy(update={"invalid": one.why, "where": one.where})
                for one in tried
                if one.text is not None and one.why
            ]
            files[f"{kind}.jsonl"] = valid
            figures[kind] = _figures(attack, tried, sources)
            for one in tried:
                if one.why is not None:
                    what = "not applicable" if one.text is None else "invalid"
                    work.dropped[f"{kind}: {what}: {one.why}"] += 1
        if not any(files[f"{kind}.jsonl"] for kind in self._attacks):
            raise UserError(f"no attack gave a valid text ({work.why()})")
        files[f"{INVALID}.jsonl"] = invalid
        told = {"statistics.json": json.dumps(figures, indent=2, ensure_ascii=False) + "\n"}
        return Made(files, CARD, told)

    def _sources(self) -> list[Source]:
        return read_sources(self.documents, self.source_kind, self.verdict)[: self.limit]

    def _tried(
        self,
        kind: str,
        attack: Attack,
        sources: Sequence[Source],
        world: World,
        known: str,
        work: Work,
    ) -> list[AttackResult]:
        given = [[s.id, s.document.model_dump(mode="json")] for s in sources]
        decides = [attack.identity, identity_of(self.entailment), self.seed, known, given]
        rows = journalled(
            work.journal(kind, *decides),
            {source.id: source for source in sources},
            lambda some: self._rows(kind, attack, list(some.values()), world),
            unit=kind,
            at_a_time=DOCUMENTS_PER_WRITE,
        )
        found = (rows[source.id] for source in sources)
        return [
            AttackResult(
                row["text"] and Document.model_validate(row["text"]), row["why"], row["where"]
            )
            for row in found
        ]

    def _rows(
        self, kind: str, attack: Attack, sources: Sequence[Source], world: World
    ) -> Iterator[dict]:
        # A text that does not respond has no score that an attack could raise.
        told = [source for source in sources if responds(source.document)]
        rngs = [random.Random(f"{self.seed}:{kind}:{source.id}") for source in told]
        tried = attack.attack_all(told, world, rngs, self.seed)
        made = {source.id: one for source, one in zip(told, tried, strict=True)}
        whole = [(s, one) for s in told if not isinstance(one := made[s.id], NotApplicable)]
        refuted = iter(self._refuted(attack, whole, world))
        for source in sources:
            one = made.get(source.id, NotApplicable("the text does not respond"))
            if isinstance(one, NotApplicable):
                yield {"text": None, "why": str(one), "where": ""}
                continue
            fault = next(attack.keeps.faults(source, one, world), None)
            failed = next(refuted)
            if fault is None and failed is not None:
                fault = ("the relation model does not confirm it", failed.hypothesis)
            text = _document(kind, attack, source, one)
            yield {
                "text": text.model_dump(mode="json", exclude_none=True),
                "why": fault and fault[0],
                "where": fault[1] if fault else "",
            }

    def _refuted(
        self, attack: Attack, whole: Sequence[tuple[Source, Attacked]], world: World
    ) -> list[Entailment | None]:
        asked = [list(attack.keeps.entailments(source, one, world)) for source, one in whole]
        every = list(dict.fromkeys(pair for own in asked for pair in own))
        if self.entailment is None or not every:
            return [None] * len(whole)
        table = self.entailment.relations([(one.premise, one.hypothesis) for one in every])
        # A pair that the model cannot judge is not confirmed, either.
        bad = {
            one
            for one, yes, row in zip(every, entails(table), table, strict=True)
            if bool(yes) != one.must or np.isnan(row[0])
        }
        return [next((pair for pair in own if pair in bad), None) for own in asked]


def _document(kind: str, attack: Attack, source: Source, one: Attacked) -> Document:
    given = source.document
    row = {
        "id": f"{source.id} {kind}",
        "topic": given.topic,
        "text": one.text,
        "claims": one.claims,
        "passages": given.passages if one.passages is None else one.passages,
        "group": given.group,
        "bin": given.bin,
        "kind": kind,
        "generator": given.generator,
        "clean": source.id,
        "keeps": attack.keeps.name,
        **({"person": source.person} if source.person else {}),
        **one.more,
    }
    try:
        return Document.model_validate(row)
    except ValidationError as error:
        raise to_bad_input(f"{type(attack).__name__}: document {source.id!r}", error) from None


def _figures(
    attack: Attack, tried: Sequence[AttackResult], sources: Sequence[Source]
) -> dict[str, object]:
    made = [(one, s) for one, s in zip(tried, sources, strict=True) if one.text is not None]
    valid = [(one.text, source) for one, source in made if one.why is None]
    pairs = [
        (labelled_precision(text.claims or []), labelled_precision(source.claims))
        for text, source in valid
    ]
    both = [pair for pair in pairs if None not in pair]
    means = np.mean(both, axis=0).round(3).tolist() if both else [None, None]
    return {
        "keeps": attack.keeps.name,
        "valid": len(valid),
        "topics": len({text.topic for text, _ in valid}),
        "invalid": _counted(one.why for one, _ in made if one.why),
        "not_applicable": _counted(one.why for one in tried if one.text is None),
        "claims_a_text": round(float(np.mean([len(t.claims or []) for t, _ in valid])), 1)
        if valid
        else None,
        "labelled_precision": dict(zip(("attacked", "documents"), means, strict=True)),
    }


def _counted(reasons: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(map(str, reasons)).items()))


CARD = Card(
    pretty_name="Rule-made attacks on factuality metrics",
    license="other",
    tags=("factuality", "adversarial", "robustness"),
    text="""\
Texts that rules made of documents, to see whether a factuality metric can be gamed.

- `normal.jsonl`: the documents as they were; `clean` of an attacked text names one of them.
- one file an attack (`kind`): the texts that are what the attack says. `keeps` is what that is:
  `facts` (the same claims with the same labels: a metric should not move), `truth` (all is true,
  and little is said), truth of a namesake or of another topic, or falsehoods made true (a metric
  should rise). `claims` have labels by construction, and name in `rests_on` the claims of the
  document, or the facts of others, that they rest on. Montage lists in `suggests` which claim is
  told as the earlier one and was not; corrections list in `corrections` what was exchanged.
- `invalid.jsonl`: texts that broke this, with the reason (`invalid`, `where`); they are no success
  of an attack and stand nowhere else.
- `statistics.json`: valid, invalid, not applicable with reasons; labelled precision of the attacked
  texts and of their documents.

A label says whether a claim is true (`S`), not whether it is worth saying. **Claims marked `NS` may
be false statements about real people; never show them without their mark.** For measuring metrics,
not for training. The licence is that of the documents.
""",
)
