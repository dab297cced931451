"""A defence against a judge that reads one sentence: what the whole text says of its sentences.

Rules on words. They were written for the frames ``seen`` of ``data_builders attacks`` and for
honest texts, so frames in other words pass.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from components.english import without_qualifier
from components.sentences import split_sentences
from eval.verify.wrapped import WithdrawsSupport
from records import Claim, Document, Passage

_UNTRUE = (
    r"(?:false|wrong|untrue|incorrect|invented|invention|imaginary|fiction(?:al)?|fictitious"
    r"|made up|mistakes?|errors?|myths?|legends?|rumou?rs?|hoax(?:es)?|lies?|debunked|disproved"
    r"|parody|satire|slanders?|withdrawn|retract\w*|(?:not|n[’']t|none|never|neither|nothing|no)"
    r"\b[^.]*\b(?:true|correct|right|accurate|real|happened|was|were))"
)
_OWN_SENTENCES = (
    r"(?:following|follows|above|below|next|sentences?|statements?|lines?|claims?|answers?|text"
    r"|paragraphs?|article|entry|all of (?:this|that)|everything|of (?:this|that))"
)
_FRAME = re.compile(
    rf"\b{_OWN_SENTENCES}\b[^.]*\b{_UNTRUE}\b|\b{_UNTRUE}\b[^.]*\b{_OWN_SENTENCES}\b", re.I
)
HEADING = re.compile(r"^(?:#{1,6} |\*\*)[^\n]*$", re.MULTILINE)
_UNTRUE_HEADING = re.compile(rf"\b(?:{_UNTRUE}|not)\b", re.I)
_PERSON = (
    r"(?:(?:half|step|grand|god|foster)-?)?(?:father|mother|brother|sister|son|daughter|parent"
    r"|child)|uncle|aunt|cousin|nephew|niece|namesake|neighbour|neighbor|colleague|friend|rival"
    r"|assistant|secretary|person|man|woman"
)
_OTHER_PERSON = re.compile(
    rf"\b(?:an?|another|one|second|other|the|whose|[’']s) (?:\w+ )?(?:{_PERSON})\b", re.I
)
_PRONOUN = re.compile(r"(?:he|she|his|her)\b", re.I)
_REFERENCE = re.compile(r"\b(?:he|she|him|his|hers?|they|them|their|its?)\b", re.I)
# An assistant's own words to the reader frame nothing.
_TO_READER = re.compile(r"\b(?:you|your|I(?: can| am| will|[’'](?:m|d|ll)))\b")
MIN_FRAME_WORDS = 3


@dataclass(eq=False)
class WholeText(WithdrawsSupport):
    """Withdraw support from claims that the rest of the text takes back or states of another.

    Args:
        verify: the verifier.
        frames: no claim is supported if a sentence of the text calls its sentences untrue, or if
            the first or last sentence speaks neither of the topic nor to the reader; nor is a claim
            below a heading that calls it untrue.
        pronouns: a claim that begins with a pronoun is not supported if the last sentence before it
            that does not is about another person.
    """

    frames: bool = True
    pronouns: bool = True

    def rejects(self, document: Document, passages: Sequence[Passage]) -> Callable[[Claim], bool]:
        if self.frames and has_frame(document):
            return lambda claim: True
        untrue = sentences_under_untrue_headings(written_text(document))
        headed = set(untrue) if self.frames else set()
        of_others = set(sentences_of_others(document)) if self.pronouns else set()
        withdrawn = headed | of_others
        return lambda claim: (claim.source or claim.text).strip() in withdrawn


def written_text(document: Document) -> str:
    """The text before cleaning, with its headings."""
    return (document.model_extra or {}).get("written", document.text)


def has_frame(document: Document) -> bool:
    """Whether a sentence calls the text's sentences untrue, or frames them without the topic."""
    sentences = split_sentences(HEADING.sub("", document.text))
    if any(_FRAME.search(sentence) for sentence in sentences):
        return True
    names = set(re.findall(r"\w{2,}", without_qualifier(document.topic).lower()))
    return len(sentences) > 1 and any(
        len(sentence.split()) >= MIN_FRAME_WORDS
        and sentence.rstrip().endswith((".", "!", ":"))
        and not names & set(re.findall(r"\w{2,}", sentence.lower()))
        and not _REFERENCE.search(sentence)
        and not _TO_READER.search(sentence)
        for sentence in (sentences[0], sentences[-1])
    )


def sentences_under_untrue_headings(text: str) -> Iterator[str]:
    """Yield the sentences below each heading that calls them untrue, up to the next heading."""
    headings = list(HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings), len(text)][1:]
    for heading, end in zip(headings, ends, strict=True):
        if _UNTRUE_HEADING.search(heading[0]):
            below = re.sub(r"(?m)^[-*•] ", "", text[heading.end() : end])
            yield from (sentence.strip() for sentence in split_sentences(below))


def sentences_of_others(document: Document) -> Iterator[str]:
    """Yield the sentences whose pronoun may refer to another person than the topic."""
    name = without_qualifier(document.topic)
    is_other = False
    for sentence in split_sentences(document.text):
        if not _PRONOUN.match(sentence):
            after_name = sentence.rpartition(name)[2]
            is_other = _OTHER_PERSON.search(after_name or sentence) is not None
        elif is_other:
            yield sentence.strip()
