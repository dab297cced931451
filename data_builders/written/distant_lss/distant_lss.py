"""``distant_lss``: LSS examples from rule-changed sentences and from WiCE's token labels.

Not from a paper. Sentences are changed by rules similar to FactCC (Kryściński et al. 2020), so the
changed words are known, with the source passage as reference; WiCE (Kamoi et al. 2023) has human
token labels. 2308.12157, A.5, trains on FactCC's generated data instead.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar

from tqdm import tqdm

from components.sentences import split_sentences
from components.words import align, join_words, split_words
from data_builders.builder import Builder, Made, Step, Work
from data_builders.dataset import read_card
from data_builders.splits import SPLITS, by_split, split_at, tied_groups
from data_builders.written.distant_lss.transform import RULES, Pieces, Pool, Setting, entities
from records import BadInput, LssExample, group_of, iter_rows, read_records, sha256_text

# Maximum sentences and names in the pool, per split (and preposition).
POOL = 5000


@dataclass
class DistantLss(Builder):
    """Distant LSS examples: rule-changed sentences of passages, and WiCE's token labels.

    Args:
        passages: files of passage or document records, or of rows with ``text``; rows with the
            same ``title``, ``topic`` or ``id`` are in one split.
        wice: WiCE's files of non-supported tokens.
        rules: changes to make; see ``data_builders/written/distant_lss/transform.py``.
        per_passage: maximum claims per passage, by different rules if possible.
        claim_words: minimum and maximum words of a sentence.
        reference_words: minimum and maximum words of a passage.
        near: probability of replacing a name by one of the same passage, if any.
        shares: ratio of train, dev and test references.
    """

    passages: list[str] = field(default_factory=list)
    wice: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=lambda: list(RULES))
    per_passage: int = 4
    claim_words: tuple[int, int] = (6, 50)
    reference_words: tuple[int, int] = (20, 500)
    near: float = 0.5
    shares: tuple[int, int, int] = (8, 1, 1)

    reads = ("passages", "wice")
    least: ClassVar = {"per_passage": 1, "claim_words": 1, "reference_words": 1, "shares": 1}
    probabilities = ("near",)

    def faults(self) -> Iterable[str]:
        if not self.passages and not self.wice:
            yield "passages, wice: expected at least one file"
        unknown = [rule for rule in self.rules if rule not in RULES]
        if unknown or not self.rules:
            yield f"rules: expected some of {', '.join(RULES)}, got {unknown or 'none'}"
        for name in ("claim_words", "reference_words"):
            least, most = getattr(self, name)
            if least > most:
                yield f"{name}: expected [minimum, maximum], got [{least}, {most}]"

    def files(self) -> dict[str, dict[str, str]]:
        return {"lss": by_split("lss")}

    def plan(self) -> list[Step]:
        steps = [Step("passages", path, self.limit, "rows") for path in self.passages]
        return steps + [Step("WiCE's token labels", path, None, "rows") for path in self.wice]

    def make(self, work: Work) -> Made:
        pools = self._pools()
        wice = {split: [] for split in SPLITS}
        examples = [
            (f"wice-{Path(path).stem}-{number}", example)
            for path in self.wice
            for number, example in enumerate(read_records(path, LssExample))
        ]
        tied = tied_groups([example for _, example in examples], self.shares)
        for name, example in examples:
            group = tied[group_of(example)]
            wice[self._split(group)].append(_row(name, example, "wice", group, ""))
        seen: set[str] = set()  # over all splits: two titles may have the same text
        files = {
            path: self._rows(split, pools[split], wice[split], seen, work.dropped)
            for split, path in by_split("lss").items()
        }
        return Made(files, read_card("distant_lss"))

    def _split(self, group: str) -> str:
        number = int(sha256_text(f"{self.seed}:split:{group}")[:15], 16)
        return split_at(number % sum(self.shares), self.shares)

    def _read(self, label: str) -> Iterator[tuple[str, str, str]]:
        for path in self.passages:
            desc = f"{label} {Path(path).name}"
            rows = tqdm(iter_rows(path), desc=desc, unit="row", disable=None)
            for number, row in islice(rows, self.limit):
                text = row.get("text")
                if not isinstance(text, str) or not text.strip():
                    raise BadInput([f"{path}:{number}: text: field required"])
                title = str(row.get("title") or row.get("topic") or "")
                yield title or str(row.get("id") or text), title, " ".join(text.split())

    def _sentences(self, text: str) -> list[str]:
        least, most = self.claim_words
        return [
            sentence
            for sentence in split_sentences(text)
            if least <= len(sentence.split()) <= most
            and sentence[0].isupper()
            and sentence.endswith(".")
        ]

    def _pools(self) -> dict[str, Pool]:
        pools = {split: Pool() for split in SPLITS}
        rng = random.Random(f"{self.seed}:pool")
        seen: Counter[tuple[str, str]] = Counter()
        for group, _, text in self._read("names of"):
            split = self._split(group)
            offers = [("", sentence, pools[split].sentences) for sentence in self._sentences(text)]
            for kind, names in entities(text).items():
                kept_names = pools[split].entities.setdefault(kind, [])
                offers += [(kind, name, kept_names) for name in names]
            for kind, item, kept in offers:
                seen[split, kind] += 1
                if len(kept) < POOL:
                    kept.append(item)
                elif (index := rng.randrange(seen[split, kind])) < POOL:
                    kept[index] = item
        return pools

    def _rows(
        self, split: str, pool: Pool, wice: Sequence[dict], seen: set[str], dropped: Counter[str]
    ) -> Iterator[dict]:
        yield from wice
        least, most = self.reference_words
        for group, title, text in self._read(split):
            if self._split(group) != split:
                continue
            digest = sha256_text(text)[:16]
            if digest in seen:
                dropped["duplicate passage"] += 1
            elif not least <= len(text.split()) <= most:
                dropped["passage of too few or too many words"] += 1
            else:
                seen.add(digest)
                setting = Setting(text, entities(text), pool, self.near)
                yield from self._claims(digest, group, title, setting, dropped)

    def _claims(
        self, digest: str, group: str, title: str, setting: Setting, dropped: Counter[str]
    ) -> Iterator[dict]:
        rng = random.Random(f"{self.seed}:{digest}")
        sentences = self._sentences(setting.reference)
        if not sentences:
            dropped["passage without a fitting sentence"] += 1
        rng.shuffle(sentences)
        unused = rng.sample(self.rules, len(self.rules))
        for number, sentence in enumerate(sentences[: self.per_passage]):
            unused = unused or rng.sample(self.rules, len(self.rules))
            applied = next(
                ((r, p) for r in unused if (p := RULES[r](sentence, setting, rng)) is not None),
                None,
            )
            if applied is None:
                dropped["sentence to which no rule applies"] += 1
                continue
            rule, pieces = applied
            unused.remove(rule)
            example = example_of(pieces, setting.reference)
            if example is None:
                dropped["claim with an ambiguous LSS"] += 1
            else:
                yield _row(f"{digest}-{number}", example, f"distant/{rule}", group, title)


def example_of(pieces: Pieces, reference: str) -> LssExample | None:
    """Build the record of a claim in pieces.

    Returns:
        ``None`` if neither its whitespace tokens nor the LSS text determine which words are
        supported, e.g. if a removed word is next to an equal kept word.
    """
    claim = "".join(text for text, _ in pieces)
    spans, start = [], 0
    for text, kept in pieces:
        spans.append((start, start + len(text), kept))
        start += len(text)
    words = split_words(claim)
    keep = [all(k for s, e, k in spans if w.start < e and s < w.end) for w in words]
    lss = join_words(claim, words, keep)
    tokens: list[bool] | None = []
    start = 0
    for token in claim.split():
        start = claim.index(token, start)
        end = start + len(token)
        states = {k for w, k in zip(words, keep, strict=True) if start <= w.start and w.end <= end}
        start = end
        if len(states) != 1:
            tokens = None
            break
        tokens.append(states.pop())
    if tokens is None and align(lss, words) != keep:
        return None
    return LssExample(reference=reference, claim=claim, annotations=[{"lss": lss}], keep=tokens)


def _row(name: str, example: LssExample, source: str, group: str, title: str) -> dict:
    return {
        "id": name,
        "reference": example.reference,
        "claim": example.claim,
        "annotations": [{"lss": annotation.lss} for annotation in example.annotations],
        # A few of WiCE's tokens contain a space; for them only the LSS text is used.
        "keep": example.keep if len(example.keep or ()) == len(example.claim.split()) else None,
        "source": source,
        "group": group,
        "title": title,
    }
