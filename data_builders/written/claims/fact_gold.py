"""Estimated gold scores of texts that a model wrote, by the known facts that they state."""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain, product

import numpy as np
from jsonargparse.typing import PositiveInt

from components.gold import GOLD_K, fact_key
from components.sentences import split_sentences
from data_builders.journal import identity_of
from data_builders.written.claims.known_facts import World
from eval.stages import EntailmentModel, entails
from records import Gold, Passage, gold_scores, read_records, sha256_file


class FactGold:
    """Gold scores by facts: a sentence credits each fact of its topic that it entails.

    A true sentence that no page states credits none. One that is true of anyone should credit none,
    but a small relation model errs: compare with the scores of texts known to be uninformative.
    Use another relation model than the metrics that are compared with these scores (another seed):
    a shared error would count as agreement.

    Args:
        entailment: a relation model, by ``class_path``; with a ``cache`` an interrupted build
            resumes.
        pages: files of passages; each sentence is a fact of the passage's title.
        k: number of facts of a complete answer.
    """

    def __init__(self, entailment: EntailmentModel, pages: list[str], k: PositiveInt = GOLD_K):
        self.entailment, self.pages, self.k = entailment, pages, k

    @property
    def identity(self) -> list:
        return [identity_of(self.entailment), [sha256_file(page) for page in self.pages], self.k]

    @cached_property
    def _world(self) -> World:
        return World(
            [], [passage for path in self.pages for passage in read_records(path, Passage)]
        )

    def __call__(self, texts: Sequence[tuple[str, str]]) -> list[Gold | None]:
        """Score (topic, text) pairs; ``None`` without known facts, or if a pair was not judged."""
        facts = [[f.text for p in self._world.pages_named(t) for f in p.facts] for t, _ in texts]
        sentences = [split_sentences(text) for _, text in texts]
        pairs = list(chain.from_iterable(map(product, sentences, facts)))
        relations = dict(zip(pairs, self.entailment.relations(pairs), strict=True))
        golds: list[Gold | None] = []
        for text_sentences, text_facts in zip(sentences, facts, strict=True):
            shape = (len(text_sentences), len(text_facts), 3)
            rows = [relations[pair] for pair in product(text_sentences, text_facts)]
            table = np.array(rows, dtype=float).reshape(shape)
            keys = np.array([fact_key(fact) for fact in text_facts])
            credited = [set(keys[row]) for row in entails(table)]
            gold = gold_scores(credited, min(self.k, len(text_facts)), "estimated")
            golds.append(gold if text_facts and not np.isnan(table).any() else None)
        return golds
