"""Claims to a text: one after the other, or merged by a language model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from data_builders.written.adversarial import PROMPTS, paragraph
from eval.models.chat import Writer
from eval.prompting.prompts import Prompt
from records import Document
from records.abstention import responds

# A merged text holds a claim whose words one of its sentences, or all together, have to this share.
HELD = 0.6

_WORD = re.compile(r"\w+")
_EMPTY = frozenset(
    """a an and are as at be been by for from had has have he her him his in is it its of on or she
    that the their they this to was were with""".split()  # noqa: SIM905 (a list is longer)
)


def as_sentence(text: str) -> str:
    """A claim with an end."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", '."', ".”")) else f"{text}."


def merge(
    writer: Writer,
    claims: Sequence[tuple[str, Sequence[str]]],
    sampling: Mapping[str, object],
) -> list[dict[str, str | None]]:
    """Each topic's claims as one paragraph of a language model.

    Returns:
        ``text`` and ``failed``: a reason where the model gave no such text, or where it lost a
        claim.
    """
    prompt = Prompt(PROMPTS / "merge.jinja")
    prompts = [prompt.messages(topic=topic, claims=texts) for topic, texts in claims]
    found = []
    for (topic, texts), (answer,) in zip(claims, writer.answer(prompts, **sampling), strict=True):
        text, failed = paragraph(answer.text), answer.failed
        if failed is None and not responds(Document(id="x", topic=topic, text=text)):
            failed = "refused in words"
        if failed is None and not all(_held(claim, text) for claim in texts):
            failed = "it lost a claim"
        found.append({"text": text, "failed": failed})
    return found


def place_claims(claims: Sequence[str], sentences: Sequence[str]) -> list[int]:
    """For each claim the sentence that has most of its words; of equals the first."""
    told = [_content(sentence) for sentence in sentences]
    return [
        max(range(len(told)), key=lambda place: (len(_content(claim) & told[place]), -place))
        for claim in claims
    ]


def _held(claim: str, text: str) -> bool:
    words = _content(claim)
    return not words or len(words & _content(text)) >= HELD * len(words)


def _content(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold())) - _EMPTY
