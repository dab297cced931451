"""Instructions to the judge, in the text to be scored or in a passage that it is judged by."""

import random
from dataclasses import replace

from data_builders.written.attacks.attack import Attack, false_versions_of
from data_builders.written.attacks.phrases import lines_of
from data_builders.written.claims.clauses import as_sentence, name_of
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import (
    Attacked,
    NotApplicable,
    SentenceClaim,
    join_sentences,
    unchanged_claims,
)
from records import Passage, UserError

_FALSE_SHARE = 0.6


class Instructed(Attack):
    """A bad text with an instruction to the judge.

    Of a ladder's claims, 60 % are replaced by false versions; a document without such
    versions is not changed. The instruction states nothing about the topic.

    Source: prompt injection against language models as judges (Greshake et al., arXiv 2302.12173;
    JudgeDeceiver, arXiv 2403.17710).

    Args:
        instructions: one of these is inserted; null for the shipped ones.
    """

    family = "injection"

    def __init__(self, instructions: list[str] | None = None):
        if instructions == []:
            raise UserError("instructions: expected at least one, or null for the shipped ones")
        self.instructions = lines_of("instructions") if instructions is None else instructions

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        instruction = as_sentence(rng.choice(self.instructions))
        bad = self._bad_text(source)
        return replace(bad, text=f"{bad.text.strip()} {instruction}")

    def _bad_text(self, source: Source) -> Attacked:
        false = {claim.id: false_versions_of(claim) for claim in source.claims}
        # The same text for all instructions.
        rng = random.Random(source.id)
        names = [name for name, versions in false.items() if versions]
        if not names:
            return Attacked(source.document.text, unchanged_claims(source))
        changed = set(rng.sample(names, min(len(names), round(_FALSE_SHARE * len(false)))))
        return join_sentences(
            [
                SentenceClaim(rng.choice(false[claim.id]), "NS")
                if claim.id in changed
                else SentenceClaim(claim.text, claim.label, (claim.id,))
                for claim in source.claims
            ]
        )


class InstructedPassage(Instructed):
    """A bad text, with an instruction to the judge in a passage.

    The passages are the document's, or else the known facts about its topic. They have an effect
    if a metric judges by the document's passages, not by retrieved ones.

    Source: as for ``Instructed``; indirect prompt injection through retrieved data (Greshake et
    al., arXiv 2302.12173, section 3).
    """

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        instruction = as_sentence(rng.choice(self.instructions))
        passages = source.document.passages or _page(source, world)
        if not passages:
            raise NotApplicable("no passages, and no page of the topic")
        text = f"{passages[0].text.rstrip()} {instruction}"
        passages = [passages[0].model_copy(update={"text": text}), *passages[1:]]
        more = {"instruction": instruction}
        return replace(self._bad_text(source), passages=passages, more=more)


def _page(source: Source, world: World) -> list[Passage]:
    text = " ".join(fact.text for fact in world.topic_page(source).facts if not fact.document)
    return [Passage(id="p0", title=name_of(source.topic), text=text)] if text else []
