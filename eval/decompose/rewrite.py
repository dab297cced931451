"""Rewrite claims to be self-contained (decontextualisation) with a prompted language model.

A subclaim such as "He moved there in 1931" can only be verified together with its text. SAFE
(2403.18802, section 3, "self-contained") and FactReasoner (2502.18573, section 3.3, the Reviser)
prompt a model to replace vague references and to change nothing else. If the answer cannot be
parsed, their released codes keep the claim; here it is ``failed``.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eval.models.chat import Writer
from eval.prompting.answer_forms import read_code_block
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from records import Claim, Document

_PROMPTS = Path(__file__).parent / "rewrite_prompts"
# Marks next to the text, or on the same line; marks on a separate line are headings.
_MARKED = re.compile(r"####((?:(?!####).)+?)(?<!\s)####|####((?:(?!####|\n).)+)####", re.DOTALL)

# "Revised STATEMENT: …" in the code block, or a remark that no revision is needed.
_LABEL = re.compile(
    r"^(?:(?:revised|standalone|decontextuali[sz]ed|final)\s+)?(?:statement|unit)\s*:\s*",
    re.IGNORECASE,
)
_NO_STATEMENT = re.compile(
    r"(?:n/?a|none|unchanged|no (?:changes?|revisions?)(?: (?:is|are))?(?: (?:needed|required"
    r"|necessary|made))?)\W*$",
    re.IGNORECASE,
)


class Rewrite:
    """The reviser stage.

    Args:
        writer: the language model.
        method: instructions: ``safe``; ``factreasoner`` (its released code, with reasoning);
            ``factreasoner_table29`` (its paper, appendix D: only the claim, between marks).
        prompt: a custom prompt file with the fields ``claim`` and ``text``; ``method`` then states
            where the answer has the revised claim: in its first code block, or between ``####``.
        temperature: sampling temperature; 0.1 as in SAFE.
        max_new_tokens: maximum tokens of an answer with its reasoning.
        retries: number of retries of an answer without a code block.
        seed: sampling seed.
    """

    def __init__(
        self,
        writer: Writer,
        method: Literal["safe", "factreasoner", "factreasoner_table29"] = "safe",
        prompt: Path | None = None,
        temperature: float = 0.1,
        max_new_tokens: int = 512,
        retries: int = 3,
        seed: int = 0,
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.prompt = Prompt(prompt or _PROMPTS / f"{method}.jinja")
        self.method = method
        marked = method == "factreasoner_table29"
        self.read = read_between_marks if marked else read_in_block

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Claim]]:
        prompts = [
            self.prompt.messages(claim=claim.text, text=document.text)
            for document, group in zip(documents, claims, strict=True)
            for claim in group
        ]
        readings = iter(self.asker.ask(prompts, self.read))
        return [[_revised(claim, *next(readings)[1:3]) for claim in group] for group in claims]


def read_in_block(text: str) -> str | None:
    """The statement in the first code block, without its label; ``None`` if there is none."""
    statement = _LABEL.sub("", read_code_block(text) or "")
    return None if not statement or _NO_STATEMENT.match(statement) else statement


def read_between_marks(text: str) -> str | None:
    """The first text between two ``####``, on one line, without the prompt's angle brackets."""
    match = _MARKED.search(text)
    statement = " ".join((match[1] or match[2]).split()).strip("#") if match else ""
    return re.sub(r"^<([^<>]+)>$", r"\1", statement.strip()) or None


def _revised(claim: Claim, text: str | None, failed: str | None) -> Claim:
    if text is None:
        return claim.model_copy(update={"failed": f"revision: {failed}"})
    if text == claim.text:
        return claim
    return claim.model_copy(update={"text": text, "original": claim.original or claim.text})
