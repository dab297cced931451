"""Who a sentence is about, and what says that it is somebody new."""

import re
import unicodedata
from difflib import SequenceMatcher
from typing import NamedTuple

_TOKEN = re.compile(r"[^\W\d_][\w.’'-]*")
# What may stand between two words of a name: blanks, quotes, the point of an initial.
_BETWEEN = re.compile(r"[\s\"“”‘’'.]*")
_PARTICLE = re.compile(
    r"de|del|della|der|di|do|dos|da|du|la|le|van|von|den|ten|ter|of|the|al|el|bin|ibn|y|e"
)
# Words that have a capital because a sentence begins with them.
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
# That the text goes on to somebody else, in so many words.
_OTHER = re.compile(
    r"""\b(?:another|different|unrelated|namesake|counterpart|on\ the\ other\ hand|meanwhile
    |in\ contrast|by\ contrast|alternatively|lastly|finally|the\ other|by\ the\ name\ of
    |not\ to\ be\ confused|there\ (?:is|was|are|were)
    |(?:second|third|fourth|fifth)\ (?:\w+\ ){1,3}(?:named|called))\b""",
    re.IGNORECASE | re.VERBOSE,
)
# "Another individual, born 1968 in England, ...": somebody new who is given no name.
_NAMELESS = re.compile(
    r"""^(?:[\w’']+,\ )?
    (?:another|a\ (?:second|third|fourth|fifth|different)
    |the\ (?:other|second|third|fourth|fifth|last))\ (?:\w+\ ){0,2}?
    (?:person|individual|figure|man|woman|footballer|player|politician|actor|artist|author|musician
    |singer|writer|namesake)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# What follows a name that is introduced: a descriptor or years in parentheses, an apposition, or
# "is a". Without "also", which adds to the person at hand.
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
    """A name: its words, folded, and where it stands in the sentence."""

    words: tuple[str, ...]
    start: int
    end: int


class Person:
    """What the text has said so far of the person at hand: names, and years of birth."""

    def __init__(self) -> None:
        self.names: list[tuple[str, ...]] = []
        self.born: set[str] = set()

    def read(self, sentence: str, topic: str) -> None:
        """Take in a sentence about the person."""
        about = subject(sentence, topic)
        if about is not None:
            self.names.append(about.words)
            self.born.update(births(sentence[about.start :]))

    def may_be(self, words: tuple[str, ...]) -> bool:
        """Whether a name is a shorter or a fuller form of one of the person's."""
        return not self.names or any(_forms_of_one(words, name) for name in self.names)


def evidence(sentence: str, topic: str, person: Person) -> int:
    """Points that say that a sentence introduces somebody else than the person at hand."""
    if _NAMELESS.search(sentence):
        return 3
    about = subject(sentence, topic)
    if about is None:
        return 0
    before, behind = sentence[: about.start], sentence[about.end :]
    full = len(about.words) > 1 or len(topic.split()) == 1
    points = 2 * bool(_OTHER.search(before) or _OTHER.search(behind[:30]))
    if not full or re.search(r"\bthis\s*$", before, re.IGNORECASE):
        return points
    years = births(sentence[about.start :])
    points += 1 + 2 * (not person.may_be(about.words))
    points += 2 * bool(_DESCRIBED.search(behind)) or bool(_IS_A.search(behind))
    if years and person.born:
        points += 1 if years.isdisjoint(person.born) else -2
    return points


def births(text: str) -> set[str]:
    """Years of birth: the first after "born", or in parentheses."""
    return {born or bracketed for born, bracketed in _BORN.findall(text)}


def subject(sentence: str, topic: str) -> Mention | None:
    """The first mention of the topic's name, if the sentence is about its bearer.

    It is not if a verb or a preposition comes before it, or a word of kinship while the given name
    is not the topic's ("his daughter, Mary McCoy").
    """
    about = next(iter(mentions(sentence, topic)), None)
    if about is None:
        return None
    before = sentence[: about.start]
    clause = re.split(r"[,;:]", before)[-1]
    if _KIN.search(before) and not _alike(about.words[0], folded(topic.split()[0])):
        return None
    if _OTHER.search(before):
        return about
    return None if _VERB.search(clause) or _GOVERNED.search(clause) else about


def mentions(sentence: str, topic: str) -> list[Mention]:
    """Names in a sentence that share a word with the topic, spelling variants included."""
    words = [folded(token) for token in _TOKEN.findall(topic)]
    own = [w for w in words if len(w) > 2 and not _PARTICLE.fullmatch(w)] or words
    return [
        name
        for name in names(sentence)
        if any(_alike(word, mine) for word in name.words for mine in own)
    ]


def names(sentence: str) -> list[Mention]:
    """Runs of words with capitals, with particles inside."""
    runs: list[list[re.Match]] = [[]]
    for token in _TOKEN.finditer(sentence):
        run, word = runs[-1], token.group()
        capital = word[:1].isupper() or not word[:1].islower()
        near = not run or _BETWEEN.fullmatch(sentence[run[-1].end() : token.start()])
        if near and (capital or (run and _PARTICLE.fullmatch(word))):
            run.append(token)
        else:
            runs.append([token] if capital else [])
    found = []
    for run in runs:
        while run and not run[-1].group()[:1].isupper():
            run.pop()
        while run and _OPENING.fullmatch(folded(run[0].group())):
            run.pop(0)
        if run:
            words = tuple(folded(re.sub(r"['’]s$", "", token.group())) for token in run)
            found.append(Mention(words, run[0].start(), run[-1].end()))
    return found


def folded(word: str) -> str:
    """A word in small letters, without accents and marks."""
    plain = unicodedata.normalize("NFKD", word.replace("ł", "l").replace("ı", "i"))
    return "".join(c for c in plain if not unicodedata.combining(c)).lower().strip(".’'-")


def _alike(one: str, other: str) -> bool:
    if one == other or min(len(one), len(other)) < 4:
        return one == other
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.7


def _forms_of_one(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    short, long = sorted((one, other), key=len)
    rest = iter(long)
    return all(any(_initial(word, own) for own in rest) for word in short)


def _initial(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long == short or (len(short) == 1 and long.startswith(short))
