"""``wafer``: WAFER's citations to cleaned pairs of a claim and the page that it cites.

WAFER (Petroni et al. 2022, "Improving Wikipedia verifiability with AI") lists Wikipedia sentences
with the web page that each cites. 2308.12157, section 4, draws the pairs that people then annotate
from it. That paper's own filters are not published as code: those here are named options whose
defaults fit the published pairs (references of 50 to 100 words, claims of 9 to 75).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from data_builders.dataset import Card, write_dataset
from data_builders.plan import Step
from data_builders.published.wafer.citations import (
    citation_rows,
    english_share,
    has_markup,
    is_error_page,
    is_fragment,
    read_citation,
)
from data_builders.published.wafer.store import Store, number_of
from data_builders.splits import SPLITS
from records import UserError


class Wafer:
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

    Raises:
        UserError: no file, or a range that is empty.
    """

    def __init__(
        self,
        output: Path,
        train: list[str] = [],  # noqa: B006 (never changed; a command line shows it)
        dev: list[str] = [],  # noqa: B006
        test: list[str] = [],  # noqa: B006
        unsplit: list[str] = [],  # noqa: B006
        passages: list[str] = [],  # noqa: B006
        claim_words: tuple[int, int] = (9, 75),
        reference_words: tuple[int, int] = (50, 100),
        long_reference: Literal["drop", "cut"] = "drop",
        markup: bool = True,
        fragments: bool = True,
        several_citations: bool = True,
        error_pages: bool = True,
        english: float = 0.05,
        near_duplicate: float = 0.8,
        sample: int | None = None,
        shares: tuple[int, int, int] = (8, 1, 1),
        limit: int | None = None,
        seed: int = 0,
    ):
        if not (train or dev or test or unsplit):
            raise UserError("train, dev, test, unsplit: no file; give WAFER's files in one of them")
        for name, (least, most) in (
            ("claim_words", claim_words),
            ("reference_words", reference_words),
        ):
            if not 1 <= least <= most:
                raise UserError(f"{name}: [{least}, {most}] is no range; give least and most words")
        if near_duplicate <= 0 or (sample is not None and sample < 1) or min(shares) < 1:
            raise UserError("near_duplicate: above 0; sample and shares: at least 1 each")
        self.output = Path(output)
        # Test first: a page that test or dev has is then known when train is read.
        self.files = {"test": test, "dev": dev, "train": train, "unsplit": unsplit}
        self.passages = passages
        self.claim_words, self.reference_words = tuple(claim_words), tuple(reference_words)
        self.long_reference = long_reference
        self.markup, self.fragments = markup, fragments
        self.several_citations, self.error_pages = several_citations, error_pages
        self.english, self.near_duplicate = english, near_duplicate
        self.sample, self.shares = sample, tuple(shares)
        self.limit, self.seed = limit, seed

    def plan(self) -> list[Step]:
        """The files that are read."""
        named = [
            (f"citations of {split}", path) for split, own in self.files.items() for path in own
        ]
        named += [("text of pages", path) for path in self.passages]
        return [Step(what, str(path), self.limit, "rows") for what, path in named]

    def writes(self) -> list[str]:
        """Names of the files of records that a build writes; those without a row may be missing."""
        return [*(f"{split}.jsonl" for split in SPLITS), "failed.jsonl"]

    def build(self) -> Path:
        """Filter, write the folder; returns the manifest's path."""
        inputs = [path for own in self.files.values() for path in own] + list(self.passages)
        for path in inputs:
            if not Path(path).is_file():
                raise UserError(f"{path}: no such file; give WAFER's files as they were published")
        self.output.mkdir(parents=True, exist_ok=True)
        scratch = self.output / ".wafer.partial.sqlite"
        scratch.unlink(missing_ok=True)
        dropped: Counter[str] = Counter()
        store = Store(scratch)
        try:
            for path in self.passages:
                store.add_passages(path)
            for split, own in self.files.items():
                for path in own:
                    self._read(path, split, store, dropped)
            files = self._files(store, dropped)
            return write_dataset(
                self.output,
                files,
                declared=self.writes(),
                card=_card([name.removesuffix(".jsonl") for name in files]),
                clients=[],
                dropped=dropped,
                config=self._config(),
                seed=self.seed,
                inputs=inputs,
            )
        finally:
            store.close()
            scratch.unlink(missing_ok=True)

    def _config(self) -> dict:
        skipped = ("output", "files", "passages", "seed")
        own = {name: value for name, value in vars(self).items() if name not in skipped}
        files = {split: [Path(p).name for p in paths] for split, paths in self.files.items()}
        return {**files, "passages": [Path(p).name for p in self.passages], **own}

    def _files(self, store: Store, dropped: Counter[str]) -> dict[str, Iterable[dict]]:
        counts = store.counts()
        kept = [split for split in SPLITS if counts.get(split)]
        if not kept:
            why = "; ".join(f"{n} x {reason}" for reason, n in dropped.most_common(3))
            raise UserError(f"no pair is left ({why or 'empty files'}); loosen a filter")
        if self.sample is not None:
            dropped["not drawn into the sample"] += sum(
                max(0, counts[split] - self.sample) for split in kept
            )
        files = {f"{split}.jsonl": store.rows(split, self.sample) for split in kept}
        if counts.get("failed"):
            files["failed.jsonl"] = store.rows("failed", None)
        return files

    def _read(self, path: str, split: str, store: Store, dropped: Counter[str]) -> None:
        """Put the pairs of one file into the store; count what is left out."""
        rows = tqdm(
            citation_rows(path), desc=f"{split} {Path(path).name}", unit="row", disable=None
        )
        for where, row in islice(rows, self.limit):
            citation = read_citation(row, where)
            reason = self._fault_of_claim(citation)
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
        """Store a pair in the split of its page, or say why not."""
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
        """Split of a page, by a hash: the same whatever else the files hold."""
        place = number_of(f"{self.seed}:split:{url}") % sum(self.shares)
        return SPLITS[sum(place >= sum(self.shares[:end]) for end in (1, 2))]


def _columns(citation: dict) -> dict:
    names = ("id", "claim", "reference", "title", "section", "url", "reference_title", "featured")
    return {**{n: citation[n] for n in names}, "group": citation["url"], "source": "wafer"}


def _card(splits: list[str]) -> Card:
    configs = {"pairs": {split: f"{split}.jsonl" for split in splits if split != "failed"}}
    if "failed" in splits:
        configs["failed"] = {"test": "failed.jsonl"}
    return Card(
        pretty_name="Claims of Wikipedia and the pages that they cite, from WAFER",
        configs=configs,
        license="other",
        tags=("factuality", "wikipedia", "citations"),
        text=TEXT,
    )


TEXT = """\
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
"""
