"""Detection of abstentions, which FActScore excludes.

A text abstains if no sentence states something about its topic and one refuses: it says what the
writer or the sources do not know, asks back or is "N/A". The rules follow the grammar of such
sentences (their subject, its verb and the negation) and are measured on labelled responses of
FActScore, HALoGEN and AmbigBio (``tests/records/abstention_labels.jsonl``).
"""

import re

from records.cleaning import clean
from records.types import Document

# Citations, tags, LaTeX and lines of a program's log.
_MARKUP = re.compile(
    r"\[\d+\]|</?\w+>:?|\\+\w+\{\w*\}|^[\d\sT-]*\d\d:\d\d:\d\d\.\d{3}.*", re.MULTILINE
)
# No sentence ends after an initial or an abbreviation such as "Dr.".
_SENTENCE_END = re.compile(r"(?<![A-Z]\.)(?<!\b[A-Z][a-z]\.)(?<=[.!?])[\"'”)]*\s+|\n+")
# A title that some models list instead of an answer, without a verb.
_TITLE = re.compile(
    r"(?:(?:i\b[^:]*\b)?titles?\b[^:]*: |[\"“](?=[^\"”]{1,60}[\"”](?: \(.*\)|, ?[\"“].*)?\W*$))"
    r"(?:(?!\b(?:is|was|are|were|has|had|did)\b).)*",
    re.IGNORECASE,
)
# A fact may follow a refusal in its sentence: "I am not sure, but she was a chemist."
_PRONOUN = r"(?:he|she|they|it|there|this|these|i)(?:\b|')"
_CLAUSE_END = re.compile(
    r",? (?:but|though|although|whereas|however),? (?!(?:not|only|to)\b)"
    rf"|(?<!title): |; (?={_PRONOUN})|\n"
    rf"|(?<!such),? (?:as|because|since|and|so|and therefore|and so) (?={_PRONOUN})"
    rf"|(?:(?<=know)|(?<=think)|(?<=believe)) (?={_PRONOUN})"
    r"|, (?=who\b|(?:he|she) (?:is|was|has|had)\b)",
    re.IGNORECASE,
)
# "that" after a verb or an adjective; a relative clause belongs to its noun.
_THAT_CLAUSE = re.compile(
    r"\b(\w+ed|\w+ing|agree|appears|are|aware|believe|clear|evidence|fact|find|found|glad|is|know"
    r"|learn|likely|mentions?|note|possible|recall|says?|see|seems|shows?|states?|suggests?|sure"
    r"|tells?|think|you) that (?!is|are|was|were)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:again|additionally|ah+\w*|also|alternatively|and|but|currently|finally|hello|hi"
    r"|however|in addition|instead|it (?:seems|appears)|just|no problem|note|oh|ok|okay"
    r"|please note|regrettably|sadly|so|sure|therefore|unfortunately|well|yes"
    r"|(?:(?:my )?apologies|sorry)(?: (?:for|about) [^,]*(?=,))?(?! (?:for|about)\b|\W*$)"
    r"|(?:as|after|based on|for|from|in|to|without) [^,:]{1,80}(?=, \w))(?:[,.!:]+ *| +|$))+",
    re.IGNORECASE,
)
_SOURCE = (
    r"(?:articles?|assistant|bot|contexts?|data|database|documents?|inputs?|instructions?"
    r"|knowledge|model|passages?|prompts?|query|questions?|requests?|results?|search|sources?"
    r"|system|text|training|web)\b"
)
_RECORD = (
    r"(?:answers?|articles?|biograph\w+|bios?|data|details?|documents?|entr(?:y|ies)|evidence"
    r"|info|information|matches|mentions?|output|records?|references?|results?|sources?)\b"
)
_PERSON = r"(?:figure|individual|people|person)s?"
_REFUSAL = re.compile(
    "|".join(
        [
            r"(?:n/?a|none|unknown|no)\W*$",
            r"(?:(?:my )?apologies|sorry)(?: (?:for|about) [^,]*)?\W*$",
            rf"{_TITLE.pattern}$",
            # What the writer cannot do, knows, did or offers.
            r"i(?:'(?:ll|d|ve)| (?:do|did|can|can't|could|cannot|will|would|won't|may|might|must"
            r"|should|need|(?:do|did|could|wo|would|have|was)n't|apologi[sz]e|regret|understand"
            r"|think|believe|suggest|recommend|hope|found|know|see|wish|searched|tried"
            r"|(?:only|just) (?:know|have|recall|remember)|know (?:only|(?:very )?little|nothing)"
            r"|have (?:no|not|never|extracted|searched|checked|looked|tried|found)))\b",
            r"i(?:'m| am| was) (?:\w+ly |so |very )?(?:not|unable|sorry|afraid|happy|glad|just"
            r"|only|still|here|programmed|designed|unaware|unfamiliar|unsure|looking|hoping"
            r"|trying|an? (?:ai|large|language|text|bot|virtual|computer))\b",
            r"(?:we )?(?:could not|couldn't|cannot|can't|(?:were )?unable to|regret"
            r"|apologi[sz]e)\b",
            r"not (?:available|applicable|found|sure|known)\W*$",
            r"it(?:'s| is) (?:difficult|hard|impossible|not possible|unclear) to"
            r" (?:say|tell|determine|identify|know)\b",
            # What is not known.
            r"there(?: is| are| was| were|'s| seems? to be| appears? to be)"
            r"(?:n't| not| no| little| limited| insufficient)(?: [\w-]+){0,4}"
            rf" (?:{_RECORD}|{_PERSON} (?:named|called|by|with|known)\b)",
            r"(?:no|not enough|little|limited|insufficient) (?:[\w-]+ ){0,4}"
            rf"{_RECORD}(?! ha(?:s|ve) (?!been)\w)",
            r"(?:\w+ ){0,2}information\b.*\b(?:not|limited|scarce|unavailable)\b",
            r"there.{0,20} (?:confusion|error|misunderstanding|mistake|typo)\b",
            rf"there (?:are|may be|could be)\b[^,;:]*\b{_PERSON}\b"
            r"[^,;:]*\b(?:names?|named|called)\b[^,;:]*$",
            # What sources and questions lack.
            rf"(?:the|this|these|your|my|all|any) (?:\w+ )?{_SOURCE}.{{0,20}}"
            r"(?:n't|\b(?:cannot|not|no|only|about|related|unrelated|unclear)\b)",
            r"none of the (?-i:[a-z])",
            r"[^,]{0,80}(?:\bnot|n't)\b.{0,9} (?:found|mentioned|available|included|listed"
            rf"|provided|contained|appear|in)\b.*\b{_SOURCE}",
            # Requests.
            r"please\b|if (?-i:you)\b.*\b(?:i|i'm|i'll|i'd|me|please|feel)\b",
        ]
    ),
    re.IGNORECASE,
)
# Neither a refusal nor a statement about the topic.
_REMARK = re.compile(
    "|".join(
        [
            r"(?:done|got it|thank(?:s| you)(?: for [^,]*)?|)\W*$",
            r"it(?:'s| is| was| would| may| might| can| will)(?: \w+){0,3} (?:possible|important"
            r"|appropriate|inappropriate|difficult|hard|helpful|best|necessary|recommended"
            r"|advisable|long|essential|crucial|likely|unclear)\b",
            r"it\b.{0,40}\b(?:capabilit\w+|format|inputs?|instructions?|privacy|prompts?|query"
            r"|questions?|requests?)\b",
            r"(?:sharing|providing)\b.*\b(?:information|details)\b",
            r"the reason\b|my (?:\w+ )?(?:knowledge|training|purpose|responses)\b",
            r"this is\b.*\b(?:ai|assistant|bot|model|program)\b",
            # Offers and advice to the reader.
            r"here(?:'s| is| are| they are)\b(?!.*\b(?:his|her|their|its)\b)",
            r"(?:kindly|you|let|feel free|try|provide|ask|check|consult|contact|consider|visit)\b"
            r"(?! ?(?-i:[A-Z]))",
            r"(?:the )?more (?:context|details?|information|specific)\b",
            r"(?:this|that)\b.*\b(?:me|you|your)\b",
            r"if (?-i:you)\b(?:[^,]*$|.*\b(?:try|you (?:may|can|could|might|should))\b)",
            # That the topic is not known, private or not real.
            r"[^,\d]{0,60}(?:n't|\bnot)\b(?! only).{0,40}\b(?:known|recogni[sz]ed|notable|figure"
            r"|celebrity|name|presence|achievements|attention|associated|real|famous|exist"
            r"|familiar)\b(?! (?:to|for|since)\b)",
            r"[^,\d]{0,40}(?:'s|\bis|\bbe) (?:a |an )?(?:private|fictional|fictitious|made-up"
            r"|misspelled|non-?existent)\b(?! \w+ (?:from|in|of|created|who)\b)",
            r"the (?:\w*|first |last |family |given )name (?!of (?:his|her|their|its)\b)",
        ]
    ),
    re.IGNORECASE,
)


