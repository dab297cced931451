"""Readers of documents, one per project."""

from collections.abc import Callable, Mapping

from records.evidence import evidence_of
from records.formats import ambigbio
from records.formats.aggrefact import aggrefact
from records.formats.attribution_bench import attribution_bench
from records.formats.averitec import averitec
from records.formats.climate_fever import climate_fever
from records.formats.columns import FileReading, TrackedRow
from records.formats.expertqa import expertqa
from records.formats.factcheck_bench import factcheck_bench
from records.formats.factreasoner import factreasoner
from records.formats.factscore import factscore, factscore_predictions
from records.formats.faithbench import faithbench
from records.formats.halogen import halogen
from records.formats.nli import inference
from records.formats.qags import qags
from records.formats.rag import rag
from records.formats.ragtruth import ragtruth
from records.formats.row_fields import plain_text
from records.formats.safe import safe
from records.formats.veriscore import veriscore
from records.formats.wice import claim_and_evidence

Reader = Callable[[dict, int], dict | list[dict] | None]

# Project to reader; the first reader that recognises a row reads it.
READERS: dict[str, Reader] = {
    "factscore": factscore,
    "factreasoner": factreasoner,
    "safe": safe,
    "veriscore": veriscore,
    "factscore_predictions": factscore_predictions,
    "ambigbio": ambigbio.read_judged_text,
    "alce": ambigbio.read_generation,
    "alce_scores": ambigbio.read_cited_text,
    "halogen": halogen,
    "climate_fever": climate_fever,
    "averitec": averitec,
    "aggrefact": aggrefact,
    "attribution_bench": attribution_bench,
    "claim_and_evidence": claim_and_evidence,
    "inference": inference,
    "factcheck_bench": factcheck_bench,
    "ragtruth": ragtruth,
    "faithbench": faithbench,
    "qags": qags,
    "expertqa": expertqa,
    "rag": rag,
    "texts": plain_text,
}


def to_documents(
    row: dict,
    number: int,
    reading: FileReading | None = None,
    readers: Mapping[str, Reader] = READERS,
) -> list[dict]:
    """Convert a row of any project into documents; rows of ours are unchanged.

    Evidence that the format does not define, and that can only be evidence by its column's name,
    becomes passages.
    """
    name, used, documents = _read(row, number, readers)
    if documents is None:
        raise ValueError(
            f"text: field required (or output, response); the row has {', '.join(row)}; name its "
            "fields with --fields '{text: NAME, topic: NAME}'"
        )
    listed = documents if isinstance(documents, list) else [documents]
    if not any("passages" in document for document in listed):
        tracked = TrackedRow({c: value for c, value in row.items() if c not in used}, used)
        passages = evidence_of(tracked)
        if passages is not None:
            listed = [document | {"passages": passages} for document in listed]
    return listed if reading is None else reading.note(name, row, used, listed)


def _read(
    row: dict, number: int, readers: Mapping[str, Reader]
) -> tuple[str, set[str], dict | list[dict] | None]:
    if readers is READERS and "id" in row and "topic" in row and "text" in row:
        return "ours", set(), row
    tracked = TrackedRow(row)
    for name, reader in readers.items():
        tracked.used.clear()
        documents = reader(tracked, number)
        if documents is not None:
            return name, tracked.used, documents
    return "", set(), None
