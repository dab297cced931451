"""``attacks``: adversarial texts that rules make of documents, kept where they are what they say.

Beyond the two adversaries of Core (arXiv 2407.03572): an attack takes a document, with labelled
claims where it needs them, and gives a text that should not score higher. It says what it keeps
(``validity.py``), and a text that breaks this, one whose facts changed, is invalid and no success.
Each attack is a class with its source in its docstring; any other one is named by ``class_path``.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import ValidationError

from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import Card
from data_builders.journal import identity_of, journalled
from data_builders.written.attacks.attack import Attack
from data_builders.written.attacks.attacked import Attacked, NotApplicable
from data_builders.written.attacks.edits import Corrected, Edited
from data_builders.written.attacks.instructions import Instructed, InstructedPassage
from data_builders.written.attacks.montage import Montage
from data_builders.written.attacks.others import Merged, Namesake, Related
from data_builders.written.attacks.repetition import NearParaphrases, Split
from data_builders.written.attacks.triviality import Alternatives, Hedged, HedgedTrivia
from data_builders.written.attacks.validity import Asked, Promise, unentailed
from data_builders.written.attacks.world import World
from data_builders.written.corruption.sources import Source, labelled, told_apart
from eval.metrics.probabilities import labelled_precision
from eval.stages import EntailmentModel
from records import (
    Claim,
    Document,
    Passage,
    UserError,
    first_fault,
    json_line,
    read_records,
    sha256_text,
)
from records.abstention import responds
from records.errors import first_line
from records.given import class_of, one_each

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
A_WRITE = 64


class Tried(NamedTuple):
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
        output: folder of the dataset.
        documents: files of documents, with labelled ``claims`` where an attack needs them (or
            another project's, by its field names), of generations whose ``sentences`` have a
            truth, or ``scored.jsonl`` files of ``eval score``.
        attacks: kind of text to an attack, by ``class_path``; null for all that are shipped.
        pages: files of passages; what one says is true of whom its title names.
        entailment: a relation model that is to confirm what attacks keep, beside the words.
        source_kind: only the documents of this kind, e.g. ``normal``; null takes all.
        verdict: whose verdicts are the labels of scored texts, where there are several.
        seed: of all choices.
        limit: only the first so many documents, for a trial.
    """

    documents: list[str]
    attacks: dict[str, Attack] | None = None
    pages: list[str] = field(default_factory=list)
    entailment: EntailmentModel | None = None
    source_kind: str | None = None
    verdict: str | None = None

    reads: ClassVar = ("documents", "pages")

    def faults(self) -> Iterable[str]:
        """No attack, or kinds that name no file."""
        if not self._attacks:
            yield "attacks: none; give at least one, or null for all that are shipped"
        for kind, attack in self._attacks.items():
            if not isinstance(getattr(attack, "keeps", None), Promise):
                yield f"attacks: {kind}: {class_of(attack)} has no Promise `keeps`; give it one"
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
        """The documents, the valid texts of each attack, and all that are invalid."""
        return {kind: {"test": f"{kind}.jsonl"} for kind in (HONEST, *self._attacks, INVALID)}

    def plan(self) -> list[Step]:
        """One step an attack: on how many documents it is tried."""
        number = len(self._sources())
        return [Step(kind, type(a).__name__, number, "texts") for kind, a in self._attacks.items()]

    def config(self) -> dict[str, object]:
        """The options, of the attacks what decides them."""
        attacks = {kind: attack.identity for kind, attack in self._attacks.items()}
        return super().config() | {
            "attacks": attacks,
            "entailment": identity_of(self.entailment),
        }

    def make(self, work: Work) -> Made:
        """The texts, and how many were valid, invalid, and not to be had."""
        for kind, attack in self._attacks.items():
            try:
                json.dumps(attack.identity)
            except TypeError as error:
                raise UserError(
                    f"attacks: {kind}: identity of {class_of(attack)}: {error}; keep what is no "
                    "option under a name that begins with _"
                ) from None
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
        files: dict[str, list] = {f"{HONEST}.jsonl": [_honest(source) for source in sources]}
        invalid: list[Document] = []
        figures = {}
        for kind, attack in self._attacks.items():
            tried = self._tried(kind, attack, sources, world, known, work)
            valid = [one.text for one in tried if one.text is not None and one.why is None]
            invalid += [_marked(one) for one in tried if one.text is not None and one.why]
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
        told_apart(self.documents)
        found: dict[str, Source] = {}
        for path in self.documents:
            for document in labelled(path, self.verdict):
                if self.source_kind is not None and document.kind != self.source_kind:
                    continue
                known = {"generator": document.generator or Path(path).stem}
                name = f"{Path(path).stem}/{document.id}"
                if name in found:
                    raise UserError(f"documents: {name} stands twice; give each an id of its own")
                found[name] = Source(name, document.model_copy(update=known))
        if not found:
            raise UserError(f"documents: no text of source_kind {self.source_kind!r}")
        return list(found.values())[: self.limit]

    def _tried(
        self,
        kind: str,
        attack: Attack,
        sources: Sequence[Source],
        world: World,
        known: str,
        work: Work,
    ) -> list[Tried]:
        given = [[s.id, s.document.model_dump(mode="json")] for s in sources]
        decides = [attack.identity, identity_of(self.entailment), self.seed, known, given]
        rows = journalled(
            work.journal(kind, *decides),
            {source.id: source for source in sources},
            lambda some: self._rows(kind, attack, list(some.values()), world),
            unit=kind,
            at_a_time=A_WRITE,
        )
        return [_read(rows[source.id]) for source in sources]

    def _rows(
        self, kind: str, attack: Attack, sources: Sequence[Source], world: World
    ) -> Iterator[dict]:
        # A text that does not respond has no score that an attack could raise.
        told = [source for source in sources if responds(source.document)]
        rngs = [random.Random(f"{self.seed}:{kind}:{source.id}") for source in told]
        who = class_of(attack)
        tried = one_each(who, attack.attack_all(told, world, rngs, self.seed), told, "document")
        made = {source.id: one for source, one in zip(told, tried, strict=True)}
        for name, one in made.items():
            _check(f"{who}: document {name!r}", one)
        whole = [(s, one) for s in told if isinstance(one := made[s.id], Attacked)]
        refuted = iter(self._refuted(attack, whole, world))
        for source in sources:
            one = made.get(source.id, NotApplicable("the text does not respond"))
            if not isinstance(one, Attacked):
                yield {"text": None, "why": str(one), "where": ""}
                continue
            fault = next(attack.keeps.faults(source, one, world), None)
            failed = next(refuted)
            if fault is None and failed is not None:
                fault = ("the relation model does not confirm it", failed.hypothesis)
            text = _in_json(kind, attack, source, one)
            yield {"text": text, "why": fault and fault[0], "where": fault[1] if fault else ""}

    def _refuted(
        self, attack: Attack, whole: Sequence[tuple[Source, Attacked]], world: World
    ) -> list[Asked | None]:
        if self.entailment is None:
            return [None] * len(whole)
        asked = [list(attack.keeps.asked(source, one, world)) for source, one in whole]
        every = list(dict.fromkeys(pair for own in asked for pair in own))
        bad = set(unentailed(every, self.entailment))
        return [next((pair for pair in own if pair in bad), None) for own in asked]


