"""``distant_lss``: LSS examples that nobody annotated, from texts and from WiCE's token labels.

Ours: no paper's data and no paper's recipe. Two sources: sentences changed by rules in the manner
of FactCC (Kryściński et al. 2020), whose changed words are known, and WiCE (Kamoi et al. 2023),
whose tokens are labelled by people. The reference of a changed sentence is the passage that it came
from. 2308.12157, A.5, trains on FactCC's own generated data instead, which is not made here.
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
from data_builders.dataset import Card
from data_builders.splits import SPLITS, by_split, split_at, tied_groups
from data_builders.written.distant_lss.transform import RULES, Pieces, Pool, Setting, entities
from records import BadInput, LssExample, group_of, iter_rows, read_records, sha256_text

# How many sentences and names of other passages are kept at hand, a split (and preposition).
POOL = 5000


@dataclass
class DistantLss(Builder):
    """Distant LSS examples: rule-changed sentences of passages, and WiCE's token labels.

    Args:
        passages: files of passage or document records, or of any rows with ``text`` (and
            ``title``, ``topic`` or ``id``, whose rows stay in one split).
        wice: WiCE's files of non-supported tokens.
        rules: which changes to make; see ``data_builders/written/distant_lss/transform.py``.
        per_passage: at most this many claims of a passage, of different rules where possible.
        claim_words: least and most words of a sentence that is taken.
        reference_words: least and most words of a passage.
        near: how often a name is replaced by one of the same passage, where there is one.
        shares: references of train, dev and test.
        limit: only the first so many passages of each file, for a trial.
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
            yield "passages, wice: no file; give at least one of them"
        unknown = [rule for rule in self.rules if rule not in RULES]
        if unknown or not self.rules:
            yield f"rules: {unknown or 'none'}; known are {', '.join(RULES)}"
        for name in ("claim_words", "reference_words"):
            least, most = getattr(self, name)
            if least > most:
                yield f"{name}: [{least}, {most}] is no range; give least and most words"

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
        seen: set[str] = set()  # over all splits: two titles may have one text
        files = {
            path: self._rows(split, pools[split], wice[split], seen, work.dropped)
            for split, path in by_split("lss").items()
        }
        return Made(files, CARD)

    def _split(self, group: str) -> str:
        number = int(sha256_text(f"{self.seed}:split:{group}")[:15], 16)
        return split_at(number % sum(self.shares), self.shares)

    def _read(self, what: str) -> Iterator[tuple[str, str, str]]:
        for path in self.passages:
            rows = tqdm(iter_rows(path), desc=f"{what} {Path(path).name}", unit="row", disable=None)
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
                own = pools[split].entities.setdefault(kind, [])
                offers += [(kind, name, own) for name in names]
            for kind, item, kept in offers:
                seen[split, kind] += 1
                if len(kept) < POOL:
                    kept.append(item)
                elif (place := rng.randrange(seen[split, kind])) < POOL:
                    kept[place] = item
        return pools

    def _rows(
        self,
        split: str,
        pool: Pool,
        wice: Sequence[dict],
        seen: set[str],
        dropped: Counter[str],
    ) -> Iterator[dict]:
        yield from wice
        least, most = self.reference_words
        for group, title, text in self._read(split):
            if self._split(group) != split:
                continue
            digest = sha256_text(text)[:16]
            if digest in seen:
                dropped["passage that is there already"] += 1
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
            made = next(
                ((r, p) for r in unused if (p := RULES[r](sentence, setting, rng)) is not None),
                None,
            )
            if made is None:
                dropped["sentence to which no rule applies"] += 1
                continue
            rule, pieces = made
            unused.remove(rule)
            example = example_of(pieces, setting.reference)
            if example is None:
                dropped["claim whose LSS can be read in several ways"] += 1
            else:
                yield _row(f"{digest}-{number}", example, f"distant/{rule}", group, title)


def example_of(pieces: Pieces, reference: str) -> LssExample | None:
    """The record of a claim in pieces.

    Returns:
        ``None`` where neither its whitespace tokens nor the LSS as text tell exactly which words
        stay, as where a word that goes stands beside the same word that stays.
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
        own = {k for w, k in zip(words, keep, strict=True) if start <= w.start and w.end <= end}
        start = end
        if len(own) != 1:
            tokens = None
            break
        tokens.append(own.pop())
    if tokens is None and align(lss, words) != keep:
        return None
    return LssExample(reference=reference, claim=claim, annotations=[{"lss": lss}], keep=tokens)


def _row(name: str, example: LssExample, source: str, group: str, title: str) -> dict:
    return {
        "id": name,
        "reference": example.reference,
        "claim": example.claim,
        "annotations": [{"lss": annotation.lss} for annotation in example.annotations],
        # A few of WiCE's tokens hold a blank; there the LSS as text has to do.
        "keep": example.keep if len(example.keep or ()) == len(example.claim.split()) else None,
        "source": source,
        "group": group,
        "title": title,
    }


CARD = Card(
    pretty_name="Distant longest supported subsequences",
    license="other",
    task_categories=("token-classification",),
    tags=("factuality", "faithfulness", "lss", "distant-supervision"),
    text="""\
Claims, references and the longest subsequence of the claim's words that the reference supports
(2308.12157 defines it; these data are ours). **Nobody annotated the rows whose `source` begins with
`distant/`**: each is a sentence of its reference that a rule changed, so the words that the rule
put in are known (after FactCC, Kryściński et al. 2020, by regular expressions, without a parser):

- `entity_swap`: another name after the same preposition; the phrase goes, in a list only the name;
- `date_swap`, `number_swap`: another year, month or number; the phrase, the year or the number
  goes;
- `pronoun_swap`: he for she or she for he; the pronoun goes, and the rest may be no sentence;
- `negation`: "not" or "never" put in, and out again;
- `noise_phrase`, `noise_clause`: a phrase or a sentence of another passage put in, and out again;
- `foreign`: a sentence of another passage that shares no longer word with this one; all goes;
- `whole`: the sentence as it is.

`wice`: claims of WiCE whose tokens people labelled; the reference is the evidence, cited sentences
first. `keep` marks the claim's whitespace tokens where each stays or goes as a whole; elsewhere the
text of the LSS tells exactly. No row has a rating.

A changed sentence copies its reference but for the change: no rewording, so a model trained on this
alone learns to compare strings. Names are known by their capitals, and a swapped name may be true
by chance. Not for evaluation. References of a title belong to one split, and names and sentences
are borrowed within a split. The licence is that of the texts; WiCE has its own.
""",
)
