"""``lead_pairs``: training data from leads: relation, UNLI and LSS records, claims and texts.

Only another number or year, a year in a wrong relation and a negation contradict a lead. Another
value of any other slot is ``not_entailment``, since a lead does not state all facts.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from components.english import with_article
from components.overlap import covered_share, stem_weights
from components.sentences import split_sentences
from data_builders.builder import Builder, Made, Work
from data_builders.evenness import pair_card
from data_builders.splits import SPLITS, by_split
from data_builders.written.attacks.phrases import Kind, family_of, fill, phrases
from data_builders.written.distant_lss.transform import Pool, Setting, entities, swap_entity
from data_builders.written.hard_pairs import (
    change_number,
    change_roles,
    negate_claim,
    shift_year,
)
from data_builders.written.leads.false_values import (
    SINGLE_VALUED,
    Article,
    FalseValues,
    article_files,
    clause_of_another,
    read_articles,
)
from data_builders.written.leads.lead_facts import LeadPerson
from data_builders.written.leads.lead_lss import lss_examples
from data_builders.written.leads.lead_statements import LeadStatement
from data_builders.written.leads.lead_texts import LEAST_FACTS, person_texts, stated_facts
from data_builders.written.leads.lead_unli import class_claims, unli_pairs
from data_builders.written.leads.wrong_relations import wrong_relations
from eval.stages import EntailmentModel, entails
from records import Passage, RelationPair

MAX_SHARE = 0.6  # of a statement's stems that a lead without its sentence may cover
ONE_SENTENCE = 0.4  # share of the statements whose premise is the sentence that states them
TAKEN_OUT = 0.4  # share of the possible pairs of a statement and a lead without its sentence
NEGATED = 0.4  # share of the statements that may be negated
RELATIONS = 2  # statements with years in a wrong relation, per statement
JUDGE = tuple(kind for kind in get_args(Kind) if family_of(kind) == "judge")
Sizes = tuple[int, int, int]
_Pair = tuple[str, str, str]  # hypothesis, label, source


@dataclass
class LeadPairs(Builder):
    """Relation, UNLI and LSS records, claims by frequency and texts from leads.

    UNLI pairs, claims and texts are about people. Shares are counted within a split.

    Args:
        leads: folder that ``leads`` wrote.
        per_article: maximum number of statements per article, each with false and neutral ones.
        phrased: share of the statements that are also put into a phrase of the bank ``seen`` and
            into its true twin (``phrases.yaml``).
        unli: maximum number of UNLI pairs in train, dev and test.
        lss: maximum number of LSS examples.
        people: maximum number of people about whom texts and claims are written, of those whose
            lead states at least five facts.
        corrupted: probability that a sentence of a normal text is made false.
        claims_per_person: maximum number of claims of each class (bleached, common, specific,
            unlisted) in the files that evaluate a UNLI model.
        judge: a relation model to harden: of the training rows, only those on which it does worst
            are written, as many entailed ones as others, and no other records than relation pairs.
            Null: all rows.
    """

    leads: str = "data/leads"
    per_article: int = 3
    phrased: float = 0.25
    unli: Sizes = (6000, 800, 800)
    lss: Sizes = (1500, 200, 200)
    people: Sizes = (300, 60, 60)
    corrupted: float = 0.3
    claims_per_person: int = 6
    judge: EntailmentModel | None = None

    least: ClassVar = {
        "per_article": 1,
        "unli": 0,
        "lss": 0,
        "people": 0,
        "claims_per_person": 1,
    }
    probabilities = ("phrased", "corrupted")

    def files(self) -> dict[str, dict[str, str]]:
        if self.judge is not None:
            return {"relation": by_split("relation")}
        kinds = {kind: by_split(kind) for kind in ("relation", "unli", "lss", "texts")}
        return kinds | {"claims": by_split("claims", SPLITS[1:])}

    def inputs(self) -> list[str]:
        return [path for split in SPLITS for path in article_files(self.leads, split)]

    def make(self, work: Work) -> Made:
        articles = {split: read_articles(self.leads, split)[: self.limit] for split in SPLITS}
        files = {f"relation_{split}.jsonl": list(self._rows(articles[split])) for split in SPLITS}
        train = files["relation_train.jsonl"]
        if self.judge is None:
            for index, split in enumerate(SPLITS):
                files |= self._records(articles[split], index, work.dropped)
        else:
            train[:] = _hardest(train, self.judge)
        card, details = pair_card("lead_pairs", train)
        return Made(files, card, details=details)

    def _records(
        self, articles: Sequence[Article], index: int, dropped: Counter[str]
    ) -> dict[str, list]:
        """Map each file of a split, except that of the relation pairs, to its records."""
        split, seed = SPLITS[index], self.seed
        people = [LeadPerson(article) for article in articles if article.group == "People"]
        complete = [person for person in people if len(stated_facts(person)) >= LEAST_FACTS]
        drawn = random.Random(f"{seed}:people:{split}").sample(complete, len(complete))
        about = drawn[: self.people[index]]
        files = {
            "unli": unli_pairs(people, split, self.unli[index], seed, dropped),
            "lss": lss_examples(articles, split, self.lss[index], seed, dropped),
            "texts": list(person_texts(about, self.corrupted, split, seed)),
        }
        if split != "train":
            files["claims"] = list(class_claims(people, about, split, self.claims_per_person, seed))
        return {f"{kind}_{split}.jsonl": records for kind, records in files.items()}

    def _rows(self, articles: Sequence[Article]) -> Iterator[RelationPair]:
        values = FalseValues(articles)
        text = "\n".join(article.passage.text for article in articles)
        pool = Pool(entities=entities(text))
        weight = stem_weights(article.passage.text for article in articles)
        for article in articles:
            rng = random.Random(f"{self.seed}:{article.passage.title}")
            yield from _described(article)
            lead = article.passage.text
            sentences = split_sentences(lead)
            setting = Setting(lead, entities(lead), pool, share_near=0.5)
            size = min(self.per_article, len(article.statements))
            for statement in rng.sample(article.statements, size):
                pairs = list(self._true_and_false(rng, values, article, setting, statement))
                if (stranger := clause_of_another(rng, articles, article)) is not None:
                    pairs.append((stranger, "neutral", "another article"))
                is_short = article.name in statement.source and rng.random() < ONE_SENTENCE
                premise = statement.source if is_short else lead
                yield from (_row(article.passage, premise, *pair) for pair in pairs)
                remaining = [text for text in sentences if text not in statement.source]
                if is_short and remaining and not statement.value:
                    pair = (statement.text, "neutral", "another sentence")
                    yield _row(article.passage, rng.choice(remaining), *pair)
                rest = lead.replace(statement.source, "").strip()
                covered = covered_share(statement.text, [rest], weight)
                if rest != lead and covered < MAX_SHARE and rng.random() < TAKEN_OUT:
                    taken = (statement.text, "neutral", "sentence taken out")
                    yield _row(article.passage, rest, *taken)
            for statement in article.statements:
                for pair in _wrongly_related(rng, article, statement):
                    yield _row(article.passage, lead, *pair)

    def _true_and_false(
        self,
        rng: random.Random,
        values: FalseValues,
        article: Article,
        setting: Setting,
        statement: LeadStatement,
    ) -> Iterator[_Pair]:
        yield rng.choice((statement.text, *statement.reworded)), "entailment", statement.rule
        true, false = statement.text, None
        if statement.value:
            label = "contradiction" if statement.rule in SINGLE_VALUED else "not_entailment"
            if version := next(values.versions(rng, article, statement), None):
                false, true = version
                yield false, label, statement.rule
        else:
            yield from _changed(rng, setting, statement.text)
        if rng.random() < self.phrased:
            yield from _phrased(rng, article, true, false)


def _hardest(pairs: Sequence[RelationPair], judge: EntailmentModel) -> list[RelationPair]:
    """The pairs on which a judge does worst: as many entailed ones as others.

    Their number is twice that of the errors on the side with more errors.
    """
    probabilities = judge.relations([(pair.premise, pair.hypothesis) for pair in pairs])
    is_entailed = np.asarray([pair.label == "entailment" for pair in pairs])
    wrong = entails(probabilities) != is_entailed
    size = max(np.sum(wrong & is_entailed), np.sum(wrong & ~is_entailed))
    by_support = np.argsort(probabilities[:, 0], kind="stable")
    rejected = by_support[is_entailed[by_support]][:size]
    accepted = by_support[~is_entailed[by_support]][::-1][:size]
    return [pairs[index] for index in sorted([*rejected, *accepted])]


def _changed(rng: random.Random, setting: Setting, text: str) -> Iterator[_Pair]:
    """At most two minimal changes of a statement."""
    edits = [
        (change_number(text, setting.reference, rng), "contradiction", "number"),
        (shift_year(text, setting.reference, rng), "contradiction", "year"),
        (swap_entity(text, setting, rng), "not_entailment", "name"),
        (change_roles(text, setting.reference, rng), "not_entailment", "role"),
    ]
    if rng.random() < NEGATED:
        edits.append((negate_claim(text, setting.reference, rng), "contradiction", "negation"))
    possible = [(pieces, *rest) for pieces, *rest in edits if pieces]
    for pieces, label, source in rng.sample(possible, min(2, len(possible))):
        yield "".join(part for part, _ in pieces), label, source


def _described(article: Article) -> Iterator[RelationPair]:
    """Whether the lead entails its short description, in which other people chose the words."""
    start, separator, extract = article.passage.text.partition(". ")
    description = start.removeprefix(f"{article.name}: ").partition(" (")[0]
    if separator and start.startswith(f"{article.name}: "):
        text = f"{article.name} can be described as {with_article(description)}."
        yield _row(article.passage, extract, text, "entailment", "description")


def _phrased(rng: random.Random, article: Article, true: str, false: str | None) -> Iterator[_Pair]:
    """A true statement in a phrase that makes it false or unsupported, and in its true twin."""
    kind = rng.choice(JUDGE)
    label = "contradiction" if kind == "denied" else "not_entailment"
    title = article.passage.title
    if text := fill(rng.choice(phrases(kind, "seen")), true, title):
        yield text, label, f"phrase {kind}"
    if text := fill(rng.choice(phrases(kind, "true_seen")), true, title, false):
        yield text, "entailment", f"twin {kind}"


def _wrongly_related(
    rng: random.Random, article: Article, statement: LeadStatement
) -> Iterator[_Pair]:
    """Statements with years of the lead in a wrong relation, and with the same years in theirs."""
    related = [r for r in wrong_relations(rng, article, statement) if r.bank == "seen"]
    for relation in related[:RELATIONS]:
        yield relation.text, "contradiction", "relation"
        yield relation.twin, "entailment", "relation"


def _row(passage: Passage, premise: str, text: str, label: str, source: str) -> RelationPair:
    return RelationPair(
        premise=premise,
        hypothesis=text,
        label=label,
        source=f"lead/{source}",
        group=passage.title,
    )
