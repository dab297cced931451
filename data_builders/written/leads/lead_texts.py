"""Texts about people of leads: biographies with known truth, and the styles of two adversaries.

Core (2407.03572, section 5) attacks factual precision with uninformative texts (true of anyone) and
repetitive ones (one fact many times). False statements are created only in ``normal`` texts: a
value is replaced by one that the lead does not support, and the claim is labelled NS.
"""

import random
from collections.abc import Iterator, Sequence

from components.gold import GOLD_K
from data_builders.written.attacks.phrases import lines_of
from data_builders.written.bleached_statements import bleached_statement, bleached_templates
from data_builders.written.claims.clauses import capitalise, clause_of, mid_sentence
from data_builders.written.leads.false_values import FalseValues, clauses_of
from data_builders.written.leads.lead_facts import LeadPerson
from data_builders.written.leads.lead_statements import LeadStatement
from records import Claim, Document, gold_scores

GENERATOR = "lead_pairs"
PRONOUN = 0.5  # share of the sentences after the first whose subject is a pronoun, if it is known
FRAMED = 0.5  # share of the sentences of repetitive texts in a frame such as "In other words, …"
LEAST_FACTS = 5  # of a person about whom texts are written

# The claim with the full name, its sentence, and the fact that it credits.
_Sentence = tuple[str, str, str | None]


def stated_facts(person: LeadPerson) -> list[LeadStatement]:
    """Return a statement of each fact of a lead; of "poet" and "lyric poet" only the first.

    Clauses of the description and the first sentence repeat facts of slots and are left out.
    """
    facts: dict[tuple[str, str], LeadStatement] = {}
    clauses = clauses_of(person.article)
    for statement in person.article.statements:
        if statement.value:
            fact = (statement.rule, statement.value.rpartition(" ")[2])
        elif statement.sentence > 1 and statement.text in clauses:
            fact = ("sentence", statement.source)
        else:
            continue
        facts.setdefault(fact, statement)
    slots = {s.source for s in facts.values() if s.value}
    return [s for s in facts.values() if s.value or s.source not in slots]


def person_texts(
    people: Sequence[LeadPerson], corrupted: float, split: str, seed: int
) -> Iterator[Document]:
    """Write a ``normal``, an ``uninformative`` and a ``repetitive`` text about each person.

    A claim of a normal text with a slot is made false with probability ``corrupted``.
    """
    values = FalseValues(person.article for person in people)
    for person in people:
        rng = random.Random(f"{seed}:texts:{person.article.passage.title}")
        facts = stated_facts(person)
        k = min(GOLD_K, len(facts))
        yield _document(person, "normal", list(_normal(rng, values, person, facts, corrupted)), k)
        yield _document(person, "uninformative", list(_uninformative(rng, person, split)), k)
        yield _document(person, "repetitive", list(_repetitive(rng, person, facts)), k)


def _normal(
    rng: random.Random,
    values: FalseValues,
    person: LeadPerson,
    facts: Sequence[LeadStatement],
    corrupted: float,
) -> Iterator[_Sentence]:
    for index, statement in enumerate(facts):
        text, fact = rng.choice((statement.text, *statement.reworded)), statement.text
        is_false = statement.value and rng.random() < corrupted
        if is_false and (version := next(values.versions(rng, person.article, statement), None)):
            text, fact = version[0], None
        yield text, _with_pronoun(rng, person, text) if index else text, fact


def _uninformative(rng: random.Random, person: LeadPerson, split: str) -> Iterator[_Sentence]:
    templates = rng.sample(bleached_templates(split), rng.randint(10, 20))
    for index, template in enumerate(templates):
        text = bleached_statement(rng, template, person.name, person.pronoun, named=True)
        yield text, _with_pronoun(rng, person, text) if index else text, None


def _repetitive(
    rng: random.Random, person: LeadPerson, facts: Sequence[LeadStatement]
) -> Iterator[_Sentence]:
    statement = rng.choice([fact for fact in facts if fact.reworded])
    frames = rng.sample(lines_of("frames")[1:], len(lines_of("frames")) - 1)
    wordings = (statement.text, *statement.reworded)
    for index in range(rng.randint(12, len(frames))):
        text = wordings[index % len(wordings)]
        sentence = _with_pronoun(rng, person, text) if index else text
        if index >= len(wordings) or rng.random() < FRAMED:
            clause = mid_sentence(sentence)
            sentence = frames[index].format(p=clause, P=capitalise(clause))
        yield text, sentence, statement.text


def _with_pronoun(rng: random.Random, person: LeadPerson, text: str) -> str:
    clause = clause_of(text, person.article.passage.title)
    if person.pronoun is None or clause is None or rng.random() >= PRONOUN:
        return text
    return f"{clause.with_subject(person.pronoun.capitalize())}."


def _document(person: LeadPerson, kind: str, sentences: Sequence[_Sentence], k: int) -> Document:
    credited = [{fact} if fact else set() for _, _, fact in sentences]
    return Document(
        id=f"{person.article.passage.title}/{kind}",
        topic=person.article.passage.title,
        text=" ".join(sentence for _, sentence, _ in sentences),
        claims=[
            Claim(
                id=f"c{index}",
                text=text,
                sentence=index,
                source=sentence,
                label="NS" if kind == "normal" and fact is None else "S",
            )
            for index, (text, sentence, fact) in enumerate(sentences)
        ],
        kind=kind,
        generator=GENERATOR,
        group=person.article.group,
        gold=gold_scores(credited, k, "construction"),
    )
