"""Mentions of people in sentences, and evidence that a sentence introduces a new person."""

import re
import unicodedata
from difflib import SequenceMatcher
from typing import NamedTuple

_TOKEN = re.compile(r"[^\W\d_][\w.’'-]*")
# Characters between two words of a name: blanks, quotes, the period of an initial.
_BETWEEN = re.compile(r"[\s\"“”‘’'.]*")
_PARTICLE = re.compile(
    r"de|del|della|der|di|do|dos|da|du|la|le|van|von|den|ten|ter|of|the|al|el|bin|ibn|y|e"
)
# Words that are capitalized at the start of a sentence but are not names.
_OPENING = re.compile(
    r"""the|an?|he|she|they|his|her|their|its?|this|that|these|those|in|on|at|of|for|from|by|with
    |after|before|during|while|when|although|though|both|and|but|or|as|is|was|were|born|another
    |other|one|two|first|second|third|finally|lastly|additionally|meanwhile|however|later|also
    |apart|along|alongside|prior|besides|similarly|moreover|furthermore|there|not""",
    re.VERBOSE,
)
_KIN = re.compile(
    r"""\b(?:father|mother|parents?|sons?|daughters?|brothers?|sisters?|siblings?|wife|husband
    |uncle|aunt|cousins?|nephew|niece|grand\w+|great-grand\w+|widow|children|spouse
    |descendants?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Phrases that introduce another person.
_OTHER = re.compile(
    r"""\b(?:another|different|unrelated|namesake|counterpart|on\ the\ other\ hand|meanwhile
    |in\ contrast|by\ contrast|alternatively|lastly|finally|the\ other|by\ the\ name\ of
    |not\ to\ be\ confused|there\ (?:is|was|are|were)
    |(?:second|third|fourth|fifth)\ (?:\w+\ ){1,3}(?:named|called))\b""",
    re.IGNORECASE | re.VERBOSE,
)
# "Another individual, born 1968 in England, ...": a new person without a name.
_NAMELESS = re.compile(
    r"""^(?:[\w’']+,\ )?
    (?:another|a\ (?:second|third|fourth|fifth|different)
    |the\ (?:other|second|third|fourth|fifth|last))\ (?:\w+\ ){0,2}?
    (?:person|individual|figure|man|woman|footballer|player|politician|actor|artist|author|musician
    |singer|writer|namesake)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# After an introduced name: a descriptor or years in parentheses, an apposition, or "is a". Not
# "is also", which continues the current person.
_DESCRIBED = re.compile(
    r"^[\"”’]*\s*(?:\([^)]*\)|,\s*(?:an?|the|born|also known)\b)", re.IGNORECASE
)
_IS_A = re.compile(r"^(?:,[^,]{0,60},)?\s*(?:is|was)\s+(?:an?|born)\b", re.IGNORECASE)
_BORN = re.compile(r"\bborn\b[^.;]{0,60}?\b(1\d{3}|20\d\d)\b|\((?:[^()]*?\b)?(1\d{3}|20\d\d)\b")
_VERB = re.compile(
    r"\b(?:is|was|are|were|had|has|have|became|who|that|which|\w{3,}ed)\b", re.IGNORECASE
)
_GOVERNED = re.compile(r"\b(?:of|with|by|for|to|from|and|at|in|on|as|against|like)\s*[\"“‘(]*$")


class Mention(NamedTuple):
    """A name: its folded words and its span in the sentence."""

    words: tuple[str, ...]
    start: int
    end: int


class Person:
    """Names and years of birth of the current person so far."""

    def __init__(self) -> None:
        self.names: list[tuple[str, ...]] = []
        self.born: set[str] = set()

    def add_sentence(self, sentence: str, topic: str) -> None:
        about = find_subject(sentence, topic)
        if about is not None:
            self.names.append(about.words)
            self.born.update(birth_years(sentence[about.start :]))

    def is_name_variant(self, words: tuple[str, ...]) -> bool:
        """Return whether a name is a shorter or a fuller form of one of the person's names."""
        return not self.names or any(_are_variants(words, name) for name in self.names)


def score_new_person(sentence: str, topic: str, person: Person) -> int:
    """Count the points of evidence that a sentence introduces a new person."""
    if _NAMELESS.search(sentence):
        return 3
    about = find_subject(sentence, topic)
    if about is None:
        return 0
    before, after = sentence[: about.start], sentence[about.end :]
    full = len(about.words) > 1 or len(topic.split()) == 1
    points = 2 * bool(_OTHER.search(before) or _OTHER.search(after[:30]))
    if not full or re.search(r"\bthis\s*$", before, re.IGNORECASE):
        return points
    years = birth_years(sentence[about.start :])
    points += 1 + 2 * (not person.is_name_variant(about.words))
    points += 2 * bool(_DESCRIBED.search(after)) or bool(_IS_A.search(after))
    if years and person.born:
        points += 1 if years.isdisjoint(person.born) else -2
    return points


def birth_years(text: str) -> set[str]:
    """Find years of birth: the first year after "born" or in parentheses."""
    return {born or bracketed for born, bracketed in _BORN.findall(text)}


def find_subject(sentence: str, topic: str) -> Mention | None:
    """Find the first mention of the topic's name, if it is the subject of the sentence.

    It is not the subject after a verb or a preposition, or after a word of kinship if the first
    name differs from the topic's ("his daughter, Mary McCoy").
    """
    about = next(iter(find_mentions(sentence, topic)), None)
    if about is None:
        return None
    before = sentence[: about.start]
    clause = re.split(r"[,;:]", before)[-1]
    if _KIN.search(before) and not _is_similar(about.words[0], fold(topic.split()[0])):
        return None
    if _OTHER.search(before):
        return about
    return None if _VERB.search(clause) or _GOVERNED.search(clause) else about


def find_mentions(sentence: str, topic: str) -> list[Mention]:
    """Find names in a sentence that share a word with the topic, including spelling variants."""
    words = [fold(token) for token in _TOKEN.findall(topic)]
    topic_words = [w for w in words if len(w) > 2 and not _PARTICLE.fullmatch(w)] or words
    return [
        name
        for name in find_names(sentence)
        if any(_is_similar(word, topic_word) for word in name.words for topic_word in topic_words)
    ]


def find_names(sentence: str) -> list[Mention]:
    """Find runs of capitalized words, with particles inside."""
    runs: list[list[re.Match]] = [[]]
    for token in _TOKEN.finditer(sentence):
        run, word = runs[-1], token.group()
        capital = word[:1].isupper() or not word[:1].islower()
        near = not run or _BETWEEN.fullmatch(sentence[run[-1].end() : token.start()])
        if near and (capital or (run and _PARTICLE.fullmatch(word))):
            run.append(token)
        else:
            runs.append([token] if capital else [])
    mentions = []
    for run in runs:
        while run and not run[-1].group()[:1].isupper():
            run.pop()
        while run and _OPENING.fullmatch(fold(run[0].group())):
            run.pop(0)
        if run:
            words = tuple(fold(re.sub(r"['’]s$", "", token.group())) for token in run)
            mentions.append(Mention(words, run[0].start(), run[-1].end()))
    return mentions


def fold(word: str) -> str:
    """Lower-case a word and strip accents and marks."""
    plain = unicodedata.normalize("NFKD", word.replace("ł", "l").replace("ı", "i"))
    return "".join(c for c in plain if not unicodedata.combining(c)).lower().strip(".’'-")


def _is_similar(left: str, right: str) -> bool:
    if left == right or min(len(left), len(right)) < 4:
        return left == right
    return SequenceMatcher(None, left, right, autojunk=False).ratio() >= 0.7


def _are_variants(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    short, long = sorted((left, right), key=len)
    remaining = iter(long)
    return all(any(_is_initial_of(word, full) for full in remaining) for word in short)


def _is_initial_of(left: str, right: str) -> bool:
    short, long = sorted((left, right), key=len)
    return long == short or (len(short) == 1 and long.startswith(short))
