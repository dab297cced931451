"""``ambigbio``: biographies of names that several people share, from retrieved passages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from clients.mediawiki import TITLES_PER_REQUEST, MediaWiki
from clients.pageviews import PageViews
from clients.polite import SECONDS_PER_REQUEST
from data_builders.builder import AskingBuilder, Made, Step, Work, option_errors
from data_builders.dataset import Card, read_card
from data_builders.journal import model_name, write_texts
from data_builders.sampled import sampling_of
from data_builders.topics import Stratum
from data_builders.written.ambigbio.biographies import (
    MakeSearch,
    generations,
    knowledge_passages,
    page_counts,
    read_retrieved,
    retrieve,
    wiki_passages,
)
from data_builders.written.ambigbio.shared_names import (
    Name,
    check_months,
    csv_text,
    find_names,
    read_names,
    with_views,
)
from eval.models.chat import Answer, Writer
from eval.prompting.prompts import Prompt
from eval.retrieve.bm25 import BM25
from eval.retrieve.knowledge import Knowledge
from eval.stages import EntailmentModel
from records import Passage, UserError, iter_rows, write_jsonl

PROMPT = Path(__file__).parents[1] / "prompts" / "ambigbio.jinja"
# Approximate people per name of the English Wikipedia, for time estimates.
PEOPLE_PER_NAME = 4


@dataclass
class AmbigBio(AskingBuilder):
    """Biographies of names that several people share, from retrieved passages, with citations.

    Args:
        api: URL of the wiki's api.php.
        category: category of the wiki's disambiguation pages of people.
        names: file with a ``name`` per row, the published ``AmbigBio.csv``, or the ``names.jsonl``
            of an earlier build, instead of names from the wiki.
        sample: number of names.
        views: first and last month (``YYYY-MM``) of page views; null fetches none.
        views_api: URL of the page view service.
        views_project: project of the page views.
        passages: file of passage records to search instead of the candidates' pages in the wiki.
        knowledge: SQLite file ``documents(title, text)`` of a dated snapshot, to use its pages
            instead of the wiki.
        retrieved: the authors' retrieval in ALCE's format, rows with ``question`` (or ``name``) and
            ``docs`` with ``title`` and ``text``; the first five are the passages of a name.
        words: words per passage.
        retriever: retriever class, without ``passages``. Default: BM25 with five passages.
        writer: language model that writes the biographies; null writes none.
        ambiguity: use demonstrations whose passages include namesakes; each biography is about one
            of them.
        careful: ask not to confuse people of one name (the released "careful" prompt, which has
            demonstrations with namesakes).
        prompt: jinja2 file of the prompt. Default: the shipped one.
        temperature: sampling temperature.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum tokens; a longer text is cut after its last complete sentence.
        judge: relation model that judges whether the cited passages entail each sentence.
    """

    api: str = "https://en.wikipedia.org/w/api.php"
    category: str = "Category:Human name disambiguation pages"
    names: Path | None = None
    sample: int = 500
    views: tuple[str, str] | None = None
    views_api: str = "https://wikimedia.org/api/rest_v1"
    views_project: str = "en.wikipedia"
    passages: Path | None = None
    knowledge: Path | None = None
    retrieved: Path | None = None
    words: int = 100
    retriever: MakeSearch | None = None
    writer: Writer | None = None
    ambiguity: bool = True
    careful: bool = False
    prompt: Path | None = None
    temperature: float = 1.0
    top_p: float = 0.95
    max_new_tokens: int = 300
    judge: EntailmentModel | None = None

    reads = ("names", "passages", "knowledge", "retrieved")
    least: ClassVar = {**dict.fromkeys(("sample", "words", "max_new_tokens"), 1), "temperature": 0}
    probabilities = ("top_p",)

    def faults(self) -> Iterable[str]:
        if sum(path is not None for path in (self.passages, self.knowledge, self.retrieved)) > 1:
            yield "passages, knowledge, retrieved: set only one, or none for the wiki's pages"
        if self.judge is not None and self.writer is None:
            yield "judge: needs a writer"
        if self.views is not None:
            yield from option_errors(check_months, self.views)
        yield from option_errors(lambda: self._prompt)

    @cached_property
    def _prompt(self) -> Prompt:
        return Prompt(self.prompt or PROMPT)

    @property
    def _sample(self) -> int:
        return self.sample if self.limit is None else min(self.sample, self.limit)

    def files(self) -> dict[str, dict[str, str]]:
        kinds = ["names", "retrieval", "passages", "generations"]
        kinds = kinds if self.writer is not None else kinds[:3]
        return {kind: {"test": f"{kind}.jsonl"} for kind in kinds}

    def plan(self) -> list[Step]:
        second, steps = SECONDS_PER_REQUEST, []
        names = self._sample
        people: int | None = None
        if self.names is not None:
            names_read = read_names(self.names, self.limit)
            names = len(names_read)
            people = len({c.title for name in names_read for c in name.candidates})
            steps.append(Step("names", str(self.names), names, "names"))
        else:
            pages = -(-names // TITLES_PER_REQUEST)
            steps += [
                Step("members of the category, 500 a request", self.api),
                Step("disambiguation pages, 50 a request", self.api, seconds=4 * pages * second),
                Step("pages linked there, 50 a request", self.api, seconds=40 * pages * second),
            ]
        rough = (people or names * PEOPLE_PER_NAME) * second
        if self.views:
            steps.append(Step("page views", self.views_api, people, seconds=rough))
        source = self.passages or self.knowledge or self.retrieved
        if source is None:
            steps.append(Step("texts, one a request", self.api, people, seconds=rough))
        else:
            steps.append(Step("passages", str(source), None, "passages"))
        if self.writer is not None:
            steps.append(Step("biographies", model_name(self.writer), names, "texts"))
        return steps

    def make(self, work: Work) -> Made:
        names = self._names(work)
        if self.views:
            views = work.client(PageViews, self.views_api, project=self.views_project)
            names = with_views(names, views, self.views)
        if self.retrieved is None:
            pool = self.passages or self._pool(names, work)
            make = self.retriever or (lambda path: BM25(path, k=5, topic_in_query=False))
            by_name, retriever = retrieve(make, pool, names, work.dropped)
        else:
            by_name = read_retrieved(self.retrieved, names, work.dropped)
            retriever = {"retrieved": self.retrieved.name}
        files: dict[str, Any] = {
            "names.jsonl": names,
            "retrieval.jsonl": _retrieval(by_name),
            "passages.jsonl": list({p.id: p for group in by_name.values() for p in group}.values())
            if self.passages or self.retrieved
            else (row for _, row in iter_rows(pool)),
        }
        if self.writer is not None:
            answers = self._answers(by_name, work)
            model = model_name(self.writer)
            strata = {name.name: Stratum(name.group, name.bin) for name in names}
            records = generations(answers, by_name, model, self.judge, strata, work.dropped)
            files["generations.jsonl"] = list(records)
        source = self.passages or self.knowledge or self.retrieved
        card = _card(by_name, source, self.writer is not None)
        return Made(files, card, {"AmbigBio.csv": csv_text(names)}, {"retriever": retriever})

    def _names(self, work: Work) -> list[Name]:
        if self.names is not None:
            names = read_names(self.names, self.limit)
            source = self.passages or self.knowledge or self.retrieved
            if source or any(name.candidates for name in names):
                return names
            raise UserError(
                f"{self.names}: no name has candidates with pages; set passages, knowledge or "
                "retrieved"
            )
        wiki = work.client(MediaWiki, self.api)
        return find_names(wiki, self.category, self._sample, self.seed, work.dropped)

    def _pool(self, names: Sequence[Name], work: Work) -> Path:
        if self.knowledge is not None:
            knowledge = Knowledge(self.knowledge, self.words)
            passages = knowledge_passages(knowledge, names, work.dropped)
        else:
            wiki = next((client for client in work.clients if isinstance(client, MediaWiki)), None)
            wiki = wiki or work.client(MediaWiki, self.api)
            passages = wiki_passages(wiki, names, self.words, work.dropped)
        path = work.scratch("passages.partial.jsonl")
        if not write_jsonl(path, passages):
            raise UserError("no page of the names has text; check api, names or knowledge")
        return path

    def _answers(self, by_name: dict[str, list[Passage]], work: Work) -> dict[str, Answer]:
        variant = {"ambiguity": self.ambiguity, "careful": self.careful}
        prompts = {
            name: self._prompt.messages(name=name, passages=passages, **variant)
            for name, passages in by_name.items()
        }
        sampling = sampling_of(self, 1)
        journal = work.journal("biographies", self.writer, sampling, prompts)
        written = write_texts(self.writer, prompts, sampling, journal, unit="biography")
        return {name: answer for name, (answer,) in written.items()}

    def config(self) -> dict[str, object]:
        prompt = {"file": self._prompt.name, "sha256": self._prompt.sha256}
        return super().config() | {"prompt": prompt}


def _retrieval(by_name: dict[str, list[Passage]]) -> list[dict]:
    return [
        {
            "name": name,
            "passages": [passage.id for passage in passages],
            "titles": list(dict.fromkeys(passage.title for passage in passages)),
        }
        for name, passages in by_name.items()
    ]


def _card(by_name: dict[str, list[Passage]], source: Path | None, written: bool) -> Card:
    several = sum(n for pages, n in page_counts(by_name).items() if pages > 1)
    licence = WIKI if source is None else FILE.format(file=Path(source).name)
    return read_card(
        "ambigbio",
        names=len(by_name),
        several=several,
        licence=licence,
        licence_id="cc-by-sa-4.0" if source is None else "other",
        written=WRITTEN if written else "",
    )


WIKI = """\
The passages are by Wikipedia's authors under CC BY-SA 4.0; each row's `url` is that of the revision
and its history."""
FILE = "The licence of the passages is that of `{file}`."
WRITTEN = """\

- `generations`: biographies that a language model wrote from the passages. `text` is without
  citations, `cited_text` with them. `citations` has one row per cited sentence: `claim`, `passage`
  (titles and texts), `numbers`, and optionally `entailed`: 1 if the passages together entail the
  sentence, as judged by a relation model, not a human. `uncited_sentences` is the number of
  sentences without a citation. Texts that abstain are included. **The texts may state falsehoods
  about real people**; use them to test metrics.
"""
