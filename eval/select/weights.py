"""Core's informativeness weights and bleached claims (2407.03572).

A bleached claim holds for any topic of a domain (Table 8; the wording of ``bleached/`` is ours). A
claim is informative if no bleached claim makes it likely:

    w_Info(c) = −ln max_h p(c | h)        (natural logarithm; h runs over the bleached claims)

Appendix A caps the weight of claims that a bleached claim entails. As printed the cap is inverted:
an entailed claim would keep its weight and an informative one would get 0. We follow the stated
intent:

    w(c) = −ε                 if some bleached claim entails c
    w(c) = w_Info(c) − ε      otherwise
"""

import json
import math
from functools import lru_cache
from pathlib import Path

from cli.shipped import find_shipped
from components.encoding import fill_prompt
from components.words import name_key
from records import Document, UserError

BLEACHED = Path(__file__).parent / "bleached"
TOPIC = "{topic}"
# texts or their file; domain to file; or a file with topics and their texts (see Bleached)
BleachedClaims = list[str] | dict[str, str] | str


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """Return the key of a text by :func:`name_key`, without the final full stop."""
    return name_key(text).rstrip(" .")


def load_bleached(bleached: list[str] | str | Path) -> list[str]:
    """Read and validate bleached claims with the placeholder ``{topic}``.

    Args:
        bleached: the claims, or a file with one claim per line and comments after ``#``.
    """
    if isinstance(bleached, list):
        source, claims = "bleached", [claim.strip() for claim in bleached]
    else:
        source = str(bleached)
        lines = _read_text(bleached).splitlines()
        claims = [claim for line in lines if (claim := line.partition("#")[0].strip())]
    if not claims:
        raise UserError(f"{source}: 0 bleached claims; expected at least 1")
    for claim in claims:
        if TOPIC not in claim:
            raise UserError(f"{source}: bleached claim {claim!r} has no {TOPIC}")
    return claims


def load_by_topic(path: str | Path) -> dict[str, list[str]]:
    """Read a JSON object that maps topics to lists of bleached claims, as in the released code.

    ``{topic}`` is optional in these claims.
    """
    try:
        by_topic = json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, deep nesting
        raise UserError(f"{path}: not JSON: {error}") from None
    if not isinstance(by_topic, dict) or not by_topic:
        raise UserError(f"{path}: expected an object from topics to lists of claims")
    for topic, claims in by_topic.items():
        texts = isinstance(claims, list) and all(isinstance(c, str) and c.strip() for c in claims)
        if not texts or not claims:
            raise UserError(f"{path}: {topic!r}: expected a non-empty list of texts")
    return by_topic


class Bleached:
    """The bleached claims of documents.

    Args:
        bleached: texts with ``{topic}``, or a file with one text per line; a mapping from domain
            (field ``domain`` of documents) to such files; or a ``.json`` file that maps topics to
            lists of texts.
    """

    def __init__(self, bleached: BleachedClaims):
        self.bleached = bleached
        self._by_domain = self._by_topic = None
        self._everywhere: list[str] = []
        if isinstance(bleached, dict):
            self._by_domain = {domain: load_bleached(path) for domain, path in bleached.items()}
        elif isinstance(bleached, str) and bleached.endswith(".json"):
            by_topic = load_by_topic(bleached)
            self._by_topic = {name_key(topic): claims for topic, claims in by_topic.items()}
        else:
            self._everywhere = load_bleached(bleached)

    def claims_for(self, document: Document) -> list[str]:
        """The bleached claims for a document's topic."""
        claims: list[str] | None = self._everywhere
        if self._by_domain is not None:
            domain = (document.model_extra or {}).get("domain")
            claims = self._by_domain.get(str(domain))
            domains = ", ".join(self._by_domain)
            missing = f"document {document.id!r}: domain: expected one of {domains}, got {domain!r}"
        elif self._by_topic is not None:
            claims = self._by_topic.get(name_key(document.topic))
            missing = (
                f"document {document.id!r}: bleached has no claims for topic {document.topic!r}"
            )
        if not claims:
            raise UserError(missing)
        return fill_topic(claims, document.topic)


def _read_text(path: str | Path) -> str:
    path = find_shipped(str(path))
    if not Path(path).is_file():
        raise UserError(f"bleached: {path}: no such file; expected one claim per line")
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"bleached: {path}: not UTF-8; save it as UTF-8") from None


def fill_topic(bleached: list[str], topic: str) -> list[str]:
    """Insert a topic into bleached claims."""
    return [fill_prompt(claim, topic=topic) for claim in bleached]


def information(likelihood: float, floor: float) -> float:
    """w_Info in nats of max_h p(c | h), which is at least ``floor`` so that ln is finite."""
    # max() with 0: −ln 1 is −0.0, and rounded float32 probabilities may exceed 1
    return max(0.0, -math.log(max(likelihood, floor)))


def capped(likelihood: float, entailed: bool, epsilon: float, floor: float) -> float:
    """Appendix A's capped weight in nats; ``entailed``: whether a bleached claim entails it."""
    return -epsilon if entailed else information(likelihood, floor) - epsilon
