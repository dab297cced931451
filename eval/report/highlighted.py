"""Claims with kept words underlined and dropped words struck through."""

from collections.abc import Sequence

from components.words import split_words

# A run of the claim's characters, and whether it is kept; None for blanks between runs.
Run = tuple[str, bool | None]


def highlighted(claim: str, keep: Sequence[bool]) -> list[Run]:
    """Split a claim into runs of kept and dropped words, including whitespace.

    Args:
        claim: the claim.
        keep: one bool per word of ``split_words(claim)``.

    Returns:
        Runs whose texts joined are the claim.
    """
    runs: list[Run] = []
    end, last = 0, None
    for word, kept in zip(split_words(claim), keep, strict=True):
        between = claim[end : word.start]
        if runs and kept == last:
            runs[-1] = (runs[-1][0] + between + word.text, kept)
        else:
            runs += [(between, None)] if between else []
            runs.append((word.text, kept))
        end, last = word.end, kept
    return runs + ([(claim[end:], None)] if claim[end:] else [])


def of_verdict(claim: str, kept: object) -> list[Run]:
    """Convert a verdict's ``kept``, pairs of (word, kept), to runs; empty if it is invalid."""
    if not isinstance(kept, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in kept
    ):
        return []
    if [word.text for word in split_words(claim)] == [word for word, _ in kept]:
        return highlighted(claim, [bool(keep) for _, keep in kept])
    runs = [run for word, keep in kept for run in ((word, bool(keep)), (" ", None))]
    return runs[:-1]
