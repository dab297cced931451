"""True facts about another person: a namesake, or a person that the document mentions."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jsonargparse.typing import PositiveInt

from components.english import has_negation
from data_builders.written.attacks.attack import SizedAttack
from data_builders.written.claims.clauses import clause_of, name_of, name_topic, names_in
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

# Fewest facts of a text.
MIN_NAMESAKE_FACTS, MIN_RELATED_FACTS = 2, 3


class Namesake(SizedAttack):
    """Facts about a namesake, stated of the topic.

    Each fact is supported by the namesake's page and false of the topic (``NS``); facts that may be
    true of both are excluded. Needs a namesake in ``pages`` or in other documents.

    Source: AmbigBio and D-FActScore, arXiv 2402.05629, section 2.
    """

    keeps = OtherEntityFacts(namesake=True)
    family = "judge"

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        page, facts = _pick_namesake(source, world, rng)
        claims = _claims(facts[: self.length(source)], page, source, "NS")
        passages = _passages(source, [page], world)
        return join_sentences(claims, passages=passages, more={"other": page.title})


class Merged(SizedAttack):
    """Facts about the topic and a namesake, interleaved as if about one person.

    Each fact is supported by the page of a person of that name, but the text is true of neither:
    the namesake's facts are false of the topic (``NS``). With ``apart`` the text attributes them to
    the namesake, so all claims are true (``S``) and a metric should not fall. The text has as many
    facts about the one as about the other; facts that may be true of both are excluded.

    Source: D-FActScore, arXiv 2402.05629, section 2.

    Args:
        sentences: maximum number of sentences; by default that of the document's claims.
        apart: write the topic's facts, then a sentence that introduces the namesake, then theirs.
    """

    family = "judge"

    def __init__(self, sentences: PositiveInt | None = None, apart: bool = False):
        super().__init__(sentences)
        self.apart = apart

    @property
    def keeps(self) -> OtherEntityFacts:
        return OtherEntityFacts(namesake=True, with_topic=True, apart=self.apart)

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        page, facts = _pick_namesake(source, world, rng)
        topic = world.topic_page(source)
        topic_facts = _facts(topic, world)
        if len(topic_facts) < MIN_NAMESAKE_FACTS:
            raise NotApplicable("too few facts of the topic")
        number = min(len(topic_facts), len(facts), max(1, self.length(source) // 2))
        first = _claims(topic_facts[:number], topic, source, "S")
        second = _claims(facts[:number], page, source, "S" if self.apart else "NS")
        groups = (first, second) if self.apart else zip(first, second, strict=True)
        claims = [claim for group in groups for claim in group]
        passages = _passages(source, [topic, page], world)
        text = join_sentences(claims, passages=passages, more={"other": page.title})
        return _insert_aside(text, number, page.title) if self.apart else text


class Related(SizedAttack):
    """True facts about a related person, under that person's name.

    Related is a person whom the document names; else the one whose facts share most names (a
    birthplace, a school, an award) with the document's supported claims. All claims are true, but
    not about the topic.

    Source: relevance in Core, arXiv 2407.03572, section 5 (Rel), and in SAFE, arXiv 2403.18802,
    section 3.
    """

    keeps = OtherEntityFacts(namesake=False)
    family = "relevance"

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        namesakes = world.pages_named(source.topic)
        pages = [page for page in world.pages.values() if page not in namesakes]
        text = " ".join(source.supported)
        named = [
            p for p in pages if _is_named(text, p) and len(_facts(p, world)) >= MIN_RELATED_FACTS
        ]
        if named:
            page, how = rng.choice(named), "named"
        else:
            page, how = self._page_sharing_names(source, world), "shares a name"
        return self._about(page, how, source, world)

    def _about(self, page: Page, how: str, source: Source, world: World) -> Attacked:
        facts = _facts(page, world)[: self.length(source)]
        claims = [SentenceClaim(text, "S", (fact.id,)) for text, fact in facts]
        return join_sentences(claims, more={"other": page.title, "related": how})

    def _page_sharing_names(self, source: Source, world: World) -> Page:
        names = names_in(" ".join(source.supported), source.topic)
        pages = world.pages_by_mentioned_name
        shared = Counter(key for name in names for key in pages.get(name, ()))
        for key, _ in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            page = world.pages[key]
            is_other = page not in world.pages_named(source.topic)
            if is_other and len(_facts(page, world)) >= MIN_RELATED_FACTS:
                return page
        raise NotApplicable("nobody related is known")


class OffTopic(Related):
    """True facts about a person who shares no name with the document's claims, under their name.

    It states the claims of another document, if there is one, so that it has the same wordings.
    """

    def attack(self, source: Source, world: World, rng: random.Random) -> Attacked:
        names = names_in(" ".join(source.supported), source.topic) | {name_of(source.topic)}
        pages = rng.sample(list(world.pages.values()), len(world.pages))
        for page in sorted(pages, key=_is_written, reverse=True):
            facts = _facts(page, world)
            shared = any(name in text for name in names for text, _ in facts)
            if len(facts) >= MIN_RELATED_FACTS and not shared:
                return self._about(page, "not", source, world)
        raise NotApplicable("everybody shares a name")


def _is_written(page: Page) -> bool:
    """Whether a page's facts come from a document, not from a passage."""
    return bool(page.facts and page.facts[0].document)


