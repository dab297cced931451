"""The people of a knowledge base, and values in sentences about them."""

import re
from pathlib import Path
from typing import Any

from data_builders.kb.facts import POPULATION, PROPERTIES, Person, load_people
from data_builders.kb.language.wording import with_article
from data_builders.kb.server import open_client

# Without dates of birth and death.
VALUED = (*(prop for prop in PROPERTIES if prop not in ("P569", "P570")), "alias")
ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)


def fit_article(before: str, new: str) -> str:
    """Change the article at the end of the text before a value to fit a new value."""
    article = ARTICLE.search(before)
    if article is None:
        return before
    fitting = with_article(new).split()[0]
    fitting = fitting.capitalize() if article[1][0].isupper() else fitting
    return f"{before[: article.start()]}{fitting} "


class KnownPeople:
    """The people of a Wikidata-shaped knowledge base, loaded when they are first needed.

    Args:
        endpoint: ``snapshot`` for the embedded file, or the URL of a SPARQL service.
        population: SPARQL patterns that bind ``?person``.
        user_agent: contact sent to a remote endpoint.
        cache_dir: folder of cached answers.
    """

    def __init__(
        self,
        endpoint: str = "snapshot",
        population: str = POPULATION,
        user_agent: str | None = None,
        cache_dir: Path | None = None,
    ):
        self.endpoint = endpoint
        self.population = population
        self.user_agent = user_agent
        self.cache_dir = cache_dir

    @property
    def identity(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "population": self.population}

    def load(self) -> list[Person]:
        url = None if self.endpoint == "snapshot" else self.endpoint
        with open_client(url, user_agent=self.user_agent, cache_dir=self.cache_dir) as client:
            return load_people(client, self.population)
