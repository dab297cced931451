"""``ambigbio``: biographies of names that several people share, from retrieved passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clients.mediawiki import TITLES_A_REQUEST, MediaWiki
from clients.pageviews import PageViews
from clients.polite import SECONDS_A_REQUEST, PoliteClient
from clients.sparql import SparqlClient
from data_builders.dataset import Card, kept_answers, write_dataset
from data_builders.plan import Step
from data_builders.topics import Stratum
from data_builders.written.ambigbio.biographies import (
    Sampling,
    generations,
    journal_of,
    prompts_for,
    write_texts,
)
from data_builders.written.ambigbio.evidence import (
    MakeSearch,
    knowledge_passages,
    page_counts,
    retrieve,
    wiki_passages,
)
from data_builders.written.ambigbio.names import (
    Name,
    check_months,
    csv_text,
    find_names,
    read_names,
    with_views,
)
from eval.models.chat import Writer
from eval.prompting.prompts import Prompt
from eval.retrieve.bm25 import BM25
from eval.retrieve.knowledge import Knowledge
from eval.stages import EntailmentModel
from records import Generation, Passage, UserError, iter_rows, write_jsonl

PROMPT = Path(__file__).parents[1] / "prompts" / "ambigbio.jinja"
# How many people a name of the English Wikipedia has, about; for the plan's times only.
PEOPLE_A_NAME = 4


class AmbigBio:
    """Biographies of names that several people share, from retrieved passages, with citations.

    Args:
        output: folder of the dataset.
        api: URL of the wiki's api.php.
        user_agent: who asks, with an address; needed for any remote service.
        category: where the wiki lists its disambiguation pages of people.
        names: file with a ``name`` a line, or the ``names.jsonl`` of an earlier build; the wiki is
            then not asked for names.
        sample: how many names are drawn.
        humans: SPARQL service where P31 = Q5 decides who is a person; the wiki's categories of
            births, deaths and living people decide without it.
        views: first and last month (``YYYY-MM``) of the page views; none are asked for without it.
        views_api: service of the page views.
        views_project: whose pages they are.
        passages: file of passage records to search, instead of the candidates' pages in the wiki.
        knowledge: SQLite file ``documents(title, text)`` of a dated snapshot, to take pages from
            instead of the wiki.
        knowledge_index: its full-text index, where it stands in a file of its own.
        pages_per_name: pages of the snapshot beside the candidates' own that full-text search adds.
        words: words a passage.
        retriever: the class that finds the passages, without ``passages``; BM25 with five if null.
        writer: the language model that writes; no biography is written without one.
        ambiguity: whether the prompt's demonstrations have namesakes among their passages.
        prompt: jinja2 file of the prompt; null for ours.
        temperature: of sampling.
        top_p: share of probability of the nucleus.
        max_new_tokens: a text that reaches it is cut after its last whole sentence.
        judge: relation model that says of each citation whether the passages entail it.
        cache_dir: folder of kept answers; null keeps them in ``output`` until the dataset is
            whole.
        seed: of the sample of names and of sampling.
        limit: only the first so many names, for a trial.

    Raises:
        UserError: options that contradict each other or are out of range.
    """

    def __init__(
        self,
        output: Path,
        api: str = "https://en.wikipedia.org/w/api.php",
        user_agent: str | None = None,
        category: str = "Category:Human name disambiguation pages",
        names: Path | None = None,
        sample: int = 500,
        humans: str | None = None,
        views: tuple[str, str] | None = None,
        views_api: str = "https://wikimedia.org/api/rest_v1",
        views_project: str = "en.wikipedia",
        passages: Path | None = None,
        knowledge: Path | None = None,
        knowledge_index: Path | None = None,
        pages_per_name: int = 20,
        words: int = 100,
        retriever: MakeSearch | None = None,
        writer: Writer | None = None,
        ambiguity: bool = True,
        prompt: Path | None = None,
        temperature: float = 1.0,
        top_p: float = 0.95,
        max_new_tokens: int = 300,
        judge: EntailmentModel | None = None,
        cache_dir: Path | None = None,
        seed: int = 0,
        limit: int | None = None,
    ):
        if min(sample, words, pages_per_name, max_new_tokens, 1 if limit is None else limit) < 1:
            raise UserError("sample, words, pages_per_name, max_new_tokens, limit: give at least 1")
        if passages is not None and knowledge is not None:
            raise UserError(
                "passages and knowledge: give one of them, or none for the wiki's pages"
            )
        if judge is not None and writer is None:
            raise UserError("judge: there is nothing to judge without a writer")
        if views is not None:
            check_months(views)
        self.output = Path(output)
        self.api = api
        self.user_agent = user_agent
        self.category = category
        self.names = Path(names) if names else None
        self.sample = sample if limit is None else min(sample, limit)
        self.humans = humans
        self.views = tuple(views) if views else None
        self.views_api = views_api
        self.views_project = views_project
        self.passages = Path(passages) if passages else None
        self.knowledge = Path(knowledge) if knowledge else None
        self.knowledge_index = Path(knowledge_index) if knowledge_index else None
        self.pages_per_name = pages_per_name
        self.words = words
        self.retriever = retriever
        self.writer = writer
        self.ambiguity = ambiguity
        self.prompt = Prompt(prompt or PROMPT)
        self.sampling = Sampling(temperature, top_p, max_new_tokens)
        self.judge = judge
        self.cache_dir = cache_dir
        self.seed = seed
        self.limit = limit
        self._journals: list[Path] = []

    def plan(self) -> list[Step]:
        """What a build would ask; the numbers depend on the wiki, the times are rough."""
        second, steps = SECONDS_A_REQUEST, []
        names = self.sample
        people: int | None = None
        if self.names is not None:
            given = read_names(self.names, self.limit)
            names = len(given)
            people = len({c.title for name in given for c in name.candidates})
            steps.append(Step("names", self.names.name, names, "names"))
        else:
            pages = -(-names // TITLES_A_REQUEST)
            steps += [
                Step("members of the category, 500 a request", self.api),
                Step("disambiguation pages, 50 a request", self.api, seconds=4 * pages * second),
                Step("pages linked there, 50 a request", self.api, seconds=40 * pages * second),
            ]
            if self.humans:
                steps.append(
                    Step("humans, 100 a request", self.humans, seconds=20 * pages * second)
                )
        rough = (people or names * PEOPLE_A_NAME) * second
        if self.views:
            steps.append(Step("page views", self.views_api, people, seconds=rough))
        source = self.passages or self.knowledge
        if source is None:
            steps.append(Step("texts, one a request", self.api, people, seconds=rough))
        else:
            steps.append(Step("passages", source.name, None, "passages"))
        if self.writer is not None:
            steps.append(Step("biographies", str(_model(self.writer)), names, "texts"))
        return steps

    def writes(self) -> list[str]:
        """Names of the files of records that a build writes."""
        kinds = ("names", "retrieval", "passages", "generations")
        return [f"{kind}.jsonl" for kind in kinds if kind != "generations" or self.writer]

    def build(self) -> Path:
        """Names, views, passages, biographies, the folder; returns the manifest's path."""
        with kept_answers(self.output, self.cache_dir) as answers:
            return self._build(answers)

    def _build(self, answers: Path) -> Path:
        dropped: Counter[str] = Counter()
        clients: list[PoliteClient] = []
        names = self._names(answers, clients, dropped)
        if self.views:
            views = PageViews(self.views_api, self.user_agent, answers, project=self.views_project)
            clients.append(views)
            names = with_views(names, views, self.views)
        pool = self.passages or self._pool(names, answers, clients, dropped)
        make = self.retriever or (lambda path: BM25(path, k=5, topic_in_query=False))
        found, retriever = retrieve(make, pool, names, dropped)
        files: dict[str, Any] = {
            "names.jsonl": names,
            "retrieval.jsonl": _retrieval(found),
            "passages.jsonl": _passages(found) if self.passages else _rows(pool),
        }
        if self.writer is not None:
            files["generations.jsonl"] = self._biographies(names, found, dropped)
        manifest = write_dataset(
            self.output,
            files,
            declared=self.writes(),
            card=_card(found, self.writer is not None),
            clients=clients,
            dropped=dropped,
            config=self._config(retriever),
            seed=self.seed,
            inputs=[path for path in (self.names, self.passages, self.knowledge) if path],
            pages={"AmbigBio.csv": csv_text(names)},
        )
        # Biographies of another configuration that are not finished stay for it.
        for leftover in [*self.output.glob(".passages.partial.jsonl*"), *self._journals]:
            leftover.unlink()
        return manifest

    def _names(
        self, answers: Path, clients: list[PoliteClient], dropped: Counter[str]
    ) -> list[Name]:
        if self.names is not None:
            names = read_names(self.names, self.limit)
            if self.passages or self.knowledge or any(name.candidates for name in names):
                return names
            raise UserError(
                f"{self.names}: no name has candidates, whose pages could be read; give passages "
                "or knowledge"
            )
        wiki = MediaWiki(self.api, self.user_agent, answers)
        clients.append(wiki)
        humans = None
        if self.humans:
            humans = SparqlClient(self.humans, self.user_agent, answers)
            clients.append(humans)
        return find_names(wiki, self.category, self.sample, self.seed, dropped, humans)

    def _pool(
        self,
        names: Sequence[Name],
        answers: Path,
        clients: list[PoliteClient],
        dropped: Counter[str],
    ) -> Path:
        """The passages that are searched, in a file for the time of the build."""
        if self.knowledge is not None:
            knowledge = Knowledge(self.knowledge, self.words, self.knowledge_index)
            found = knowledge_passages(knowledge, names, self.pages_per_name, dropped)
        else:
            wiki = next((client for client in clients if isinstance(client, MediaWiki)), None)
            if wiki is None:
                wiki = MediaWiki(self.api, self.user_agent, answers)
                clients.append(wiki)
            found = wiki_passages(wiki, names, self.words, dropped)
        path = self.output / ".passages.partial.jsonl"
        if not write_jsonl(path, found):
            raise UserError("no page of the names has any text; check api, names or knowledge")
        return path

    def _biographies(
        self, names: Sequence[Name], found: dict[str, list[Passage]], dropped: Counter[str]
    ) -> Sequence[Generation]:
        prompts = prompts_for(found, self.prompt, self.ambiguity)
        whole = (self.writer, prompts, self.sampling, self.seed, self.output)
        self._journals.append(journal_of(*whole))
        answers = write_texts(*whole)
        model = str(_model(self.writer))
        strata = {name.name: Stratum(name.group, name.bin) for name in names}
        return list(generations(answers, found, model, self.judge, strata, dropped))

    def _config(self, retriever: dict) -> dict:
        """What decides the records, without the folder they go to."""
        wiki = self.names is None or not (self.passages or self.knowledge)
        config: dict[str, Any] = {
            "api": self.api if wiki else None,
            "category": self.category if self.names is None else None,
            "sample": self.sample,
            "humans": self.humans or "categories",
            "views": self.views,
            "words": self.words,
            "pages_per_name": self.pages_per_name if self.knowledge else None,
            "retriever": retriever,
        }
        if self.writer is not None:
            config |= {
                "writer": self.writer.identity,
                "prompt": {"file": self.prompt.name, "sha256": self.prompt.sha256},
                "ambiguity": self.ambiguity,
                **self.sampling._asdict(),
            }
        if self.judge is not None:
            from eval.run.provenance import inputs  # brings PyTorch, as the judge has done already

            checkpoint = str(getattr(self.judge, "checkpoint", ""))
            config["judge"] = {"class": type(self.judge).__name__, **inputs([checkpoint])}
        return config


