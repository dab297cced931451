"""``summaries``: XSum with human hallucination spans, and CNN/DailyMail, for the LSS experiments.

In Maynez et al. (2005.00661) three raters marked the spans of XSum summaries that the article does
not support. The words that a majority did not mark are a longest supported subsequence
(2308.12157, section 3) of the summary, with the article as reference.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from tqdm import tqdm

from components.checkpoint import LSS_TEMPLATE
from components.encoding import fill_prompt
from components.words import join_words, split_words
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from data_builders.rows import files_of
from data_builders.splits import SPLITS, by_split, split_at
from records import Annotation, BadInput, Claim, Document, LssExample, Passage, iter_rows

if TYPE_CHECKING:  # imports PyTorch
    from transformers import PreTrainedTokenizerBase

NO_ARTICLE = "summary whose article is not in xsum_articles"
Span = tuple[int, int]
Key = tuple[str, str]  # bbcid and system


class SummaryRow(NamedTuple):
    where: str
    fields: dict

    def get(self, name: str) -> str:
        value = self.fields.get(name)
        if value is None:
            raise BadInput([f"{self.where}: {name}: field required"])
        return str(value).strip()


@dataclass
class Rated:
    """A summary and its ratings; ``spans`` maps raters to unsupported spans (in characters)."""

    text: str
    spans: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    marked: set[str] = field(default_factory=set)  # raters who marked any span
    unplaced: str | None = None  # why a span cannot be located
    factual: list[bool] = field(default_factory=list)  # independent of the article


@dataclass
class Summaries(Builder):
    """LSS examples and documents from rated XSum summaries and from CNN/DailyMail.

    Args:
        hallucinations: Maynez et al.'s ``hallucination_annotations_xsum_summaries.csv``.
        factuality: their ``factuality_annotations_xsum_summaries.csv``.
        xsum_articles: files or folders with XSum's ``id`` and ``document``.
        cnndm: files or folders with CNN/DailyMail's ``id``, ``article`` and ``highlights``.
        tokenizer: model whose tokens ``max_tokens`` counts, e.g. of the LSS checkpoint.
        max_tokens: skip pairs of ``xsum/claims`` whose prompt for an LSS model is longer.
        shares: ratio of train, dev and test articles.
        limit: use only the first N rows of the ratings and of CNN/DailyMail, for a trial run.
    """

    hallucinations: str | None = None
    factuality: str | None = None
    xsum_articles: list[str] | None = None
    cnndm: list[str] | None = None
    tokenizer: str | None = None
    max_tokens: int = 512
    shares: tuple[int, int, int] = (8, 1, 1)

    reads = ("hallucinations", "factuality", "xsum_articles", "cnndm")
    least: ClassVar = {"shares": 0, "max_tokens": 1}

    def faults(self) -> Iterable[str]:
        if not self.hallucinations and not self.cnndm:
            yield "set hallucinations and xsum_articles, or cnndm, or all"
        if bool(self.hallucinations) != bool(self.xsum_articles):
            yield "hallucinations, xsum_articles: set both"
        if self.factuality and not self.hallucinations:
            yield "factuality: also needs hallucinations and xsum_articles"

    def files(self) -> dict[str, dict[str, str]]:
        kinds = ["xsum/lss", "xsum/documents"] if self.hallucinations else []
        kinds += ["xsum/claims"] if self.factuality else []
        kinds += ["cnndm/documents", "cnndm/claims"] if self.cnndm else []
        return {kind.replace("/", "_"): by_split(kind) for kind in kinds}

    def make(self, work: Work) -> Made:
        files: dict[str, Iterator] = {}
        if self.hallucinations:
            rated = self._rated(work.dropped)
            articles = self._articles({bbcid for bbcid, _ in rated})
            work.dropped[NO_ARTICLE] += sum(bbcid not in articles for bbcid, _ in rated)
            for split in SPLITS:
                split_rated = {
                    key: rating
                    for key, rating in rated.items()
                    if key[0] in articles and self._split(key[0]) == split
                }
                files[f"xsum/lss_{split}.jsonl"] = _lss(split_rated, articles, work.dropped)
                files[f"xsum/documents_{split}.jsonl"] = _documents(split_rated, articles)
                if self.factuality:
                    pairs = self._judged(split_rated, articles, work.dropped)
                    files[f"xsum/claims_{split}.jsonl"] = pairs
        if self.cnndm:
            for split in SPLITS:
                files[f"cnndm/documents_{split}.jsonl"] = self._cnndm(split, work.dropped)
                files[f"cnndm/claims_{split}.jsonl"] = self._claims(split)
        return Made(files, read_card("summaries"))

    def _split(self, article: str) -> str:
        digest = hashlib.sha256(f"{self.seed}:split:{article}".encode()).digest()
        position = int.from_bytes(digest[:8]) / 2**64 * sum(self.shares)
        return split_at(position, self.shares)

    def _rows(self, path: str | Path, limit: int | None = None) -> Iterator[SummaryRow]:
        rows = tqdm(islice(iter_rows(path), limit), desc=Path(path).name, disable=None)
        return (SummaryRow(f"{path}:{number}", fields) for number, fields in rows)

    def _rated(self, dropped: Counter[str]) -> dict[Key, Rated]:
        summaries: dict[Key, Rated] = {}
        for row in self._rows(self.hallucinations, self.limit):
            text = unescape(row.get("summary"))
            rated = summaries.setdefault((row.get("bbcid"), row.get("system")), Rated(text))
            spans = rated.spans[row.get("worker_id")]
            if text != rated.text:
                raise BadInput([f"{row.where}: summary: differs from earlier rows of its bbcid"])
            span = _span(row, text)
            if span is None:
                continue
            rated.marked.add(row.get("worker_id"))
            if isinstance(span, str):
                rated.unplaced = span
            else:
                spans.append(span)
        for row in self._rows(self.factuality) if self.factuality else ():
            rated = summaries.get((row.get("bbcid"), row.get("system")))
            if rated is None:
                dropped["factuality judgement of a summary that is not rated"] += 1
            else:
                rated.factual.append(_is_factual(row))
        return summaries

    def _articles(self, ids: set[str]) -> dict[str, str]:
        articles: dict[str, str] = {}
        for path in files_of(self.xsum_articles):
            for row in self._rows(path):
                if row.get("id") in ids and row.get("document"):
                    articles.setdefault(row.get("id"), row.get("document"))
        return articles

    def _judged(
        self, rated: Mapping[Key, Rated], articles: Mapping[str, str], dropped: Counter[str]
    ) -> Iterator[dict]:
        """Yield the pairs of 2308.12157, Figure 3: summaries of systems that were judged."""
        systems = {system for (_, system), summary in rated.items() if summary.factual}
        for (bbcid, system), summary in rated.items():
            reference, claim = articles[bbcid], summary.text
            if not claim or system not in systems:
                continue
            if self._is_too_long(reference, claim):
                dropped[f"XSum pair of more than {self.max_tokens} tokens"] += 1
                continue
            # Only summaries with a marked span were judged; the others are faithful, so factual.
            unjudged = None if summary.marked else 1.0
            yield {
                "id": f"xsum-{bbcid}-{system}",
                "reference": reference,
                "claim": claim,
                "factual": fmean(summary.factual) if summary.factual else unjudged,
                "system": system,
                "group": bbcid,
            }

    def _is_too_long(self, reference: str, claim: str) -> bool:
        if not self.tokenizer:
            return False
        prompt = fill_prompt(LSS_TEMPLATE, reference=reference, claim=claim)
        return len(self._tokenizer(prompt, verbose=False).input_ids) > self.max_tokens

    @cached_property
    def _tokenizer(self) -> "PreTrainedTokenizerBase":
        from components.base import load_tokenizer  # takes seconds to import

        return load_tokenizer(self.tokenizer)

    def _news(self, split: str) -> Iterator[tuple[str, str, list[str]]]:
        rows = (row for path in files_of(self.cnndm) for row in self._rows(path))
        for row in islice(rows, self.limit):
            if not row.get("id"):
                raise BadInput([f"{row.where}: id: field required"])
            if self._split(row.get("id")) == split:
                lines = row.get("highlights").splitlines()
                yield row.get("id"), row.get("article"), [s.strip() for s in lines if s.strip()]

    def _cnndm(self, split: str, dropped: Counter[str]) -> Iterator[Document]:
        for name, article, highlights in self._news(split):
            if not article or not highlights:
                dropped["CNN/DailyMail row without an article or highlights"] += 1
                continue
            claims = [
                Claim(id=f"c{i}", text=t, sentence=i, source=t, contexts=["article"])
                for i, t in enumerate(highlights)
            ]
            yield Document(
                id=f"cnndm-{name}",
                topic=name,
                text=" ".join(highlights),
                claims=claims,
                passages=[Passage(id="article", text=article, source="cnndm")],
                kind="reference",
            )

    def _claims(self, split: str) -> Iterator[dict]:
        for name, article, highlights in self._news(split):
            for index, text in enumerate(highlights if article else ()):
                yield {
                    "id": f"cnndm-{name}-c{index}",
                    "reference": article,
                    "claim": text,
                    "group": name,
                }


def unescape(text: str) -> str:
    r"""Unescape ``\'`` and ``\"`` of the released table."""
    return text.replace("\\'", "'").replace('\\"', '"')


