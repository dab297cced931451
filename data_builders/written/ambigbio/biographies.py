"""Biographies that a language model writes from passages, and their citations.

The models of 2402.05629 cite as in ALCE (Gao et al. 2023): numbers of passages in brackets after a
statement. A citation is a sentence without its brackets, and the cited passages.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from tqdm import tqdm

from clients.mediawiki import MediaWiki
from components.identity import identity
from data_builders.topics import Stratum
from data_builders.written.ambigbio.shared_names import QUERY, Name
from eval.metrics.citations import Cited, cited_sentences, without_numbers
from eval.models.chat import Answer
from eval.retrieve.knowledge import Knowledge
from eval.retrieve.wikipedia import TEXT, page_passages, site_of
from eval.stages import EntailmentModel, Retriever, entails
from records import Claim, Document, Generation, Passage, iter_rows, sha256_text


def generations(
    answers: dict[str, Answer],
    by_name: dict[str, list[Passage]],
    generator: str,
    judge: EntailmentModel | None,
    strata: Mapping[str, Stratum],
    dropped: Counter[str],
) -> Iterator[Generation]:
    """Yield the answers as generation records with citations; count failures.

    Texts that abstain are kept, since they lower the respond ratio.

    The records are also documents with passages: ``text`` is without brackets, for decomposers;
    ``cited_text`` is the original answer.
    """
    for name, answer in answers.items():
        text = without_numbers(answer.text)
        if answer.failed is not None:
            dropped[f"biography that failed: {answer.failed}"] += 1
        else:
            sentences = cited_sentences(answer.text)
            citations = list(_citations(sentences, by_name[name], dropped))
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
                passages=[{"id": p.id, "title": p.title, "text": p.text} for p in by_name[name]],
            )


def _citations(
    sentences: Sequence[Cited], passages: Sequence[Passage], dropped: Counter[str]
) -> Iterator[dict]:
    for claim, numbers in sentences:
        valid = [number for number in numbers if 1 <= number <= len(passages)]
        dropped["citation of a passage that was not given"] += len(numbers) - len(valid)
        if not claim.strip(" .,;:!?"):
            dropped["citation without a statement"] += len(valid)
        elif valid:
            yield {
                "claim": claim,
                "passage": [
                    f"Title: {p.title}\n{p.text}" for n in valid for p in [passages[n - 1]]
                ],
                "numbers": valid,
            }


def _judged(citations: Sequence[dict], judge: EntailmentModel, dropped: Counter[str]) -> list[dict]:
    """Add ``entailed``: 1 if the passages together entail the sentence.

    Citations that the model could not judge are counted and have no such field.
    """
    pairs = [("\n".join(citation["passage"]), citation["claim"]) for citation in citations]
    table = judge.relations(pairs) if pairs else []
    judged = []
    for citation, row in zip(citations, table, strict=True):
        if np.isnan(row).any():
            dropped["verdict on a citation that could not be judged"] += 1
            judged.append(citation)
        else:
            judged.append({**citation, "entailed": int(entails(row))})
    return judged


# Additional pages of a snapshot per name, from full-text search.
PASSAGES_PER_NAME = 5
PAGES_PER_NAME = 20


@runtime_checkable
class Search(Retriever, Protocol):
    """A retriever of the pipeline, checked by signature, not by base class."""


MakeSearch = Callable[[str], Search]


def wiki_passages(
    wiki: MediaWiki, names: Sequence[Name], words: int, dropped: Counter[str]
) -> Iterator[Passage]:
    """Yield passages of all candidates' current pages, with their revisions.

    TextExtracts returns one full page per request.
    """
    titles = list(dict.fromkeys(c.title for name in names for c in name.candidates))
    skipped: Counter[str] = Counter()
    site = site_of(wiki)
    seen: set[str] = set()
    for _, page in wiki.pages(titles, TEXT, "texts", skipped, per_request=1):
        passages = page_passages(page, words, site)
        if page["title"] in seen or not passages:
            skipped["empty text" if not passages else "duplicate page"] += 1
            continue
        seen.add(page["title"])
        yield from passages
    for reason, count in skipped.items():
        dropped[f"page of a candidate: {reason}"] += count


def knowledge_passages(
    knowledge: Knowledge, names: Sequence[Name], dropped: Counter[str]
) -> Iterator[Passage]:
    """Yield passages of the pages of a dated snapshot that match the names.

    These are the candidates' pages and, if the snapshot has a full-text index, the best matches of
    the name.
    """
    seen: set[str] = set()
    for name in tqdm(names, desc="pages of the snapshot", unit="name", disable=None):
        titles = [knowledge.resolve(candidate.title) for candidate in name.candidates]
        dropped["candidate without a page in the snapshot"] += titles.count(None)
        matches = knowledge.pages(name.name, PAGES_PER_NAME) if knowledge.searchable else []
        for title in dict.fromkeys([*titles, *matches]):
            if title is not None and title not in seen:
                seen.add(title)
                for passage in knowledge.passages(title):
                    yield passage.model_copy(update={"source": knowledge.path.name})


def retrieve(
    make: MakeSearch, pool: Path, names: Sequence[Name], dropped: Counter[str]
) -> tuple[dict[str, list[Passage]], dict]:
    """Return the passages of each name, best first, and the retriever's identity.

    Names without a passage are counted and skipped.
    """
    search = make(str(pool))
    documents = [Document(id=name.name, topic=name.name, text="") for name in names]
    queries = [[Claim(id="query", text=QUERY.format(name=name.name))] for name in names]
    claims, passages = search(documents, queries)
    by_name = {}
    for name, (claim,), retrieved in zip(names, claims, passages, strict=True):
        by_id = {passage.id: passage for passage in retrieved}
        if claim.contexts:
            by_name[name.name] = [by_id[context] for context in claim.contexts]
        else:
            dropped["name without a passage"] += 1
    return by_name, identity(search)


def read_retrieved(
    path: Path, names: Sequence[Name], dropped: Counter[str]
) -> dict[str, list[Passage]]:
    """Return the first five passages of each name in a file of ALCE's format.

    Names without a row are counted and skipped.
    """
    by_question = {QUERY.format(name=name.name): name.name for name in names}
    by_name: dict[str, list[Passage]] = {}
    for _, row in iter_rows(path):
        name = by_question.get(str(row.get("question")).strip(), row.get("name"))
        by_name[name] = [
            Passage(
                id=sha256_text(doc["title"] + doc["text"])[:16],
                title=doc["title"],
                text=doc["text"],
            )
            for doc in row["docs"][:PASSAGES_PER_NAME]
        ]
    dropped["name without a passage"] += sum(not by_name.get(name.name) for name in names)
    return {name.name: by_name[name.name] for name in names if by_name.get(name.name)}


def page_counts(by_name: dict[str, list[Passage]]) -> Counter[int]:
    return Counter(len({passage.title for passage in passages}) for passages in by_name.values())