def _model(writer: Writer) -> object:
    """The model's name, as the records and the plan show it."""
    named = writer.identity.get("model", type(writer).__name__)
    return named.get("id") if isinstance(named, dict) else named


def _retrieval(found: dict[str, list[Passage]]) -> list[dict]:
    return [
        {
            "name": name,
            "passages": [passage.id for passage in own],
            "titles": list(dict.fromkeys(passage.title for passage in own)),
        }
        for name, own in found.items()
    ]


def _passages(found: dict[str, list[Passage]]) -> list[Passage]:
    """Those that were found, each once."""
    return list({passage.id: passage for own in found.values() for passage in own}.values())


def _rows(pool: Path):
    return (row for _, row in iter_rows(pool))


def _card(found: dict[str, list[Passage]], written: bool) -> Card:
    several = sum(n for pages, n in page_counts(found).items() if pages > 1)
    kinds = ["names", "retrieval", "passages", *(["generations"] if written else [])]
    return Card(
        pretty_name="AmbigBio: biographies of names that several people share",
        configs={kind: {"test": f"{kind}.jsonl"} for kind in kinds},
        license="cc-by-sa-4.0",
        task_categories=("text-generation", "question-answering"),
        tags=("factuality", "entity-ambiguity", "retrieval-augmented-generation"),
        text=TEXT.format(names=len(found), several=several) + (WRITTEN if written else ""),
    )