def _span(row: SummaryRow, text: str) -> Span | str | None:
    marked = unescape(row.get("hallucinated_span"))
    if marked in {"", "NULL"}:
        return None
    starts = [i for i in range(len(text)) if text.startswith(marked, i)]
    on_words = [i for i in starts if _is_whole_words(text, i, i + len(marked))]
    if not starts:
        return "span that is not in its summary"
    if len(on_words or starts) > 1:
        return "span that occurs several times in its summary"
    start = (on_words or starts)[0]
    return start, start + len(marked)


def _is_whole_words(text: str, start: int, end: int) -> bool:
    before = start == 0 or not (text[start - 1].isalnum() and text[start].isalnum())
    return before and (end == len(text) or not (text[end - 1].isalnum() and text[end].isalnum()))


def _is_factual(row: SummaryRow) -> bool:
    value = row.get("is_factual").lower()
    if value not in {"yes", "no", "1", "0"}:
        raise BadInput([f"{row.where}: is_factual: expected yes or no, got {value!r}"])
    return value in {"yes", "1"}


def majority_keep(text: str, spans: Sequence[Sequence[Span]]) -> list[bool]:
    """Return for each word of a summary whether at most half of the raters marked any of it."""
    marked = [
        sum(any(s < word.end and word.start < e for s, e in rater_spans) for rater_spans in spans)
        for word in split_words(text)
    ]
    return [2 * count <= len(spans) for count in marked]


