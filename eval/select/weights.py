"""What a claim is worth: Core's informativeness weights and its bleached claims (2407.03572).

A bleached claim is one that holds for any topic of a domain (Table 8's idea; the wording of ours
is our own). A claim is informative as far as it is not already likely given one of them:

    w_Info(c) = −ln max_h p(c | h)        (natural logarithm; h runs over the bleached claims)

Appendix A caps the weight so that what a bleached claim entails is worth nothing. As printed the
cap is inverted: an entailed claim would keep its weight and an informative one would get 0. We
follow the stated intent:

    w(c) = −ε                 if some bleached claim entails c
    w(c) = w_Info(c) − ε      otherwise
"""

from __future__ import annotations

import math
import unicodedata
from functools import lru_cache
from pathlib import Path

from components.encoding import fill_prompt
from records import UserError

BLEACHED = Path(__file__).parent / "bleached"
MAX_BLEACHED = 12
TOPIC = "{topic}"


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """A text up to compatibility forms, case, spacing and the final full stop."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .")


def load_bleached(bleached: list[str] | str | Path) -> list[str]:
    """Read bleached claims and check them.

    Args:
        bleached: the claims themselves, or a file with one a line and comments after ``#``; each
            has ``{topic}`` where the topic goes.

    Raises:
        UserError: no such file, no claim, more than ``MAX_BLEACHED``, or one without ``{topic}``.
    """
    if isinstance(bleached, list):
        where, claims = "bleached", [claim.strip() for claim in bleached]
    else:
        path = Path(bleached)
        where = str(bleached)
        if not path.is_file():
            raise UserError(f"bleached: {where}: no such file; give a file with one claim a line")
        lines = path.read_text(encoding="utf-8").splitlines()
        claims = [claim for line in lines if (claim := line.partition("#")[0].strip())]
    if not 1 <= len(claims) <= MAX_BLEACHED:
        raise UserError(f"{where}: {len(claims)} bleached claims; give 1 to {MAX_BLEACHED}")
    for claim in claims:
        if TOPIC not in claim:
            raise UserError(f"{where}: bleached claim {claim!r} has no {TOPIC}; put it in")
    return claims


def about(bleached: list[str], topic: str) -> list[str]:
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
