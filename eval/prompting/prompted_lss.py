"""Longest supported subsequences by a prompted language model (2308.12157, sections 5.2 and A.6).

The baseline of the paper's Tables 2 and 6, with the interface of the tagger. A language model may
write text that is not a subsequence of the claim: ``counts`` counts such answers, and
``non_subsequence`` decides their treatment.
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
# Text after the answer: the next example, or reasons.
_AFTER_ANSWER = re.compile(
    r"\n[^\S\n]*\**(?:reference|claim|explanation|reason(?:ing)?|rationale|note)\**\s*:",
    re.IGNORECASE,
)
_ECHO = re.compile(r"\s*\**(?:reference|claim)\**\s*:", re.IGNORECASE)
_FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
_QUOTES = {'"': '"', "“": "”", "«": "»", "`": "`", "**": "**"}
# Possibly followed by a remark, as in "NONE (the reference is about something else)".
_NONE = re.compile(r"none(?:\W*$|\s*[(:;,.–—-])", re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:i['’]m|i am) (?:sorry|unable)\b|i (?:cannot|can['’]t) (?:help|assist|provide|determine)\b"
    r"|as an ai\b|please provide\b",
    re.IGNORECASE,
)


class PromptedLss:
    """Longest supported subsequences, or LSS*, written by a language model.

    The prompt contains the whole reference; :class:`eval.models.lss.InWindows` splits references
    that are too long for the model.

    Args:
        writer: the language model; set ``when_cut: fail`` so that a truncated LSS is not taken for
            a complete one.
        star: request LSS*, which may change and add words.
        non_subsequence: treatment of an answer that is not a subsequence of the claim's words.
            ``as_written`` keeps its text, as in the paper; ``project`` keeps the words of a longest
            common subsequence with the claim, and fails an answer that has mostly other words (an
            excuse, a remark); ``fail`` fails it. An LSS* is always kept as written.
        prompt: a custom prompt file with the fields reference, claim and star; the prompt of A.6 is
            ``eval/prompting/prompted_lss_published.jinja``.
        temperature: sampling temperature; 0 for greedy decoding.
        max_new_tokens: maximum number of tokens of an answer.
        seed: sampling seed.

    Attributes:
        counts: requested ``answers``, ``failed`` ones, and ``not_subsequence`` ones, over all
            calls; repeated pairs count again.
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
        """Return the supported subsequences of (claim, reference) pairs; ``None`` if it failed.

        As in the tagger, but ``keep`` is ``None`` for text that is not a subsequence of the claim.
        """
        prompts = [
            self.prompt.messages(reference=reference, claim=claim, star=self.star)
            for claim, reference in pairs
        ]
        answers = self.asker.ask(prompts, [partial(read_answer, claim=claim) for claim, _ in pairs])
        return [self._read(pair[0], answer) for pair, answer in zip(pairs, answers, strict=True)]

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
    """Read the LSS out of a model's answer: the paragraph after the label, or the first one.

    A first line or paragraph that ends with a colon is skipped as an introduction. Text after the
    answer (a next example, reasons) is ignored, as are quotation marks. ``NONE`` is the empty text,
    unless the claim begins with that word. A refusal, or an answer without any word, is ``None``.
    """
    fence = _FENCE.search(text)
    text = (fence[1] if fence else text).strip()
    # If the model repeats the question, the answer comes after it.
    after = None if _ECHO.match(text) else _AFTER_ANSWER.search(text)
    label = _LABEL.search(text, 0, after.start() if after else len(text))
    body = text[label.end() :] if label else text
    further = _AFTER_ANSWER.search(body)
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
    start = claim.strip(".* ")
    is_none = bare == "NONE" != start or (
        _NONE.match(bare) and not start.upper().startswith("NONE")
    )
    return "" if is_none else body
