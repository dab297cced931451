"""Biographies that a language model writes from the passages, and the citations in them.

The models of 2402.05629 cite as in ALCE (Gao et al. 2023): numbers of passages in brackets behind a
statement. A citation is a sentence without its brackets and the passages that they name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from data_builders.topics import Stratum
from eval.metrics.citations import Cited, cited_sentences, without_numbers
from eval.models.chat import Answer
from eval.stages import EntailmentModel, entails
from records import Document, Generation, Passage
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
                **strata.get(name, Stratum()).known(),
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
                "passage": [_shown(passages[number - 1]) for number in known],
                "numbers": known,
            }


def _shown(passage: Passage) -> str:
    return f"Title: {passage.title}\n{passage.text}"


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
