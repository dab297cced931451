"""Gold scores of attacked texts, by what their claims rest on."""

from components.gold import fact_key
from data_builders.written.claims.knowledge_base import KNOWN_FACT
from data_builders.written.claims.known_facts import World
from data_builders.written.claims.labelled import Source
from data_builders.written.claims.validity import Attacked, basis_ids
from records import Claim, Gold, gold_scores


def attack_gold(
    source: Source, attacked: Attacked, world: World, is_separated: bool
) -> Gold | None:
    """Score an attacked text; ``None`` if the honest document has no gold scores.

    A supported claim credits the claims of the document that it rests on, else the facts, if all of
    them are about the topic. The second claim of a pair whose order suggests something false
    credits nothing.

    Args:
        is_separated: the text states whom each fact is about, so another person's facts count.
    """
    honest = source.document.gold
    if honest is None:
        return None
    misleading = {pair["then"] for pair in attacked.more.get("suggests") or ()}
    credited = [
        set() if claim.id in misleading else credited_facts(claim, source, world, is_separated)
        for claim in attacked.claims
    ]
    return gold_scores(credited, honest.k, honest.source)


def credited_facts(claim: Claim, source: Source, world: World, is_separated: bool) -> set[str]:
    """The facts that a claim credits; a fact of the knowledge base is its property and value."""
    if claim.label != "S":
        return set()
    basis = basis_ids(claim)
    claims = {original.id: original for original in source.claims}
    of_document = [claims[name] for name in basis if name in claims]
    if of_document:
        # A corrected claim rests on a false one, and is a fact of its own.
        return {fact_key(c.text) if c.label == "S" else c.id for c in of_document}
    facts = [world.facts[name] for name in basis if name in world.facts]
    if not facts:
        return {name for name in basis if name.startswith(KNOWN_FACT)}
    if not is_separated and not all(world.is_topic_page(source, page) for _, page in facts):
        return set()
    return {fact_key(fact.text) for fact, _ in facts}