def _honest(source: Source) -> Document:
    return source.document.model_copy(update={"id": source.id, "kind": HONEST})


def _check(who: str, one: object) -> None:
    if isinstance(one, NotApplicable):
        return
    if not isinstance(one, Attacked):
        raise UserError(f"{who}: gave {one!r:.80}; give an Attacked, or raise NotApplicable")
    if not isinstance(one.text, str) or not one.text.strip():
        raise UserError(f"{who}: gave no text; raise NotApplicable where there is none")
    if not isinstance(one.claims, list) or not all(isinstance(c, Claim) for c in one.claims):
        raise UserError(f"{who}: claims: give a list of Claim")


def _in_json(kind: str, attack: Attack, source: Source, one: Attacked) -> dict:
    who = f"{class_of(attack)}: document {source.id!r}"
    try:
        made = _document(kind, attack, source, one).model_dump(mode="json", exclude_none=True)
        Document.model_validate(made)
        json_line(made).encode()
    except ValidationError as error:
        raise first_fault(who, error) from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{who}: {first_line(error)}") from None
    return made


def _document(kind: str, attack: Attack, source: Source, one: Attacked) -> Document:
    given = source.document
    return Document(
        id=f"{source.id} {kind}",
        topic=given.topic,
        text=one.text,
        claims=one.claims,
        passages=given.passages if one.passages is None else one.passages,
        group=given.group,
        bin=given.bin,
        kind=kind,
        generator=given.generator,
        clean=source.id,
        keeps=attack.keeps.name,
        **({"person": source.person} if source.person else {}),
        **one.more,
    )


def _read(row: Mapping[str, Any]) -> Tried:
    text = row["text"] and Document.model_validate(row["text"])
    return Tried(text, row["why"], row["where"])


def _marked(one: Tried) -> Document:
    return one.text.model_copy(update={"invalid": one.why, "where": one.where})


def _figures(
    attack: Attack, tried: Sequence[Tried], sources: Sequence[Source]
) -> dict[str, object]:
    there = [(one.text, s) for one, s in zip(tried, sources, strict=True) if one.text is not None]
    valid = [(t, s) for (t, s), one in zip(there, _made(tried), strict=True) if one.why is None]
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
        "invalid": _counted(one.why for one in _made(tried) if one.why),
        "not_applicable": _counted(one.why for one in tried if one.text is None),
        "claims_a_text": round(float(np.mean([len(t.claims or []) for t, _ in valid])), 1)
        if valid
        else None,
        "labelled_precision": dict(zip(("attacked", "documents"), means, strict=True)),
    }


def _made(tried: Sequence[Tried]) -> list[Tried]:
    return [one for one in tried if one.text is not None]


def _counted(reasons: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(map(str, reasons)).items()))


CARD = Card(
    pretty_name="Rule-made attacks on factuality metrics",
    license="other",
    task_categories=("text-classification",),
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
