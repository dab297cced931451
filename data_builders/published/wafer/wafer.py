"""``wafer``: cleaned pairs of a claim and the page that it cites, from WAFER.

WAFER (Petroni et al. 2022, "Improving Wikipedia verifiability with AI") contains Wikipedia
sentences with their cited web pages. 2308.12157, section 4, samples its pairs for annotation from
it. The filters of that paper are not published; here they are options whose defaults fit the
published pairs (references of 50 to 100 words, claims of 9 to 75).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

from tqdm import tqdm

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from data_builders.published.wafer.wafer_rows import (
    citation_rows,
    english_share,
    has_markup,
    is_error_page,
    is_fragment,
    read_citation,
)
from data_builders.published.wafer.wafer_store import Store, number_of
from data_builders.splits import SPLITS
from records import UserError
from records.reading import json_fault


@dataclass
class Wafer(Builder):
    """Claims of Wikipedia and the text of their cited pages, from WAFER's files.

    Skipped are claims with several citations, with markup or a URL, or that are not complete
    sentences (lower-case or list mark at the beginning, comma or colon at the end, or a title), and
    references that look like an error or a blocked page.

    Files are ``.jsonl``, ``.jsonl.gz`` or the published ``.tar.gz``. Published files have no page
    text: use files whose ``provenance`` WAFER's script has filled in, or set ``passages``.

    Args:
        train: WAFER files of train; claims whose page is in dev or test are skipped.
        dev: WAFER files of dev, including those of failed verification.
        test: WAFER files of test.
        passages: files of passages with ``url`` and ``text`` (and ``title``, ``chunk_id``), for
            provenance without text.
        claim_words: minimum and maximum words of a claim.
        reference_words: minimum and maximum words of a reference.
        long_reference: ``drop`` skips longer references, ``cut`` truncates them.
        english: minimum share of the reference's words that are common English function words.
        near_duplicate: skip claims whose word bigrams have at least this Jaccard similarity to
            those of an earlier claim; above 1 keeps all.
        sample: maximum pairs per split, sampled with the seed; null keeps all.
    """

    train: list[str] = field(default_factory=list)
    dev: list[str] = field(default_factory=list)
    test: list[str] = field(default_factory=list)
    passages: list[str] = field(default_factory=list)
    claim_words: tuple[int, int] = (9, 75)
    reference_words: tuple[int, int] = (50, 100)
    long_reference: Literal["drop", "cut"] = "drop"
    english: float = 0.05
    near_duplicate: float = 0.8
    sample: int | None = None

    # Test first: pages of test and dev must be indexed before train is read.
    citations = ("test", "dev", "train")
    reads = (*citations, "passages")
    least: ClassVar = {"claim_words": 1, "reference_words": 1, "sample": 1}

    def faults(self) -> Iterable[str]:
        if not any(getattr(self, split) for split in self.citations):
            yield "train, dev, test: expected WAFER files in at least one"
        for name in ("claim_words", "reference_words"):
            least, most = getattr(self, name)
            if least > most:
                yield f"{name}: expected [minimum, maximum], got [{least}, {most}]"
        if self.near_duplicate <= 0:
            yield f"near_duplicate: expected more than 0, got {self.near_duplicate}"

    def files(self) -> dict[str, dict[str, str]]:
        pairs = {split: f"{split}.jsonl" for split in SPLITS}
        return {"pairs": pairs, "failed": {"test": "failed.jsonl"}}

    def make(self, work: Work) -> Made:
        store = Store(work.table("wafer"))
        for path in self.passages:
            store.add_passages(path)
        for split in self.citations:
            for path in getattr(self, split):
                self._read(path, split, store, work.dropped)
        return Made(self._files(store, work), read_card("wafer"))

    def _files(self, store: Store, work: Work) -> dict[str, Iterable[dict]]:
        counts = store.counts()
        kept = [split for split in SPLITS if counts.get(split)]
        if not kept:
            raise UserError(f"no pair left ({work.dropped_summary()}); loosen a filter")
        if self.sample is not None:
            work.dropped["not drawn into the sample"] += sum(
                max(0, counts[split] - self.sample) for split in kept
            )
        files = {f"{split}.jsonl": store.rows(split, self.sample) for split in kept}
        if counts.get("failed"):
            files["failed.jsonl"] = store.rows("failed", None)
        return files

    def _read(self, path: str, split: str, store: Store, dropped: Counter[str]) -> None:
        rows = tqdm(
            citation_rows(path), desc=f"{split} {Path(path).name}", unit="row", disable=None
        )
        for where, row in islice(rows, self.limit):
            citation = read_citation(row, where)
            # Web pages contain unpaired surrogates.
            reason = "text that is not valid Unicode" if json_fault(citation) else None
            reason = reason or self._claim_fault(citation)
            if reason is None and citation["failed"]:
                citation["reference"] = citation["reference"] or ""
                store.add("failed", 0, {**_columns(citation), "split": split})
                continue
            reason = reason or self._reference_fault(citation, store)
            reason = reason or self._add(citation, split, store)
            if reason is not None:
                dropped[reason] += 1

    def _claim_fault(self, citation: dict) -> str | None:
        claim = citation["claim"]
        if claim is None:
            return "no sentence with the citation's mark"
        if citation["marks"] > 1:
            return "several citations in the sentence"
        least, most = self.claim_words
        words = len(claim.split())
        if words < least:
            return "claim of too few words"
        if words > most:
            return "claim of too many words"
        if has_markup(claim):
            return "claim with markup or an address"
        if is_fragment(claim, citation["title"]):
            return "claim that is not a complete sentence"
        return None

    def _reference_fault(self, citation: dict, store: Store) -> str | None:
        citation["reference"] = citation["reference"] or store.text(citation)
        if not citation["reference"]:
            return "reference without text"
        words = citation["reference"].split()
        least, most = self.reference_words
        if len(words) < least:
            return "reference of too few words"
        if len(words) > most and self.long_reference == "drop":
            return "reference of too many words"
        citation["reference"] = " ".join(words[:most])
        if is_error_page(citation["reference"]):
            return "reference that is an error page"
        if english_share(citation["reference"]) < self.english:
            return "reference that is not English"
        return None

    def _add(self, citation: dict, split: str, store: Store) -> str | None:
        if store.splits_of(citation) - {split}:
            return "reference of another split"
        if store.near_duplicate(citation["claim"], self.near_duplicate):
            return "near-duplicate of an earlier claim"
        rank = number_of(f"{self.seed}:sample:{citation['id']}:{citation['claim']}")
        store.add(split, rank, {**_columns(citation), "split": split})
        store.index(citation, split)
        return None


def _columns(citation: dict) -> dict:
    names = ("id", "claim", "reference", "title", "section", "url", "reference_title", "featured")
    return {**{n: citation[n] for n in names}, "group": citation["url"], "source": "wafer"}
