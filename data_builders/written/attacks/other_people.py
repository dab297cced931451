"""True facts of somebody else: of a namesake, and of whom the document speaks of."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jsonargparse.typing import PositiveInt

from data_builders.written.attacks.attack import Attack
from data_builders.written.claims.clauses import (
    clause_of,
    has_negation,
    name_of,
    name_topic,
    names_in,
)
from data_builders.written.claims.known_facts import Fact, Page, World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import (
    Attacked,
    NotApplicable,
    OtherEntityFacts,
    SentenceClaim,
    join_sentences,
    may_be_true_of_both,
)
from records import Passage

# Facts without which there is no text.
LEAST_OF_A_NAMESAKE, LEAST_RELATED = 2, 3


class Namesake(Attack):
    """Facts of another one of the same name, told of the name.

    Each is supported by somebody's page, and false of the topic (``NS``); what is true of both is
    left out. Applies where ``pages`` or other documents tell of a namesake.

    Source: AmbigBio and D-FActScore, arXiv 2402.05629, section 2.

    Args:
        sentences: of the text, at most.
    """

    keeps = OtherEntityFacts(namesake=True)

    def __init__(self, sentences: PositiveInt = 10):
        self.sentences = sentences

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        page, facts = _of_a_namesake(source, world, rng)
        said = _said(facts[: self.sentences], page, source, "NS")
        return join_sentences(
            said, passages=_found(source, [page], world), more={"other": page.title}
        )


class Merged(Attack):
    """Facts of the topic and of another one of the same name, in turn, as if of one.

    Each is supported by the page of somebody of that name, and the text is true of nobody: the
    namesake's facts are false of the topic (``NS``). Kept ``apart`` the text says that they are
    another's, so that all is true (``S``) and a metric should not fall. Of both it tells the same
    number of facts; a namesake's that are true of the topic as well are left out.

    Source: D-FActScore, arXiv 2402.05629, section 2.

    Args:
        sentences: facts of each, at most.
        apart: first the topic's, then who else has the name, and the other's.
    """

    def __init__(self, sentences: PositiveInt = 5, apart: bool = False):
        self.sentences = sentences
        self.apart = apart

    @property
    def keeps(self) -> OtherEntityFacts:
        return OtherEntityFacts(namesake=True, with_topic=True, apart=self.apart)

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        page, facts = _of_a_namesake(source, world, rng)
        topic = world.topic_page(source)
        own = _facts(topic, world)
        if len(own) < LEAST_OF_A_NAMESAKE:
            raise NotApplicable("too few facts of the topic")
        number = min(len(own), len(facts), self.sentences)
        first = _said(own[:number], topic, source, "S")
        second = _said(facts[:number], page, source, "S" if self.apart else "NS")
        said = [*first, *second]
        if not self.apart:
            said = [one for pair in zip(first, second, strict=True) for one in pair]
        found = _found(source, [topic, page], world)
        text = join_sentences(said, passages=found, more={"other": page.title})
        return _apart(text, number, page.title) if self.apart else text


class Related(Attack):
    """True facts about somebody related, told with their own name.

    Related is whom the document names; else whose facts share most names (a birthplace, a school,
    an award) with the document's supported claims. All is true, and not about the topic.

    Source: relevance in Core, arXiv 2407.03572, section 5 (Rel), and in SAFE, arXiv 2403.18802,
    section 3.

    Args:
        sentences: of the text, at most.
    """

    keeps = OtherEntityFacts(namesake=False)

    def __init__(self, sentences: PositiveInt = 10):
        self.sentences = sentences

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        name = name_of(source.topic).casefold()
        pages = [page for page in world.pages.values() if page.name.casefold() != name]
        text = " ".join(source.supported)
        named = [p for p in pages if _speaks_of(text, p) and len(_facts(p, world)) >= LEAST_RELATED]
        if named:
            page, how = rng.choice(named), "named"
        else:
            page, how = self._sharing(source, world), "shares a name"
        said = [
            SentenceClaim(text, "S", (fact.id,))
            for text, fact in _facts(page, world)[: self.sentences]
        ]
        return join_sentences(said, more={"other": page.title, "related": how})

    def _sharing(self, source: Source, world: World) -> Page:
        own = names_in(" ".join(source.supported), source.topic)
        shared = Counter(key for name in own for key in world.pages_by_mentioned_name.get(name, ()))
        for key, _ in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            page = world.pages[key]
            another = page.name.casefold() != name_of(source.topic).casefold()
            if another and len(_facts(page, world)) >= LEAST_RELATED:
                return page
        raise NotApplicable("nobody related is known")


def _of_a_namesake(
    source: Source, world: World, rng: random.Random
) -> tuple[Page, list[tuple[str, Fact]]]:
    others = world.namesakes(source)
    if not others:
        raise NotApplicable("no namesake is known")
    true = " ".join(fact.text for fact in world.topic_facts(source))
    told = [
        (p, [(t, f) for t, f in _facts(p, world) if not may_be_true_of_both(t, true, p.name)])
        for p in others
    ]
    told = [(page, facts) for page, facts in told if len(facts) >= LEAST_OF_A_NAMESAKE]
    if not told:
        raise NotApplicable("too few facts of a namesake")
    return rng.choice(told)


def _said(
    facts: Iterable[tuple[str, Fact]], page: Page, source: Source, label: str
) -> list[SentenceClaim]:
    name = name_of(source.topic)
    return [SentenceClaim(text.replace(page.name, name), label, (fact.id,)) for text, fact in facts]


def _found(source: Source, pages: Sequence[Page], world: World) -> list[Passage] | None:
    own = source.document.passages
    if own is None:
        return None
    known = {one.text for one in own}
    every = [one for page in pages for one in world.passages.get(page.key, ())]
    new = [one for one in every if one.text not in known]
    return [*own, *(one.model_copy(update={"id": f"n{n}"}) for n, one in enumerate(new))]


def _apart(merged: Attacked, number: int, title: str) -> Attacked:
    aside = f"There is another person of that name, {title}."
    claims = [
        claim.model_copy(update={"sentence": place + (place >= number)})
        for place, claim in enumerate(merged.claims)
    ]
    texts = [claim.text for claim in claims]
    text = " ".join([*texts[:number], aside, *texts[number:]])
    return replace(merged, text=text, claims=claims, asides=(aside,))


def _speaks_of(text: str, page: Page) -> bool:
    if " " not in page.name or page.name not in text:
        return False
    whole = rf"(?<![\w-]){re.escape(page.name)}(?![\w-]| (?:[a-z]{{1,3}} )?[A-Z])"
    return re.search(whole, text) is not None


def _facts(page: Page, world: World) -> list[tuple[str, Fact]]:
    found = {}
    for fact in world.facts_of(page):
        clause = clause_of(fact.text, page.title)
        if clause is None and not fact.text.startswith(("His ", "Her ")):
            continue
        text = clause.with_subject(page.name) if clause else name_topic(fact.text, page.title)
        if len(fact.text.split()) > 3 and not has_negation(fact.text) and "\n" not in fact.text:
            found.setdefault(text, fact)
    return list(found.items())
