"""Words and subsequences of claims, and alignment of human LSS.

LSS: 2308.12157, section 3. Words are whitespace tokens with punctuation split off; apostrophes
inside words are kept.
"""

import re
import unicodedata
from dataclasses import dataclass

from records import LssExample

# Characters inside words that \w lacks: combining marks, joiners, the soft hyphen. Limited to the
# first 65,536 code points for speed.
INNER_CHARS = "\u00ad\u200c\u200d" + "".join(
    char for char in map(chr, range(0x300, 0x10000)) if unicodedata.category(char)[0] == "M"
)
WORD = rf"\w[\w{INNER_CHARS}]*"
_WORD = re.compile(rf"{WORD}(?:['’]{WORD})*|[^\w\s]")
_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True)
class Word:
    """A word and its offsets: ``text == claim[start:end]``."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Return the words of a text; each punctuation mark is one word."""
    return [Word(match.group(), *match.span()) for match in _WORD.finditer(text)]


def to_nfc(text: str) -> str:
    """Normalise a text to NFC without soft hyphens, for comparison."""
    return unicodedata.normalize("NFC", text).replace("\u00ad", "")


def name_key(name: str) -> str:
    """Return a key that is equal for names and titles that differ only in how they are written.

    Unicode form, case, white space, soft hyphens and underscores for spaces are ignored.
    """
    folded = unicodedata.normalize("NFKC", to_nfc(name).replace("_", " ")).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def _normalise(word: str) -> str:
    # A soft hyphen after punctuation ("non-\u00adfiction") is a separate word.
    return (to_nfc(word) or word).lower().replace("’", "'").replace("“", '"').replace("”", '"')


def join_words(text: str, words: list[Word], keep: list[bool]) -> str:
    """Join the kept words, without a space between words that are adjacent in ``text``."""
    out, last = "", None
    for word, kept in zip(words, keep, strict=True):
        if kept:
            glue = "" if last is None or last == word.start else " "
            out += glue + word.text
            last = word.end
    return out


def _common_subsequence(lss: str, words: list[Word]) -> tuple[list[bool], list[str]]:
    """Return which claim words a longest common subsequence keeps, and the unmatched LSS words.

    Words are compared in lower case. A word always outweighs punctuation.
    """
    target = [_normalise(word.text) for word in split_words(lss)]
    claim = [_normalise(word.text) for word in words]
    rows, columns = len(target), len(claim)
    # score[i][j]: best match of target[i:] and claim[j:].
    worth = [1 if word[0].isalnum() else 1 / (rows + 1) for word in target]
    score = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            score[i][j] = max(score[i + 1][j], score[i][j + 1])
            if target[i] == claim[j]:
                score[i][j] = max(score[i][j], score[i + 1][j + 1] + worth[i])
    keep, matched = [False] * columns, [False] * rows
    i = j = 0
    while i < rows and j < columns:
        if target[i] == claim[j] and score[i][j] == score[i + 1][j + 1] + worth[i]:
            keep[j] = matched[i] = True
            i, j = i + 1, j + 1
        elif score[i][j] == score[i + 1][j]:
            i += 1
        else:
            j += 1
    return keep, [w for w, m in zip(target, matched, strict=True) if not m]


def align(lss: str, words: list[Word], strict: bool = False) -> list[bool] | None:
    """Return which claim words an LSS keeps, by longest common subsequence in lower case.

    ``None`` if the LSS is not a subsequence of the claim's words. Annotators often add a full stop
    that the claim lacks, so punctuation need not match unless ``strict``.
    """
    keep, missing = _common_subsequence(lss, words)
    return None if any(strict or word[0].isalnum() for word in missing) else keep


def project(text: str, words: list[Word]) -> list[bool]:
    """Return which claim words a longest common subsequence with any text keeps."""
    return _common_subsequence(text, words)[0]


def is_subsequence(candidate: str, claim: str) -> bool:
    """Whether all words and marks of ``candidate`` occur in ``claim`` in order (case ignored)."""
    return align(candidate, split_words(claim), strict=True) is not None


def keep_targets(example: LssExample) -> tuple[list[Word], list[list[bool]], int]:
    """Return the claim's words, and the keep decisions (bools) of each aligned annotation.

    The third value is the number of annotations that could not be aligned.
    """
    words = split_words(example.claim)
    if example.keep is not None:
        # Gold labels are per whitespace token; each word is inside one token.
        tokens = [match.span() for match in _TOKEN.finditer(example.claim)]
        if len(tokens) == len(example.keep):
            spans = list(zip(tokens, example.keep, strict=True))
            keep = [any(s <= w.start and w.end <= e and k for (s, e), k in spans) for w in words]
            return words, [keep], 0
    aligned = [align(annotation.lss, words) for annotation in example.annotations]
    kept = [keep for keep in aligned if keep is not None]
    return words, kept, len(aligned) - len(kept)