def _lss(
    rated: Mapping[Key, Rated], articles: Mapping[str, str], dropped: Counter[str]
) -> Iterator[LssExample]:
    for (bbcid, system), summary in rated.items():
        if summary.unplaced:
            dropped[f"LSS: {summary.unplaced}"] += 1
            continue
        keep = majority_keep(summary.text, list(summary.spans.values()))
        if not keep:
            dropped["LSS: summary without words"] += 1
            continue
        yield LssExample(
            id=f"xsum-{bbcid}-{system}",
            reference=articles[bbcid],
            claim=summary.text,
            annotations=[Annotation(lss=join_words(summary.text, split_words(summary.text), keep))],
            keep=keep,
            source="xsum_maynez",
            group=bbcid,
            system=system,
            raters=len(summary.spans),
            factual=fmean(summary.factual) if summary.factual else None,
        )


def _documents(rated: Mapping[Key, Rated], articles: Mapping[str, str]) -> Iterator[Document]:
    for (bbcid, system), summary in rated.items():
        label = "S" if 2 * len(summary.marked) <= len(summary.spans) else "NS"
        votes = Counter(summary.factual)
        claim = {"id": "c0", "text": summary.text, "source": summary.text, "label": label}
        yield Document(
            id=f"xsum-{bbcid}-{system}",
            topic=bbcid,
            text=summary.text,
            claims=[Claim(**claim, contexts=["article"])] if summary.text else [],
            passages=[Passage(id="article", text=articles[bbcid], source="xsum")],
            kind="summary",
            generator=system,
            factual=None if votes[True] == votes[False] else votes[True] > votes[False],
            label_source="majority of raters",
        )
