"""True facts by topic, from supported claims of documents and from pages."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from components.english import content_stems
from components.sentences import split_sentences
from components.words import name_key
from data_builders.written.claims.clauses import name_of, names_in
from data_builders.written.claims.labelled import Source
from records import Passage, sha256_text


class Fact(NamedTuple):
    """A statement that is true of an entity."""

    id: str  # of a document and its claim, or of a passage and its sentence
    text: str
    document: str = ""  # id of the document that states it; empty for a passage


@dataclass
class Page:
    """The facts of one entity."""

    key: str  # its IRI or its title
    title: str  # with the disambiguating parenthesis
    facts: list[Fact] = field(default_factory=list)

    @property
    def name(self) -> str:
        return name_of(self.title)


class World:
    """True facts of all topics.

    Args:
        sources: documents. Their supported claims are facts of their topics; the sentences of
            their passages are facts of the entity that the passage's title names.
        passages: further passages.
    """

    def __init__(self, sources: Sequence[Source], passages: Iterable[Passage] = ()):
        self.pages: dict[str, Page] = {}
        self.facts: dict[str, tuple[Fact, Page]] = {}
        # Page key to the passages of its facts.
        self.passages: dict[str, list[Passage]] = defaultdict(list)
        self._by_name: dict[str, list[Page]] = defaultdict(list)
        for source in sources:
            page = self._page(source.person or source.topic, source.topic)
            for text, claim in source.supported.items():
                self._add(page, Fact(f"{source.id}#{claim}", text, source.id))
        cited = (p for source in sources for p in source.document.passages or [])
        for passage in (*passages, *cited):
            if passage.title:
                self._add_passage(passage)

    def topic_page(self, source: Source) -> Page:
        """Return the page of a document's topic, by IRI or title.

        For a bare name that several entities share: the page with most words of the document's
        supported claims.
        """
        key = source.person or source.topic
        shared = [p for p in self.pages_named(source.topic) if p.key != key]
        if source.person or source.topic != name_of(source.topic) or not shared:
            return self.pages[key]
        page_facts = [fact for fact in self.pages[key].facts if fact.document == ""]
        if page_facts:
            return self.pages[key]
        words = content_stems(" ".join(source.supported)) or content_stems(source.document.text)
        texts = {page.key: " ".join(fact.text for fact in page.facts) for page in shared}
        return max(
            shared,
            key=lambda p: (len(words & content_stems(texts[p.key])), p.key),
        )

    def is_topic_page(self, source: Source, page: Page) -> bool:
        """Return whether a page is (or, for a bare name, may be) about a document's topic."""
        if page.key in (self.topic_page(source).key, source.person or source.topic):
            return True
        bare = page.key == page.name and page in self.pages_named(source.topic)
        return bare and all(fact.document for fact in page.facts)

    def namesakes(self, source: Source) -> list[Page]:
        return [
            page for page in self.pages_named(source.topic) if not self.is_topic_page(source, page)
        ]

    def pages_named(self, topic: str) -> list[Page]:
        return self._by_name[name_key(name_of(topic))]

    def facts_of(self, page: Page) -> list[Fact]:
        """Return the facts of a page's topic.

        For a bare name only the facts from its passages, if any: documents may be about another
        entity with that name.
        """
        text = "\n".join(passage.text for passage in self.passages.get(page.key, ()))
        passage_facts = [fact for fact in page.facts if not fact.document or fact.text in text]
        return (passage_facts if page.key == page.name else []) or page.facts

    @cached_property
    def pages_by_mentioned_name(self) -> dict[str, list[str]]:
        """Map each name that occurs in facts to the keys of their pages."""
        keys: dict[str, list[str]] = defaultdict(list)
        for key, page in self.pages.items():
            for name in sorted(names_in(" ".join(f.text for f in page.facts), page.title)):
                keys[name].append(key)
        return dict(keys)

    def topic_facts(self, source: Source) -> list[Fact]:
        facts = {fact.id: fact for fact in self.topic_page(source).facts}
        facts |= {f.id: f for f in self.pages[source.person or source.topic].facts}
        return list(facts.values())

    def _page(self, key: str, title: str) -> Page:
        if key not in self.pages:
            self.pages[key] = Page(key, title)
            self.pages_named(title).append(self.pages[key])
        return self.pages[key]

    def _add(self, page: Page, fact: Fact) -> None:
        if fact.id not in self.facts:
            page.facts.append(fact)
            self.facts[fact.id] = (fact, page)

    def _add_passage(self, passage: Passage) -> None:
        key = (passage.model_extra or {}).get("person") or passage.title
        page = self._page(key, passage.title)
        page.title = passage.title  # more specific than the topic of a document with the same IRI
        if all(passage.text != kept.text for kept in self.passages[key]):
            self.passages[key].append(passage)
        texts = {fact.text for fact in page.facts}
        for index, text in enumerate(split_sentences(passage.text)):
            # A passage may begin or end within a sentence.
            is_complete = text.endswith((".", "!", "?")) and text.count('"') % 2 == 0
            if is_complete and text not in texts:
                texts.add(text)
                name = f"{passage.title}/{passage.id}#{index}"
                if name in self.facts:  # passage ids such as p0 repeat across documents
                    name = f"{name} {sha256_text(text)[:12]}"
                self._add(page, Fact(name, text))
