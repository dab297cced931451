"""Longest supported subsequences by prompting a language model (2308.12157, sections 5.2 and A.6).

The baseline of the paper's Tables 2 and 6, and an engine like the tagger. A language model may
write what is no subsequence of the claim: ``counts`` says how often, and ``others`` what becomes of
such an answer.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from components.encoding import Pair
from components.words import align, join_words, project, split_words
from eval.models.chat import Writer
from eval.models.lss import Subsequence
from eval.prompting.asker import Asker, Reading
from eval.prompting.prompts import Prompt

_PROMPT = Path(__file__).with_suffix(".jinja")
_LABEL = re.compile(
    r"^(?:[^\S\n]|#)*(?:\*\*)?(?:output|answer)(?:\*\*)?\s*(?::(?:\*\*)?|$)",
    re.IGNORECASE | re.MULTILINE,
)
# What a model writes behind its answer: the next example, its reasons.
_BEHIND = re.compile(
    r"\n[^\S\n]*\**(?:reference|claim|explanation|reason(?:ing)?|rationale|note)\**\s*:",
    re.IGNORECASE,
)
_ECHO = re.compile(r"\s*\**(?:reference|claim)\**\s*:", re.IGNORECASE)
_FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
_QUOTES = {'"': '"', "“": "”", "«": "»", "`": "`", "**": "**"}
# With a remark behind it, as "NONE (the reference is about something else)".
_NONE = re.compile(r"none(?:\W*$|\s*[(:;,.–—-])", re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:i['’]m|i am) (?:sorry|unable)\b|i (?:cannot|can['’]t) (?:help|assist|provide|determine)\b"
    r"|as an ai\b|please provide\b",
    re.IGNORECASE,
)


class PromptedLss:
    """Longest supported subsequences, or LSS*, written by a language model.

    The whole reference is in the prompt; :class:`eval.models.lss.InWindows` asks about one that is
    too long for the model part by part.

    Args:
        writer: the language model; one that counts a cut answer as failed (``when_cut: fail``)
            keeps half an LSS from being taken for a whole one.
        star: ask for LSS*, which may change and add words.
        non_subsequence: what becomes of an answer that is no subsequence of the claim's words.
            ``as_written`` keeps its text, as the paper does; ``project`` keeps the words of a
            longest common subsequence with the claim, and takes a text that has mostly other words
            (an excuse, a remark) for no answer; ``fail`` gives no answer. An LSS* is always kept as
            written.
        prompt: a prompt file of your own with the fields reference, claim and star; that of A.6 is
            ``eval/prompting/prompted_lss_published.jinja``.
        temperature: of the sampling; 0 takes the likeliest answer.
        max_new_tokens: of an answer.
        seed: of the sampling.

    Attributes:
        counts: ``answers`` that the model was asked for, those of them that ``failed``, and those
            that are ``not_subsequence``; over all calls, an answer to a repeated pair counts again.
    """

    def __init__(
        self,
        writer: Writer,
        star: bool = False,
        non_subsequence: Literal["as_written", "project", "fail"] = "project",
        prompt: str | None = None,
        temperature: float = 0.0,
        max_new_tokens: int = 256,
        seed: int = 0,
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries=0, seed=seed)
        self.star = star
        self.non_subsequence = non_subsequence
        self.prompt = Prompt(prompt or _PROMPT)
        self.counts: Counter[str] = Counter(answers=0, failed=0, not_subsequence=0)

    def subsequences(self, pairs: Sequence[Pair]) -> list[Subsequence | None]:
        """What the references support of the claims; ``None`` where there is no answer.

        Args:
            pairs: (claim, reference).

        Returns:
            As the tagger does. ``keep`` is ``None`` for a text that is no subsequence of the claim.
        """
        asked = [
            self.prompt.messages(reference=reference, claim=claim, star=self.star)
            for claim, reference in pairs
        ]
        answers = self.asker.ask(asked, [partial(read_answer, claim=claim) for claim, _ in pairs])
        return [self._read(claim, own) for (claim, _), own in zip(pairs, answers, strict=True)]

    def _read(self, claim: str, answer: Reading[str]) -> Subsequence | None:
        self.counts["answers"] += 1
        if answer.failed is not None:
            self.counts["failed"] += 1
            return None
        text, words = answer.value, split_words(claim)
        keep = align(text, words, strict=self.star)
        if keep is None:
            self.counts["not_subsequence"] += 1
            if self.star or self.non_subsequence == "as_written":
                return Subsequence(None, text)
            if self.non_subsequence == "fail":
                return None
            keep = project(text, words)
            if 2 * sum(keep) < len(split_words(text)):
                return None
        return Subsequence(keep, text if self.star else join_words(claim, words, keep))


def read_answer(text: str, claim: str) -> str | None:
    """The LSS in a model's answer: the paragraph after the label, or the first, without its marks.

    A first line or paragraph that ends with a colon only announces it, and what stands behind it (a
    next example of the model's own, reasons) does not belong to it. ``NONE`` is the empty text,
    unless the claim itself begins with that word; a refusal, or an answer without any word, is
    ``None``.
    """
    fence = _FENCE.search(text)
    text = (fence[1] if fence else text).strip()
    # Where the model repeats the question, its answer stands behind that.
    behind = None if _ECHO.match(text) else _BEHIND.search(text)
    label = _LABEL.search(text, 0, behind.start() if behind else len(text))
    body = text[label.end() :] if label else text
    further = _BEHIND.search(body)
    paragraphs = re.split(r"\n\s*\n", (body[: further.start()] if further else body).strip())
    if not label and len(paragraphs) > 1 and paragraphs[0].endswith(":"):
        del paragraphs[0]
    first, _, rest = paragraphs[0].partition("\n")
    body = " ".join((rest if rest and first.rstrip(" *").endswith(":") else paragraphs[0]).split())
    for mark, end in _QUOTES.items():
        quoted = len(body) > 2 * len(mark) and body.startswith(mark) and body.endswith(end)
        if quoted and not claim.strip().startswith(mark):
            body = body.removeprefix(mark).removesuffix(end).strip()
    bare = body.strip(".* ")
    if not any(map(str.isalnum, bare)):
        return None
    if _REFUSAL.match(bare) and not _REFUSAL.match(claim):
        return None
    own = claim.strip(".* ")
    nothing = bare == "NONE" != own or (_NONE.match(bare) and not own.upper().startswith("NONE"))
    return "" if nothing else body