def _pick_namesake(
    source: Source, world: World, rng: random.Random
) -> tuple[Page, list[tuple[str, Fact]]]:
    pages = world.namesakes(source)
    if not pages:
        raise NotApplicable("no namesake is known")
    true = " ".join(fact.text for fact in world.topic_facts(source))
    candidates = [
        (p, [(t, f) for t, f in _facts(p, world) if not may_be_true_of_both(t, true, p.name)])
        for p in pages
    ]
    candidates = [(page, facts) for page, facts in candidates if len(facts) >= MIN_NAMESAKE_FACTS]
    if not candidates:
        raise NotApplicable("too few facts of a namesake")
    return rng.choice(candidates)


def _claims(
    facts: Iterable[tuple[str, Fact]], page: Page, source: Source, label: str
) -> list[SentenceClaim]:
    name = name_of(source.topic)
    return [SentenceClaim(text.replace(page.name, name), label, (fact.id,)) for text, fact in facts]


def _passages(source: Source, pages: Sequence[Page], world: World) -> list[Passage] | None:
    passages = source.document.passages
    if passages is None:
        return None
    texts = {passage.text for passage in passages}
    added = [p for page in pages for p in world.passages.get(page.key, ()) if p.text not in texts]
    return [*passages, *(p.model_copy(update={"id": f"n{n}"}) for n, p in enumerate(added))]


def _insert_aside(merged: Attacked, number: int, title: str) -> Attacked:
    aside = f"There is another person of that name, {title}."
    claims = [
        claim.model_copy(update={"sentence": index + (index >= number)})
        for index, claim in enumerate(merged.claims)
    ]
    texts = [claim.text for claim in claims]
    text = " ".join([*texts[:number], aside, *texts[number:]])
    return replace(merged, text=text, claims=claims)


def _is_named(text: str, page: Page) -> bool:
    if " " not in page.name or page.name not in text:
        return False
    name = rf"(?<![\w-]){re.escape(page.name)}(?![\w-]| (?:[a-z]{{1,3}} )?[A-Z])"
    return re.search(name, text) is not None


def _facts(page: Page, world: World) -> list[tuple[str, Fact]]:
    facts = {}
    for fact in world.facts_of(page):
        clause = clause_of(fact.text, page.title)
        if clause is None and not fact.text.startswith(("His ", "Her ")):
            continue
        text = clause.with_subject(page.name) if clause else name_topic(fact.text, page.title)
        if len(fact.text.split()) > 3 and not has_negation(fact.text) and "\n" not in fact.text:
            facts.setdefault(text, fact)
    return list(facts.items())
