"""Gold scores of attacked texts, by what their claims rest on."""

from components.gold import credited_texts, fact_key
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import Attacked, basis_ids
from records import Claim, Gold, gold_scores


def attack_gold(
    source: Source, attacked: Attacked, world: World, is_separated: bool
) -> Gold | None:
    """Score an attacked text; ``None`` if the honest document has no gold scores.

    A supported claim credits the facts of the document's claims that it rests on, else the facts of
    pages, if all of them are about the topic.

    Args:
        is_separated: the text states whom each fact is about, so another person's facts count.
    """
    honest = source.document.gold
    if honest is None:
        return None
    credited = [credited_facts(claim, source, world, is_separated) for claim in attacked.claims]
    return gold_scores(credited, honest.k, honest.source)


def credited_facts(claim: Claim, source: Source, world: World, is_separated: bool) -> set[str]:
    """The facts that a claim credits."""
    if claim.label != "S":
        return set()
    basis = basis_ids(claim)
    claims = {original.id: original for original in source.claims}
    of_document = [claims[name] for name in basis if name in claims]
    if of_document:
        return set().union(*credited_texts(of_document))
    facts = [world.facts[name] for name in basis if name in world.facts]
    if not is_separated and not all(world.is_topic_page(source, page) for _, page in facts):
        return set()
    return {fact_key(fact.text) for fact, _ in facts}
