"""``wafer``: WAFER's citations to cleaned pairs of a claim and the page that it cites.

WAFER (Petroni et al. 2022, "Improving Wikipedia verifiability with AI") lists Wikipedia sentences
with the web page that each cites. 2308.12157, section 4, draws the pairs that people then annotate
from it. That paper's own filters are not published as code: those here are named options whose
defaults fit the published pairs (references of 50 to 100 words, claims of 9 to 75).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

from tqdm import tqdm

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card
from data_builders.published.wafer.citations import (
    citation_rows,
    english_share,
    has_markup,
    is_error_page,
    is_fragment,
    read_citation,
)
from data_builders.published.wafer.store import Store, number_of
from data_builders.splits import SPLITS, split_at
from records import UserError
from records.reading import json_fault


@dataclass
class Wafer(Builder):
    """Claims of Wikipedia and the text of the page that each cites, from WAFER's files.

    Files are ``.jsonl``, ``.jsonl.gz`` or the ``.tar.gz`` as published. Published files hold no
    page text; give files in which its script has filled in ``provenance``, or ``passages``.

    Args:
        output: folder of the dataset.
        train: WAFER files whose claims stay in train, less those whose page dev or test has.
        dev: files of dev; also the failed ones of dev.
        test: files of test.
        unsplit: files that are split here: all claims of a page go to one split.
        passages: files of passages with ``url`` and ``text`` (and ``title``, ``chunk_id``), for
            provenance without text.
        claim_words: least and most words of a claim.
        reference_words: least and most words of a reference.
        long_reference: what becomes of a longer one: left out, or cut after that many words.
        markup: leave out claims with wiki or HTML markup, an address or another citation's mark.
        fragments: leave out claims that are no whole sentence: lower-case or list mark at the
            beginning, comma or colon at the end, or a title (fewer than three lower-case words).
        several_citations: leave out sentences with more than one mark.
        error_pages: leave out references that read like an error or a blocked page.
        english: least share of the reference's words that are common English function words.
        near_duplicate: leave out a claim whose pairs of neighbouring words overlap (Jaccard) with
            those of an earlier one at least so far; above 1 keeps all.
        sample: at most this many pairs a split, drawn by the seed; null for all.
        shares: pages of train, dev and test among ``unsplit``.
        limit: only the first so many rows of each file, for a trial.
        seed: of the sample and the split.
    """

    train: list[str] = field(default_factory=list)
    dev: list[str] = field(default_factory=list)
    test: list[str] = field(default_factory=list)
    unsplit: list[str] = field(default_factory=list)
    passages: list[str] = field(default_factory=list)
    claim_words: tuple[int, int] = (9, 75)
    reference_words: tuple[int, int] = (50, 100)
    long_reference: Literal["drop", "cut"] = "drop"
    markup: bool = True
    fragments: bool = True
    several_citations: bool = True
    error_pages: bool = True
    english: float = 0.05
    near_duplicate: float = 0.8
    sample: int | None = None
    shares: tuple[int, int, int] = (8, 1, 1)

    # Test first: a page that test or dev has is then known when train is read.
    citations = ("test", "dev", "train", "unsplit")
    reads = (*citations, "passages")
    least: ClassVar = {"claim_words": 1, "reference_words": 1, "sample": 1, "shares": 1}

    def faults(self) -> Iterable[str]:
        if not any(getattr(self, split) for split in self.citations):
            yield "train, dev, test, unsplit: no file; give WAFER's files in one of them"
        for name in ("claim_words", "reference_words"):
            least, most = getattr(self, name)
            if least > most:
                yield f"{name}: [{least}, {most}] is no range; give least and most words"
        if self.near_duplicate <= 0:
            yield f"near_duplicate: {self.near_duplicate}; give more than 0"

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
        return Made(self._files(store, work), CARD)

    def _files(self, store: Store, work: Work) -> dict[str, Iterable[dict]]:
        counts = store.counts()
        kept = [split for split in SPLITS if counts.get(split)]
        if not kept:
            raise UserError(f"no pair is left ({work.dropped_summary()}); loosen a filter")
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
            # Web pages have halves of escaped pairs.
            reason = "text that is not valid Unicode" if json_fault(citation) else None
            reason = reason or self._fault_of_claim(citation)
            if reason is None and citation["failed"]:
                citation["reference"] = citation["reference"] or ""
                store.add("failed", 0, {**_columns(citation), "split": split})
                continue
            reason = reason or self._fault_of_reference(citation, store)
            reason = reason or self._place(citation, split, store)
            if reason is not None:
                dropped[reason] += 1

    def _fault_of_claim(self, citation: dict) -> str | None:
        claim = citation["claim"]
        if claim is None:
            return "no sentence with the citation's mark"
        if self.several_citations and citation["marks"] > 1:
            return "several citations in the sentence"
        least, most = self.claim_words
        words = len(claim.split())
        if words < least:
            return "claim of too few words"
        if words > most:
            return "claim of too many words"
        if self.markup and has_markup(claim):
            return "claim with markup or an address"
        if self.fragments and is_fragment(claim, citation["title"]):
            return "claim that is no whole sentence"
        return None

    def _fault_of_reference(self, citation: dict, store: Store) -> str | None:
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
        if self.error_pages and is_error_page(citation["reference"]):
            return "reference that is an error page"
        if english_share(citation["reference"]) < self.english:
            return "reference that is not English"
        return None

    def _place(self, citation: dict, split: str, store: Store) -> str | None:
        known = store.splits_of(citation)
        own = (
            split if split != "unsplit" else next(iter(sorted(known)), self._draw(citation["url"]))
        )
        if known - {own}:
            return "reference of another split"
        if store.near_duplicate(citation["claim"], self.near_duplicate):
            return "near-duplicate of an earlier claim"
        rank = number_of(f"{self.seed}:sample:{citation['id']}:{citation['claim']}")
        store.add(own, rank, {**_columns(citation), "split": own})
        store.index(citation, own)
        return None

    def _draw(self, url: str) -> str:
        return split_at(number_of(f"{self.seed}:split:{url}") % sum(self.shares), self.shares)


def _columns(citation: dict) -> dict:
    names = ("id", "claim", "reference", "title", "section", "url", "reference_title", "featured")
    return {**{n: citation[n] for n in names}, "group": citation["url"], "source": "wafer"}


CARD = Card(
    pretty_name="Claims of Wikipedia and the pages that they cite, from WAFER",
    license="other",
    tags=("factuality", "wikipedia", "citations"),
    text="""\
Sentences of Wikipedia (`claim`) with the text of the web page that each cites (`reference`),
cleaned from WAFER (Petroni et al. 2022) for the annotation of longest supported subsequences
(2308.12157, section 4). `title` and `section` are the article's; `url` and `reference_title` the
page's.

- `pairs`: **not labelled**. That a page is cited does not say that it supports the claim, nor which
  words of it; do not train on a citation as if it were an entailment.
- `failed`: rows that editors tagged as failed verification, not filtered by reference; some have
  none.

All claims of a page, and of pages with the same text, stay in one split; where WAFER's own splits
were given they are kept, and what train shares with dev or test is left out of train. The filters
and their counts are in `manifest.json`. Claims come from Wikipedia (CC BY-SA 4.0); references
belong to the pages' owners.
""",
)
