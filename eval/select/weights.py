"""What a claim is worth: Core's informativeness weights and its bleached claims (2407.03572).

A bleached claim is one that holds for any topic of a domain (Table 8's idea; the wording of the
files in ``bleached/`` is our own). A claim is informative as far as it is not already likely given
one of them:

    w_Info(c) = −ln max_h p(c | h)        (natural logarithm; h runs over the bleached claims)

Appendix A caps the weight so that what a bleached claim entails is worth nothing. As printed the
cap is inverted: an entailed claim would keep its weight and an informative one would get 0. We
follow the stated intent:

    w(c) = −ε                 if some bleached claim entails c
    w(c) = w_Info(c) − ε      otherwise
"""

import json
import math
import unicodedata
from functools import lru_cache
from pathlib import Path

from components.encoding import fill_prompt
from records import Document, UserError

BLEACHED = Path(__file__).parent / "bleached"
TOPIC = "{topic}"
# Texts or a file of them; domain to such; or a file of topics and theirs (see Bleached).
BleachedClaims = list[str] | dict[str, str] | str


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """A text up to compatibility forms, case, spacing and the final full stop."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .")


def load_bleached(bleached: list[str] | str | Path) -> list[str]:
    """Read bleached claims about any topic and check them.

    Args:
        bleached: the claims themselves, or a file with one a line and comments after ``#``; each
            has ``{topic}`` where the topic goes.
    """
    if isinstance(bleached, list):
        where, claims = "bleached", [claim.strip() for claim in bleached]
    else:
        where = str(bleached)
        lines = _text_of(bleached).splitlines()
        claims = [claim for line in lines if (claim := line.partition("#")[0].strip())]
    if not claims:
        raise UserError(f"{where}: 0 bleached claims; give at least 1")
    for claim in claims:
        if TOPIC not in claim:
            raise UserError(f"{where}: bleached claim {claim!r} has no {TOPIC}; put it in")
    return claims


def load_by_topic(path: str | Path) -> dict[str, list[str]]:
    """Read bleached claims of single topics: a JSON object, topic to a list of texts.

    This is the layout of the authors' released code for topics that are questions; ``{topic}`` may
    stand in them, and need not.
    """
    try:
        found = json.loads(_text_of(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, deep nesting
        raise UserError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict) or not found:
        raise UserError(f"{path}: no object; give topics, each with a list of bleached claims")
    for topic, claims in found.items():
        texts = isinstance(claims, list) and all(isinstance(c, str) and c.strip() for c in claims)
        if not texts or not claims:
            raise UserError(f"{path}: {topic!r}: give a list of texts, at least 1")
    return found


class Bleached:
    """Which bleached claims there are about a document.

    Args:
        given: texts with ``{topic}``, or a file with one a line; for documents of several domains,
            domain to such a file (a document says its own in ``domain``); for topics that have
            little in common, such as questions, a ``.json`` file of topics and their claims.
    """

    def __init__(self, given: BleachedClaims):
        self._by_domain = self._by_topic = None
        self._everywhere: list[str] = []
        if isinstance(given, dict):
            self._by_domain = {domain: load_bleached(path) for domain, path in given.items()}
        elif isinstance(given, str) and given.endswith(".json"):
            self._by_topic = load_by_topic(given)
        else:
            self._everywhere = load_bleached(given)

    def claims_for(self, document: Document) -> list[str]:
        """The bleached claims about a document's topic."""
        claims: list[str] | None = self._everywhere
        if self._by_domain is not None:
            domain = (document.model_extra or {}).get("domain")
            claims = self._by_domain.get(str(domain))
            known = ", ".join(self._by_domain)
            missing = f"document {document.id!r}: domain: {domain!r}; bleached has {known}"
        elif self._by_topic is not None:
            claims = self._by_topic.get(document.topic)
            missing = f"document {document.id!r}: bleached has nothing of topic {document.topic!r}"
        if not claims:
            raise UserError(missing)
        return fill_topic(claims, document.topic)


def _text_of(path: str | Path) -> str:
    if not Path(path).is_file():
        raise UserError(f"bleached: {path}: no such file; give a file with one claim a line")
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"bleached: {path}: not UTF-8; save it in that encoding") from None


def fill_topic(bleached: list[str], topic: str) -> list[str]:
    """The bleached claims about one topic."""
    return [fill_prompt(claim, topic=topic) for claim in bleached]


def information(likelihood: float, floor: float) -> float:
    """w_Info in nats, of a claim whose largest likelihood given a bleached claim is ``likelihood``.

    Args:
        likelihood: max_h p(c | h), in [0, 1].
        floor: the smallest probability told apart from 0; makes ln 0 finite.
    """
    # max() with 0: −ln 1 is −0.0, and a float32 probability may come out a hair above 1.
    return max(0.0, -math.log(max(likelihood, floor)))


def capped(likelihood: float, entailed: bool, epsilon: float, floor: float) -> float:
    """Appendix A's capped weight, the way round that its text says.

    Args:
        likelihood: max_h p(c | h), in [0, 1].
        entailed: whether some bleached claim entails the claim.
        epsilon: what every claim costs, in nats; a claim pays off if its w_Info is above it.
        floor: see :func:`information`.
    """
    return -epsilon if entailed else information(likelihood, floor) - epsilon
