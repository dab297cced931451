"""Words of a claim, subsequences of them, and how human LSS are aligned to them.

LSS: 2308.12157, section 3. A longest supported subsequence is judged over the claim's words:
whitespace tokens with punctuation split off; an apostrophe inside a word stays.
"""

import re
import unicodedata
from dataclasses import dataclass

from records import LssExample

# What stands inside a word besides Python's \w: marks on letters (vowels of Hindi and Thai, an
# accent of its own), joiners, the soft hyphen. Of the first 65,536 characters; others are slow.
INNER_CHARS = "\u00ad\u200c\u200d" + "".join(
    char for char in map(chr, range(0x300, 0x10000)) if unicodedata.category(char)[0] == "M"
)
WORD = rf"\w[\w{INNER_CHARS}]*"
_WORD = re.compile(rf"{WORD}(?:['’]{WORD})*|[^\w\s]")
_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True)
class Word:
    """A word and its place: ``text == claim[start:end]``."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """The words of a text; every punctuation mark is a word of its own."""
    return [Word(match.group(), *match.span()) for match in _WORD.finditer(text)]


def to_nfc(text: str) -> str:
    """A text as words are compared: a letter and its accent one character, no soft hyphens."""
    return unicodedata.normalize("NFC", text).replace("\u00ad", "")


def _plain(word: str) -> str:
    # A soft hyphen behind a mark ("non-\u00adfiction") is a mark of its own.
    return (to_nfc(word) or word).lower().replace("’", "'").replace("“", '"').replace("”", '"')


def join_words(text: str, words: list[Word], keep: list[bool]) -> str:
    """The kept words as text; words that touch in ``text`` and are both kept go on touching."""
    out, last = "", None
    for word, kept in zip(words, keep, strict=True):
        if kept:
            glue = "" if last is None or last == word.start else " "
            out += glue + word.text
            last = word.end
    return out


def _common(lss: str, words: list[Word]) -> tuple[list[bool], list[str]]:
    """Which of the claim's words a longest common subsequence keeps, and what it has not matched.

    Words are compared lower-cased. A mark never outweighs a word.
    """
    target = [_plain(word.text) for word in split_words(lss)]
    claim = [_plain(word.text) for word in words]
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
    """Which words of the claim an LSS keeps, by longest common subsequence on lower-cased words.

    Args:
        lss: the subsequence as text.
        words: the claim's words.
        strict: every punctuation mark must be the claim's too. Annotators end an LSS with a full
            stop that the claim does not have, so marks may go unmatched otherwise.

    Returns:
        One bool a word, or ``None`` when the LSS is not a subsequence of the claim's words.
    """
    keep, missing = _common(lss, words)
    return None if any(strict or word[0].isalnum() for word in missing) else keep


def project(text: str, words: list[Word]) -> list[bool]:
    """The words of the claim that a longest common subsequence with any text keeps."""
    return _common(text, words)[0]


def is_subsequence(candidate: str, claim: str) -> bool:
    """Whether every word and mark of ``candidate`` occurs in ``claim`` in order (case ignored)."""
    return align(candidate, split_words(claim), strict=True) is not None


def keep_targets(example: LssExample) -> tuple[list[Word], list[list[bool]], int]:
    """The claim's words with the keep decisions of every annotation that aligns.

    Returns:
        The words, one list of bools an aligned annotation, and how many annotations did not align.
    """
    words = split_words(example.claim)
    if example.keep is not None:
        # The source marks whitespace tokens; each of ours lies inside exactly one of them.
        tokens = [match.span() for match in _TOKEN.finditer(example.claim)]
        if len(tokens) == len(example.keep):
            spans = list(zip(tokens, example.keep, strict=True))
            keep = [any(s <= w.start and w.end <= e and k for (s, e), k in spans) for w in words]
            return words, [keep], 0
    found = [align(annotation.lss, words) for annotation in example.annotations]
    kept = [keep for keep in found if keep is not None]
    return words, kept, len(found) - len(kept)
