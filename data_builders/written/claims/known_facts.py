"""What is known to be true, topic by topic: supported claims of documents, and pages."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from components.sentences import split_sentences
from data_builders.written.claims.clauses import name_of, names_in, stems
from data_builders.written.claims.labelled import Source
from records import Passage, sha256_text


class Fact(NamedTuple):
    """A statement that is true of an entity.

    Attributes:
        id: of the document and its claim, or of the passage and its sentence.
        text: the statement.
        document: id of the document that says it; empty for a passage.
    """

    id: str
    text: str
    document: str = ""


@dataclass
class Page:
    """All that is known of one entity.

    Attributes:
        key: tells it from others: its IRI, or the title.
        title: with what tells it from its namesakes.
        facts: what is true of it.
    """

    key: str
    title: str
    facts: list[Fact] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The title without what tells it from its namesakes."""
        return name_of(self.title)


class World:
    """What is true of whom.

    Args:
        sources: documents; their supported claims are facts of their topics, and their passages
            of what the passages' titles name.
        passages: further ones.
    """

    def __init__(self, sources: Sequence[Source], passages: Iterable[Passage] = ()):
        self.pages: dict[str, Page] = {}
        self.facts: dict[str, tuple[Fact, Page]] = {}
        # What pages' facts are from, by the page's key; documents' claims are from none.
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
        """The page of a document's topic.

        By its IRI or title; of a bare name that several share the page that has most words of the
        document's supported claims.
        """
        key = source.person or source.topic
        shared = [p for p in self.pages_named(source.topic) if p.key != key]
        if source.person or source.topic != name_of(source.topic) or not shared:
            return self.pages[key]
        own = [fact for fact in self.pages[key].facts if fact.document == ""]
        if own:  # a page has just this title
            return self.pages[key]
        words = stems(" ".join(source.supported)) or stems(source.document.text)
        return max(
            shared, key=lambda p: (len(words & stems(" ".join(f.text for f in p.facts))), p.key)
        )

    def is_topic_page(self, source: Source, page: Page) -> bool:
        """Whether a page is of a document's topic; what documents tell of a bare name may be."""
        if page.key in (self.topic_page(source).key, source.person or source.topic):
            return True
        bare = page.key == page.name and page in self.pages_named(source.topic)
        return bare and all(fact.document for fact in page.facts)

    def namesakes(self, source: Source) -> list[Page]:
        """The pages of others who have the name of a document's topic."""
        return [
            page for page in self.pages_named(source.topic) if not self.is_topic_page(source, page)
        ]

    def pages_named(self, topic: str) -> list[Page]:
        """The pages of all who have a name."""
        return self._by_name[name_of(topic).casefold()]

    def facts_of(self, page: Page) -> list[Fact]:
        """What is true of a page's topic.

        Of a bare name what its passages tell, where it has any: what documents tell may be of
        somebody else of that name.
        """
        text = "\n".join(passage.text for passage in self.passages.get(page.key, ()))
        told = [fact for fact in page.facts if not fact.document or fact.text in text]
        return (told if page.key == page.name else []) or page.facts

    @cached_property
    def pages_by_mentioned_name(self) -> dict[str, list[str]]:
        """A name that stands in facts to the keys of the pages that they are of."""
        found: dict[str, list[str]] = defaultdict(list)
        for key, page in self.pages.items():
            for name in sorted(names_in(" ".join(f.text for f in page.facts), page.title)):
                found[name].append(key)
        return dict(found)

    def topic_facts(self, source: Source) -> list[Fact]:
        """What is known of a document's topic."""
        found = {fact.id: fact for fact in self.topic_page(source).facts}
        found |= {f.id: f for f in self.pages[source.person or source.topic].facts}
        return list(found.values())

    def _page(self, key: str, title: str) -> Page:
        if key not in self.pages:
            self.pages[key] = Page(key, title)
            self._by_name[name_of(title).casefold()].append(self.pages[key])
        return self.pages[key]

    def _add(self, page: Page, fact: Fact) -> None:
        if fact.id not in self.facts:
            page.facts.append(fact)
            self.facts[fact.id] = (fact, page)

    def _add_passage(self, passage: Passage) -> None:
        key = (passage.model_extra or {}).get("person") or passage.title
        page = self._page(key, passage.title)
        page.title = passage.title  # tells more than the topic of a document with the same IRI
        if all(passage.text != one.text for one in self.passages[key]):
            self.passages[key].append(passage)
        said = {fact.text for fact in page.facts}
        for place, text in enumerate(split_sentences(passage.text)):
            # Passages are cut anywhere.
            whole = text.endswith((".", "!", "?")) and text.count('"') % 2 == 0
            if whole and text not in said:
                said.add(text)
                name = f"{passage.title}/{passage.id}#{place}"
                if name in self.facts:  # ids such as p0 are each document's own
                    name = f"{name} {sha256_text(text)[:12]}"
                self._add(page, Fact(name, text))
