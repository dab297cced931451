"""True facts of somebody else: of a namesake, and of whom the document speaks of."""

from __future__ import annotations

import random
import re
from collections import Counter

from jsonargparse.typing import PositiveInt

from data_builders.written.attacks.attack import Attack
from data_builders.written.attacks.attacked import Attacked, NotApplicable, Said, one_by_one
from data_builders.written.attacks.clauses import clause_of, name_of, names_in, standing
from data_builders.written.attacks.validity import OfAnother, may_be_true_of_both
from data_builders.written.attacks.world import Fact, Page, World
from data_builders.written.corruption.sources import Source
from data_builders.written.corruption.texts import denies


class Namesake(Attack):
    """Facts of another one of the same name, told of the name.

    Each is supported by somebody's page, and false of the topic (``NS``); what is true of both is
    left out. Applies where ``pages`` or other documents tell of a namesake.

    Source: AmbigBio and D-FActScore, arXiv 2402.05629, section 2.

    Args:
        sentences: of the text, at most.
        least: facts without which there is no text.
    """

    keeps = OfAnother(namesake=True)

    def __init__(self, sentences: PositiveInt = 10, least: PositiveInt = 2):
        self.sentences = sentences
        self.least = least

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        """The facts of one namesake, each with the full name."""
        own = world.own(source)
        others = [page for page in world.named(source.topic) if page.key != own.key]
        if not others:
            raise NotApplicable("no namesake is known")
        true = " ".join(fact.text for fact in world.true_of(source))
        told = [
            (p, [(t, f) for t, f in _facts(p) if not may_be_true_of_both(t, true, p.name)])
            for p in others
        ]
        told = [(page, facts) for page, facts in told if len(facts) >= self.least]
        if not told:
            raise NotApplicable("too few facts of a namesake")
        page, facts = rng.choice(told)
        name = name_of(source.topic)
        said = [
            Said(text.replace(page.name, name), "NS", (fact.id,))
            for text, fact in facts[: self.sentences]
        ]
        return one_by_one(said, more={"other": page.title})


class Related(Attack):
    """True facts about somebody related, told with their own name.

    Related is whom the document names; else whose facts share most names (a birthplace, a school,
    an award) with the document's supported claims. All is true, and not about the topic.

    Source: relevance in Core, arXiv 2407.03572, section 3 (Rel), and in SAFE, arXiv 2403.18802,
    section 3.

    Args:
        sentences: of the text, at most.
        least: facts without which there is no text.
    """

    keeps = OfAnother(namesake=False)

    def __init__(self, sentences: PositiveInt = 10, least: PositiveInt = 3):
        self.sentences = sentences
        self.least = least

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        """The facts of the one who is most related."""
        name = name_of(source.topic).casefold()
        pages = [page for page in world.pages.values() if page.name.casefold() != name]
        text = " ".join(source.supported)
        named = [p for p in pages if _speaks_of(text, p) and len(_facts(p)) >= self.least]
        if named:
            page, how = rng.choice(named), "named"
        else:
            page, how = self._sharing(source, world), "shares a name"
        said = [Said(text, "S", (fact.id,)) for text, fact in _facts(page)[: self.sentences]]
        return one_by_one(said, more={"other": page.title, "related": how})

    def _sharing(self, source: Source, world: World) -> Page:
        """The page that shares most names with what is true of the topic."""
        own = names_in(" ".join(source.supported), source.topic)
        shared = Counter(key for name in own for key in world.by_name_in_text.get(name, ()))
        for key, _ in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            page = world.pages[key]
            another = page.name.casefold() != name_of(source.topic).casefold()
            if another and len(_facts(page)) >= self.least:
                return page
        raise NotApplicable("nobody related is known")


def _speaks_of(text: str, page: Page) -> bool:
    """Whether a text has the page's whole name, which is no part of a longer one."""
    if " " not in page.name or page.name not in text:
        return False
    whole = rf"(?<![\w-]){re.escape(page.name)}(?![\w-]| (?:[a-z]{{1,3}} )?[A-Z])"
    return re.search(whole, text) is not None


def _facts(page: Page) -> list[tuple[str, Fact]]:
    """The facts about the page's topic itself, each with its whole name."""
    found = {}
    for fact in page.facts:
        clause = clause_of(fact.text, page.title)
        if clause is None and not fact.text.startswith(("His ", "Her ")):
            continue
        text = clause.of(page.name) if clause else standing(fact.text, page.title)
        if len(fact.text.split()) > 3 and not denies(fact.text) and "\n" not in fact.text:
            found.setdefault(text, fact)
    return list(found.items())
