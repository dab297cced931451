"""``attacks``: rule-based adversarial texts that are bad by their gold score.

These attacks go beyond the two adversaries of Core (arXiv 2407.03572). Each takes a document with
labelled claims, e.g. of ``ladders``, and returns a text that should not score higher. A text whose
gold F1 is above 0.6, or that breaks the attack's invariant (``validity.py``), is invalid.
Each attack is a class whose docstring cites its source; ``class_path`` selects a custom one.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, get_args

import numpy as np
from jsonargparse.typing import PositiveInt
from pydantic import ValidationError

from components.gold import add_label_gold
from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import read_card
from data_builders.evenness import shared_runs
from data_builders.journal import journal_rows
from data_builders.written.attacks.attack import Attack
from data_builders.written.attacks.attack_gold import attack_gold, credited_facts
from data_builders.written.attacks.discourse import Framed, Hidden
from data_builders.written.attacks.frames import DiscourseForm, HiddenForm
from data_builders.written.attacks.instructions import Instructed, InstructedPassage
from data_builders.written.attacks.judge import Falsified, HalfFalse, Phrased
from data_builders.written.attacks.other_people import Merged, Namesake, OffTopic, Related
from data_builders.written.attacks.phrases import Bank, phrase_bank
from data_builders.written.attacks.repetition import (
    FewFacts,
    NearParaphrases,
    Split,
)
from data_builders.written.attacks.triviality import Alternatives, HedgedTrivia
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source, read_sources
from data_builders.written.claims.validity import (
    Attacked,
    Fault,
    Invariant,
    NotApplicable,
)
from eval.metrics.probabilities import labelled_precision
from records import Document, Gold, Passage, UserError, read_records, sha256_text, to_bad_input
from records.abstention import responds

# The attacks that are built by default.
SHIPPED: dict[str, Attack] = {
    "paraphrased": NearParaphrases(),
    "split": Split(),
    "few_facts": FewFacts(),
    "repeated": FewFacts("same"),
    "reworded": FewFacts("reworded"),
    "padded": FewFacts("trivia"),
    "alternatives": Alternatives(),
    **{
        f"{kind}_{bank}": Phrased(kind, bank)
        for family in ("judge", "relevance")
        for kind in phrase_bank()[family]
        for bank in ("seen", "unseen")
    },
    "namesake": Namesake(),
    "merged": Merged(),
    "number_off": Falsified("number"),
    "name_exchanged": Falsified("name"),
    **{
        f"{name}_{bank}": attack
        for bank in get_args(Bank)
        for name, attack in {
            "misrelated": Falsified("relation", bank),
            **{f"framed_{form}": Framed(form, bank) for form in get_args(DiscourseForm)},
            **{f"hidden_{form}": Hidden(form, bank) for form in get_args(HiddenForm)},
        }.items()
    },
    "compound": HalfFalse(),
    "related": Related(),
    "trivia": HedgedTrivia(),
    "off_topic": OffTopic(),
    "instructed": Instructed(),
    "instructed_passage": InstructedPassage(),
}
HONEST = "normal"
INVALID = "invalid"
# At most this many documents are lost when the process is killed.
DOCUMENTS_PER_WRITE = 64


class AttackResult(NamedTuple):
    """The result of an attack on one document."""

    text: Document | None  # the record; None if the attack is not applicable
    why: str | None = None  # why it is not applicable or invalid; None for a valid text
    where: str = ""  # the claim or words that are invalid


@dataclass
class Attacks(Builder):
    """Rule-based adversarial texts, each checked against what its attack must keep.

    Args:
        documents: files of documents (ours or another project's), with labelled ``claims`` if an
            attack needs them; of generations whose ``sentences`` have a truth value; or
            ``scored.jsonl`` files of ``eval score``.
        attacks: kind of text to an attack, by ``class_path``; null for all shipped attacks.
        pages: files of passages; each passage is taken as true of the person named in its title.
        source_kind: use only documents of this kind, e.g. ``normal``; null for all.
        draws: texts per document and attack, drawn anew; equal ones are dropped. The robustness
            experiment takes the best of them, and of further draws of their statements.
        verdict: name of the verdicts that label scored texts, if there are several.
        most_gold: texts with a higher gold F1, or without a gold score, are invalid; null for no
            such check, e.g. for texts that are no attacks.
    """

    documents: list[str]
    attacks: dict[str, Attack] | None = None
    pages: list[str] = field(default_factory=list)
    source_kind: str | None = None
    verdict: str | None = None
    draws: PositiveInt = 1
    most_gold: float | None = 0.6

    reads: ClassVar = ("documents", "pages")

    def faults(self) -> Iterable[str]:
        if not self._attacks:
            yield "attacks: expected at least one attack, or null for all shipped attacks"
        for kind, attack in self._attacks.items():
            if not isinstance(getattr(attack, "keeps", None), Invariant):
                yield f"attacks: {kind}: expected an Invariant in `keeps`"
            if not re.fullmatch(r"\w+", kind) or kind in (HONEST, INVALID):
                names = f"{HONEST} or {INVALID}"
                yield f"attacks: {kind!r}: expected letters, digits and _ only, and not {names}"

    @cached_property
    def _attacks(self) -> dict[str, Attack]:
        return SHIPPED if self.attacks is None else self.attacks

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: {"test": f"{kind}.jsonl"} for kind in (HONEST, *self._attacks, INVALID)}

    def plan(self) -> list[Step]:
        number = len(self._sources())
        return [Step(kind, type(a).__name__, number, "texts") for kind, a in self._attacks.items()]

    def config(self) -> dict[str, object]:
        return super().config() | {"attacks": self._attacks}

    def make(self, work: Work) -> Made:
        sources = self._sources()
        world = World(sources, [p for path in self.pages for p in read_records(path, Passage)])
        passages = [
            passage.model_dump(mode="json") for page in world.passages.values() for passage in page
        ]
        facts = json.dumps([[asdict(page) for page in world.pages.values()], passages])
        documents = [[s.id, s.document.model_dump(mode="json")] for s in sources]
        key = [
            self.seed,
            self.most_gold,
            sha256_text(facts),
            documents,
        ]
        honest = [s.document.model_copy(update={"id": s.id, "kind": HONEST}) for s in sources]
        files: dict[str, list] = {f"{HONEST}.jsonl": honest}
        invalid: list[Document] = []
        figures = {}
        for kind, attack in self._attacks.items():
            drawn = self._results(kind, attack, sources, world, work, key)
            results = [result for result, _ in drawn]
            built = [result for result in results if result.text is not None]
            files[f"{kind}.jsonl"] = [result.text for result in built if result.why is None]
            invalid += [
                result.text.model_copy(update={"invalid": result.why, "where": result.where})
                for result in built
                if result.why
            ]
            figures[kind] = _figures(attack, drawn, world)
            for result in results:
                if result.why is not None:
                    problem = "not applicable" if result.text is None else "invalid"
                    work.dropped[f"{kind}: {problem}: {result.why}"] += 1
        if not any(files[f"{kind}.jsonl"] for kind in self._attacks):
            raise UserError(f"no attack gave a valid text ({work.dropped_summary()})")
        files[f"{INVALID}.jsonl"] = invalid
        pages = {"statistics.json": json.dumps(figures, indent=2, ensure_ascii=False) + "\n"}
        return Made(files, read_card("attacks"), pages)

    def _sources(self) -> list[Source]:
        sources = read_sources(self.documents, self.source_kind, self.verdict)[: self.limit]
        documents = [s.document.model_copy(update={"id": s.id}) for s in sources]
        origin = "labels" if self.verdict is None else "machine"
        scored = add_label_gold(documents, origin)
        return [
            replace(s, document=s.document.model_copy(update={"gold": d.gold}))
            for s, d in zip(sources, scored, strict=True)
        ]

    def _results(
        self,
        kind: str,
        attack: Attack,
        sources: Sequence[Source],
        world: World,
        work: Work,
        key: Sequence[object],
    ) -> list[tuple[AttackResult, Source]]:
        drawn: dict[str, tuple[AttackResult, Source]] = {}
        by_id = {source.id: source for source in sources}
        for number in range(self.draws):
            name = f"{kind} {number}" if number else kind
            rows = journal_rows(
                work.journal(name, attack, *key),
                by_id,
                lambda batch, n=number: self._rows(kind, n, attack, list(batch.values()), world),
                unit=name,
                batch_size=DOCUMENTS_PER_WRITE,
            )
            for source_id, source in by_id.items():
                row = rows[source_id]
                text = row["text"] and Document.model_validate(row["text"])
                content = f"{number} {source_id}"
                if text is not None:
                    content = text.model_dump_json(exclude={"id", "draw"})
                drawn.setdefault(content, (AttackResult(text, row["why"], row["where"]), source))
        return list(drawn.values())

    def _rows(
        self, kind: str, draw: int, attack: Attack, sources: Sequence[Source], world: World
    ) -> Iterator[dict]:
        suffix = f" {draw}" if draw else ""
        is_separated = getattr(attack, "apart", False)
        for source in sources:
            rng = random.Random(f"{self.seed}:{kind}{suffix}:{source.id}")
            try:
                # A text that does not respond has no score that an attack could raise.
                if not responds(source.document):
                    raise NotApplicable("the text does not respond")
                result = attack.attack(source, world, rng)
            except NotApplicable as reason:
                yield {"text": None, "why": str(reason), "where": ""}
                continue
            fault = next(attack.keeps.faults(source, result, world), None)
            gold = attack_gold(source, result, world, is_separated)
            why, where = fault or self._gold_fault(gold) or (None, "")
            text = _document(kind, attack, source, result, gold)
            claims = [
                claim.model_copy(
                    update={"credits": sorted(credited_facts(claim, source, world, is_separated))}
                )
                for claim in result.claims
            ]
            update = {"id": f"{text.id}{suffix}", "draw": draw, "claims": claims}
            text = text.model_copy(update=update)
            row = text.model_dump(mode="json", exclude_none=True)
            yield {"text": row, "why": why, "where": where}

    def _gold_fault(self, gold: Gold | None) -> Fault | None:
        if self.most_gold is None or (gold is not None and gold.f1 <= self.most_gold):
            return None
        if gold is None:
            return Fault("no gold score, since no claim of the document has a label")
        return Fault(f"gold F1 above {self.most_gold}", f"{gold.f1:.2f}")


def _document(
    kind: str, attack: Attack, source: Source, attacked: Attacked, gold: Gold | None
) -> Document:
    original = source.document
    extra = original.model_extra or {}
    row = {
        "id": f"{source.id} {kind}",
        "topic": original.topic,
        "text": attacked.text,
        "claims": attacked.claims,
        "passages": original.passages if attacked.passages is None else attacked.passages,
        "group": original.group,
        "bin": original.bin,
        "kind": kind,
        "family": attack.family,
        "generator": original.generator,
        "clean": source.id,
        "keeps": attack.keeps.name,
        "gold": gold,
        **{name: value for name, value in extra.items() if name in ("person", "cluster")},
        **attacked.more,
    }
    try:
        return Document.model_validate(row)
    except ValidationError as error:
        raise to_bad_input(f"{type(attack).__name__}: document {source.id!r}", error) from None


def _figures(
    attack: Attack, drawn: Sequence[tuple[AttackResult, Source]], world: World
) -> dict[str, object]:
    built = [(result, source) for result, source in drawn if result.text is not None]
    valid = [(result.text, source) for result, source in built if result.why is None]
    pairs = [
        (labelled_precision(text.claims or []), labelled_precision(source.claims))
        for text, source in valid
    ]
    claims = [len(text.claims or []) for text, _ in valid]
    runs = [
        shared_runs(text.text, passage.text)
        for text, source in valid
        for passage in world.passages.get(world.topic_page(source).key, ())
    ]
    complete = [pair for pair in pairs if None not in pair]
    means = np.mean(complete, axis=0).round(3).tolist() if complete else [None, None]
    return {
        "keeps": attack.keeps.name,
        "valid": len(valid),
        "topics": len({text.topic for text, _ in valid}),
        "invalid": _count(result.why for result, _ in built if result.why),
        "not_applicable": _count(result.why for result, _ in drawn if result.text is None),
        "claims_a_text": round(float(np.mean(claims)), 1) if claims else None,
        "shared_five_word_runs": round(float(np.mean(runs)), 3) if runs else None,
        "labelled_precision": dict(zip(("attacked", "documents"), means, strict=True)),
    }


def _count(reasons: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(map(str, reasons)).items()))
