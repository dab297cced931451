"""``claim_pairs``: distant UNLI and relation pairs from any file of documents with claims.

A text's subclaims cover more topics than the properties of a knowledge base. Labels follow from
the decomposition: the source sentence of a claim entails it, a claim entails statements that are
true of anyone but not vice versa, and two claims of one text with few common words are neutral.
The labels come from rules, not annotators; each row's ``source`` names its rule.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from bm25s.stopwords import STOPWORDS_EN_PLUS
from tqdm import tqdm

from components.sentences import split_sentences
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from data_builders.splits import SPLITS, by_split, drawn_splits
from data_builders.written.bleached_statements import bleached_statement, bleached_templates
from data_builders.written.claims.clauses import name_of, pronoun_of
from records import Document, RelationPair, UnliPair, UserError, read_records
from records.cleaning import clean

# Minimum share of a claim's content words that the sentence that entails it contains.
COVERED = 0.8
# Maximum share of the shorter claim's words in two claims that are neutral.
SHARED = 0.5
# UNLI probabilities of rules: nearly certain, and a fixed guess for specific claims.
ENTAILED, SPECIFIC = 0.97, 0.03

_WORD = re.compile(r"\w+")
_FUNCTION = frozenset(STOPWORDS_EN_PLUS) - {"won"}  # of "won't"

Pair = tuple[str, str]


@dataclass
class ClaimPairs(Builder):
    """Distant UNLI and relation pairs from documents with claims.

    Args:
        documents: files of document records with ``claims``, or of a supported project's format,
            whose topics are people.
        per_document: maximum number of pairs per rule and document.
        shares: ratio of train, dev and test; documents of a topic are in the same split.
    """

    documents: list[str]
    per_document: int = 4
    shares: tuple[int, int, int] = (8, 1, 1)

    reads = ("documents",)
    least: ClassVar = {"per_document": 1, "shares": 0}

    def files(self) -> dict[str, dict[str, str]]:
        return {kind: by_split(kind) for kind in ("relation", "unli")}

    def make(self, work: Work) -> Made:
        rows = [d for path in self.documents for d in read_records(path, Document)][: self.limit]
        documents = [document for document in rows if document.claims]
        if not documents:
            raise UserError("documents: no document has `claims`")
        work.dropped["document without claims"] += len(rows) - len(documents)
        files: dict[str, list] = {}
        split_of = drawn_splits((d.topic for d in documents), self.shares, self.seed)
        for split in SPLITS:
            members = [document for document in documents if split_of[document.topic] == split]
            relation, unli = self._pairs(members, split, work.dropped)
            files |= {f"relation_{split}.jsonl": relation, f"unli_{split}.jsonl": unli}
        return Made(files, read_card("claim_pairs"))

    def _pairs(
        self, documents: Sequence[Document], split: str, dropped: Counter[str]
    ) -> tuple[list[RelationPair], list[UnliPair]]:
        rng = random.Random(f"{self.seed}:{split}")
        relation: dict[Pair, RelationPair] = {}
        unli: dict[Pair, UnliPair] = {}
        for document in tqdm(documents, split, unit="document", disable=None):
            for rule, (maker, label, probability) in RULES.items():
                pairs = list(maker(document, split, rng))
                dropped[f"{rule}: no pair in a document of {split}"] += not pairs
                for pair in rng.sample(pairs, min(len(pairs), self.per_document)):
                    common = {"premise": pair[0], "hypothesis": pair[1], "source": rule}
                    relation.setdefault(pair, RelationPair(label=label, **common))
                    if probability is not None:
                        unli.setdefault(pair, UnliPair(label=probability, **common))
        return (
            rng.sample(list(relation.values()), len(relation)),
            rng.sample(list(unli.values()), len(unli)),
        )


def content(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if word not in _FUNCTION}


def _bleached(document: Document, split: str, rng: random.Random, named: bool = False) -> str:
    template = rng.choice(bleached_templates(split))
    name, pronoun = name_of(document.topic), pronoun_of(document.text)
    return bleached_statement(rng, template, name, pronoun, named)


def _from_sentence(document: Document, split: str, rng: random.Random) -> Iterator[Pair]:
    name = content(document.topic)
    sentences = [(text, content(text)) for text in split_sentences(clean(document.text).text)]
    for claim in document.claims or []:
        words = content(claim.text) - name
        best = max(sentences, key=lambda s: len(words & s[1]), default=None)
        text = claim.source or (best and best[0])
        if text and words and len(words & content(text)) >= COVERED * len(words):
            yield text, claim.text


def _to_bleached(document: Document, split: str, rng: random.Random) -> Iterator[Pair]:
    for claim in document.claims or []:
        if claim.text.startswith((name_of(document.topic), "He ", "She ")):
            yield claim.text, _bleached(document, split, rng)


def _from_bleached(document: Document, split: str, rng: random.Random) -> Iterator[Pair]:
    name = content(document.topic)
    for claim in document.claims or []:
        if len(content(claim.text) - name) >= 2:
            statements = [
                _bleached(document, split, rng, named=index == 0)
                for index in range(rng.choices((1, 2, 3), (6, 1, 1))[0])
            ]
            yield " ".join(statements), claim.text


def _of_one_text(document: Document, split: str, rng: random.Random) -> Iterator[Pair]:
    name = content(document.topic)
    claims = [(c.text, content(c.text) - name) for c in document.claims or []]
    for _ in range(6 * len(claims)):
        (left, words), (right, other_words) = rng.choice(claims), rng.choice(claims)
        shortest = min(len(words), len(other_words))
        if shortest and left != right and len(words & other_words) <= SHARED * shortest:
            yield left, right


# Rule to its function, relation, and UNLI probability (``None``: no UNLI pair).
RULES: dict[str, tuple[Callable, str, float | None]] = {
    "distant/from_sentence": (_from_sentence, "entailment", ENTAILED),
    "distant/to_bleached": (_to_bleached, "entailment", ENTAILED),
    "distant/from_bleached": (_from_bleached, "neutral", SPECIFIC),
    "distant/of_one_text": (_of_one_text, "neutral", None),
}