TEXT = """\
Names that several people share, the people whom each may mean, and the passages that a retriever
finds for the query "Tell me a bio of NAME" (after Chiang and Lee 2024, arXiv 2402.05629).

- `names`: `name`, the disambiguation page with its revision, and `candidates`: title, page id,
  revision, Wikidata id and page views of each person. A person counts whose title, or a redirect
  to it, is the name without what stands in parentheses or after a comma and without Sir, Dame,
  Lord, Lady, Jr and Sr.
- `retrieval`: the ids of the passages found, best first, and the titles of their pages. Of {names}
  names {several} have passages of at least two pages.
- `passages`: what was searched (or, of a file of the user's, what was found), with the revision
  that was read.
- `AmbigBio.csv`: prompt and name in the form of the published file (tab-separated, no header).

The passages are text of Wikipedia's authors under CC BY-SA 4.0; each row's `url` leads to the
revision and its history. Sharing a name is all that the people of a row have in common: do not use
the rows to link facts across people.
"""
WRITTEN = """\

- `generations`: what a language model wrote from the passages. `text` has no citations in it,
  `cited_text` is the model's own text. `citations` has a sentence a row: `claim`, `passage` (title
  and text of what it cites), `numbers`, and, where a relation model judged, `entailed`: 1 where the
  passages together entail the sentence, by that model and no human. `uncited_sentences` counts the
  others. **The texts may state falsehoods about real people**; they are made to test metrics.
"""
