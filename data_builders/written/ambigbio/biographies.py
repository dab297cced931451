"""Biographies that a language model writes from the passages, and the citations in them.

The models of 2402.05629 cite as in ALCE (Gao et al. 2023): numbers of passages in brackets behind a
statement. A citation is a sentence without its brackets and the passages that they name.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from tqdm import tqdm

from clients.mediawiki import MediaWiki
from data_builders.topics import Stratum
from data_builders.written.ambigbio.shared_names import QUERY, Name
from eval.metrics.citations import Cited, cited_sentences, without_numbers
from eval.models.chat import Answer
from eval.retrieve.knowledge import Knowledge
from eval.retrieve.wikipedia import TEXT, page_passages, site_of
from eval.stages import EntailmentModel, Retriever, entails
from records import Claim, Document, Generation, Passage
from records.abstention import responds


def generations(
    answers: dict[str, Answer],
    found: dict[str, list[Passage]],
    generator: str,
    judge: EntailmentModel | None,
    strata: Mapping[str, Stratum],
    dropped: Counter[str],
) -> Iterator[Generation]:
    """The answers as generation records with citations; what is no biography is counted.

    Such a record is a document with passages as well: ``text`` has no brackets in it, so that a
    decomposer does not stumble over them; ``cited_text`` is as the model wrote it.
    """
    for name, answer in answers.items():
        text = without_numbers(answer.text)
        if answer.failed is not None:
            dropped[f"biography that failed: {answer.failed}"] += 1
        elif not text:
            dropped["biography without a word"] += 1
        elif not responds(Document(id=name, topic=name, text=text)):
            dropped["biography that abstains"] += 1
        else:
            sentences = cited_sentences(answer.text)
            citations = list(_citations(sentences, found[name], dropped))
            if judge is not None:
                citations = _judged(citations, judge, dropped)
            yield Generation(
                id=name,
                topic=name,
                text=text,
                kind="normal",
                generator=generator,
                **strata.get(name, Stratum()).as_fields(),
                citations=citations,
                uncited_sentences=sum(not sentence.numbers for sentence in sentences),
                cited_text=answer.text,
                passages=[{"id": p.id, "title": p.title, "text": p.text} for p in found[name]],
            )


def _citations(
    sentences: Sequence[Cited], passages: Sequence[Passage], dropped: Counter[str]
) -> Iterator[dict]:
    for claim, numbers in sentences:
        known = [number for number in numbers if 1 <= number <= len(passages)]
        dropped["citation of a passage that was not given"] += len(numbers) - len(known)
        if not claim.strip(" .,;:!?"):
            dropped["citation behind no words"] += len(known)
        elif known:
            yield {
                "claim": claim,
                "passage": [
                    f"Title: {p.title}\n{p.text}" for n in known for p in [passages[n - 1]]
                ],
                "numbers": known,
            }


def _judged(citations: Sequence[dict], judge: EntailmentModel, dropped: Counter[str]) -> list[dict]:
    """The citations with ``entailed``: 1 where the passages together entail the sentence.

    A citation that the model could not judge stays without it, and is counted.
    """
    pairs = [("\n".join(citation["passage"]), citation["claim"]) for citation in citations]
    table = judge.relations(pairs) if pairs else []
    found = []
    for citation, row in zip(citations, table, strict=True):
        if np.isnan(row).any():
            dropped["verdict on a citation that could not be judged"] += 1
            found.append(citation)
        else:
            found.append({**citation, "entailed": int(entails(row))})
    return found


# Pages of a snapshot beside the candidates' that full-text search adds.
PAGES_A_NAME = 20


@runtime_checkable
class Search(Retriever, Protocol):
    """A retriever of the pipeline; its class is known by its signature, not by its base."""


MakeSearch = Callable[[str], Search]


def wiki_passages(
    wiki: MediaWiki, names: Sequence[Name], words: int, dropped: Counter[str]
) -> Iterator[Passage]:
    """Passages of all candidates' pages as they are now, with the revision that was read.

    A whole text is one request (TextExtracts gives whole pages one at a time).
    """
    titles = list(dict.fromkeys(c.title for name in names for c in name.candidates))
    gone: Counter[str] = Counter()
    site = site_of(wiki)
    seen: set[str] = set()
    for _, page in wiki.pages(titles, TEXT, "texts", gone, per_request=1):
        passages = page_passages(page, words, site)
        if page["title"] in seen or not passages:
            gone["empty text" if not passages else "page that two titles lead to"] += 1
            continue
        seen.add(page["title"])
        yield from passages
    for reason, count in gone.items():
        dropped[f"page of a candidate: {reason}"] += count


def knowledge_passages(
    knowledge: Knowledge, names: Sequence[Name], dropped: Counter[str]
) -> Iterator[Passage]:
    """Passages of the pages of a dated snapshot that a name may be about.

    These are the candidates' pages and, where the snapshot has a full-text index, the pages that
    match the name best: a retriever over the whole of Wikipedia would hardly find others.
    """
    seen: set[str] = set()
    for name in tqdm(names, desc="pages of the snapshot", unit="name", disable=None):
        own = [knowledge.resolve(candidate.title) for candidate in name.candidates]
        dropped["candidate without a page in the snapshot"] += own.count(None)
        more = knowledge.pages(name.name, PAGES_A_NAME) if knowledge.searchable else []
        for title in dict.fromkeys([*own, *more]):
            if title is not None and title not in seen:
                seen.add(title)
                for passage in knowledge.passages(title):
                    yield passage.model_copy(update={"source": knowledge.path.name})


def retrieve(
    make: MakeSearch, pool: Path, names: Sequence[Name], dropped: Counter[str]
) -> tuple[dict[str, list[Passage]], dict]:
    """The passages found for each name, best first, and what the retriever says that it is.

    Names without a passage are counted and left out.
    """
    search = make(str(pool))
    documents = [Document(id=name.name, topic=name.name, text="") for name in names]
    queries = [[Claim(id="query", text=QUERY.format(name=name.name))] for name in names]
    claims, passages = search(documents, queries)
    found = {}
    for name, (claim,), own in zip(names, claims, passages, strict=True):
        by_id = {passage.id: passage for passage in own}
        if claim.contexts:
            found[name.name] = [by_id[context] for context in claim.contexts]
        else:
            dropped["name for which no passage was found"] += 1
    said = getattr(search, "identity", {"class": type(search).__name__})
    return found, said


def page_counts(found: dict[str, list[Passage]]) -> Counter[int]:
    """How many names have passages of so many pages."""
    return Counter(len({passage.title for passage in own}) for own in found.values())