def responds(document: Document) -> bool:
    """Whether a text gives information about its topic (the opposite of :func:`abstains`).

    A document's own field ``responds`` takes precedence. An empty text never responds.
    """
    text = clean(document.text, "refusals").text
    if not text or document.responds is not None:
        return bool(text and document.responds)
    return not abstains(text)


def clean_document(document: Document) -> Document:
    """A document as the stages of a pipeline see it.

    Its text is cleaned, ``written`` has the text as it was, and ``responds`` is set.
    """
    fields = {"text": clean(document.text).text, "written": document.text}
    fields["responds"] = responds(document)
    return document.model_copy(update=fields)


def abstains(text: str) -> bool:
    """Whether no sentence of a text states something about its topic, and one refuses."""
    has_refusal = False
    for sentence in _SENTENCE_END.split(_MARKUP.sub(" ", text.replace("’", "'"))):
        kind = _kind(sentence.strip(" -*•'"))
        if kind == "statement":
            return False
        has_refusal |= kind == "refusal"
    return has_refusal


def _kind(sentence: str) -> str:
    is_question = sentence.rstrip(" )").endswith("?")
    if is_question and not sentence.lower().startswith("did you know"):
        return "refusal"
    if _TITLE.fullmatch(sentence):
        return "refusal"
    kind = "remark"
    for clause in _CLAUSE_END.split(_THAT_CLAUSE.sub(r"\1\n", sentence)):
        clause = _OPENING.sub("", clause.strip())
        if _REFUSAL.match(clause):
            kind = "refusal"
        elif not _REMARK.match(clause):
            return "statement"
    return kind
