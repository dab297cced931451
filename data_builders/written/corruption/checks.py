"""Changes that are not false: what another supported claim of the document says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from data_builders.written.corruption.corrupters import Change, words_of
from data_builders.written.corruption.sources import Source
from eval.stages import EntailmentModel, entails

SAID = "another supported claim says it"
ENTAILED = "a supported claim entails it"
UNJUDGED = "the relation model could not judge it"


def true_after_all(
    sources: Sequence[Source],
    changes: Mapping[str, Mapping[str, Change]],
    entailment: EntailmentModel | None,
) -> dict[str, dict[str, Change]]:
    """Document to its changes, without those whose claim a supported one of the document says.

    Args:
        changes: document to claim to its change.
        entailment: also refuses what a supported claim entails, and what it fails to judge; without
            it the words decide.
    """
    found = {source.id: dict(changes[source.id]) for source in sources}
    for source in sources:
        supported = {tuple(words_of(text)) for text in source.supported}
        for name, change in found[source.id].items():
            if change.text is not None and tuple(words_of(change.text)) in supported:
                found[source.id][name] = change.but(SAID)
    if entailment is None:
        return found
    asked = [
        (source, name, premise)
        for source in sources
        for name, change in found[source.id].items()
        if change.text is not None
        for premise in source.supported
    ]
    pairs = [(premise, found[source.id][name].text) for source, name, premise in asked]
    table = entailment.relations(pairs) if pairs else []
    for (source, name, _), row in zip(asked, table, strict=True):
        change = found[source.id][name]
        why = UNJUDGED if np.isnan(row).any() else ENTAILED if entails(row) else None
        if why is not None and change.text is not None:
            found[source.id][name] = change.but(why)
    return found
