"""The certificate of a relation model: which statements with known truth it takes for entailed.

The same file (``data_builders probes``) certifies a whole column in the robustness experiment.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from components.certificate import Acceptance
from records import Document, RelationPair, UserError, read_records
from train.encoder import Encoder, Item, Split


def read_probes(path: str, encoder: Encoder) -> Split:
    """The statements of a file, each with its evidence; ``sources`` are ``FAMILY, BANK``."""
    if encoder.record_type is not RelationPair:
        raise UserError("--data.probes: only a relation model has a certificate; remove the option")
    split = Split([path], [], [], [])
    for number, document in enumerate(read_records(path, Document), 1):
        more = document.model_extra or {}
        if "probe" not in more or not document.claims or not document.passages:
            raise UserError(
                f"{path}:{number}: expected a `probe`, claims and passages; make the file by "
                "`python -m data_builders probes`"
            )
        evidence = "\n".join(passage.text for passage in document.passages)
        for claim in document.claims:
            label = "entailment" if claim.label == "S" else "not_entailment"
            pair = RelationPair(premise=evidence, hypothesis=claim.text, label=label)
            split.records.append(pair)
            split.sources.append(f"{more['probe']}, {more.get('bank', 'plain')}")
            split.places.append(f"{path}:{number}")
    return split


def acceptances(split: Split, items: Iterable[Item], predicted: np.ndarray) -> list[Acceptance]:
    """Accepted statements by family and bank.

    Args:
        split: the statements.
        items: the window of each statement that counts.
        predicted: probabilities of the relations, entailment first, shape (items, 3).
    """
    accepted: dict[str, list[bool]] = defaultdict(list)
    for item, relation in zip(items, predicted.argmax(axis=1), strict=True):
        accepted[split.sources[item.row]].append(bool(relation == 0))
    return [
        Acceptance(*source.rsplit(", ", 1), n=len(judged), accepted=sum(judged))
        for source, judged in accepted.items()
    ]
