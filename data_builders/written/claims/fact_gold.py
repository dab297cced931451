"""Estimated gold scores of texts that a model wrote, by the known facts that they state."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from jsonargparse.typing import PositiveInt

from components.english import stems
from components.gold import GOLD_K, fact_key
from components.overlap import covered_share, stem_weights
from components.sentences import split_sentences
from data_builders.written.claims.known_facts import World
from eval.stages import EntailmentModel, entails
from records import Gold, Passage, gold_scores, read_records
from records.cleaning import clean

LEAST_SHARE = 0.2  # of a fact's words, that a sentence needs to credit it


class FactGold:
    """Gold scores by facts: a sentence credits each fact of its topic that it entails and names.

    A true sentence that no page states credits none. A small relation model takes statements that
    are true of anyone for facts, hence the second condition: the sentence has at least
    ``LEAST_SHARE`` of the fact's words, weighted by their rarity, without the topic's name.
    Use another relation model than the metrics that are compared with these scores (another seed):
    a shared error would count as agreement.

    Args:
        entailment: a relation model, by ``class_path``; with a ``cache`` an interrupted build
            resumes.
        pages: files of passages; each sentence is a fact of the passage's title.
        k: number of facts of a complete answer.
    """

    def __init__(
        self,
        entailment: EntailmentModel,
        pages: list[str],
        k: PositiveInt = GOLD_K,
    ):
        self.entailment, self.pages, self.k = entailment, pages, k

    @cached_property
    def _world(self) -> World:
        return World(
            [], [passage for path in self.pages for passage in read_records(path, Passage)]
        )

    def __call__(self, texts: Sequence[tuple[str, str]]) -> list[Gold | None]:
        """Score (topic, text) pairs; ``None`` without known facts, or if a pair was not judged."""
        facts = [[f.text for p in self._world.pages_named(t) for f in p.facts] for t, _ in texts]
        named = [
            [
                (sentence, self._named(topic, sentence, topic_facts))
                for sentence in split_sentences(clean(text).text)
            ]
            for (topic, text), topic_facts in zip(texts, facts, strict=True)
        ]
        pairs = [(s, fact) for sentences in named for s, some in sentences for fact in some]
        table = np.array(self.entailment.relations(pairs), dtype=float).reshape(-1, 3)
        entailed = dict(zip(pairs, entails(table), strict=True))
        failed = {pair for pair, row in zip(pairs, table, strict=True) if np.isnan(row).any()}
        golds: list[Gold | None] = []
        for sentences, topic_facts in zip(named, facts, strict=True):
            credited = [
                {fact_key(fact) for fact in some if entailed[sentence, fact]}
                for sentence, some in sentences
            ]
            has_failed = any((s, fact) in failed for s, some in sentences for fact in some)
            gold = gold_scores(credited, min(self.k, len(topic_facts)), "estimated")
            golds.append(gold if topic_facts and not has_failed else None)
        return golds

    def _named(self, topic: str, sentence: str, facts: list[str]) -> list[str]:
        name, weight = set(stems(topic)), self._weight

        def weight_without_name(stem: str) -> float:
            return 0.0 if stem in name else weight(stem)

        shares = [covered_share(fact, [sentence], weight_without_name) for fact in facts]
        return [f for f, share in zip(facts, shares, strict=True) if share >= LEAST_SHARE]

    @cached_property
    def _weight(self) -> Callable[[str], float]:
        pages = self._world.pages.values()
        return stem_weights(fact.text for page in pages for fact in page.facts)
