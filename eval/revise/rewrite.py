"""Rewriting a claim so that it stands alone (decontextualisation), by a prompted language model.

A subclaim such as "He moved there in 1931" cannot be verified, nor searched for, without the text
that it came from. SAFE (2403.18802, section 3, "self-contained") and FactReasoner (2502.18573,
section 3.3, the Reviser) both ask a model to replace vague references and to change nothing else.
Their released codes keep the claim as it was where the answer cannot be read; here it is
``failed``, because nobody knows whether it can be understood.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.labels_in_answers import read_code_block
from eval.prompting.prompts import Prompt
from records import Claim, Document

_PROMPTS = Path(__file__).parent / "prompts"
# Marks stand at the text itself, or on its line; those before a line of their own are headings.
_MARKED = re.compile(r"####((?:(?!####).)+?)(?<!\s)####|####((?:(?!####|\n).)+)####", re.DOTALL)

# "Revised STATEMENT: …" in the code block, or that there is nothing to revise.
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
        method: whose instructions: ``safe``; ``factreasoner``, those of its released code, which
            asks for reasons; ``factreasoner_table29``, those of its paper (appendix D), which
            wants the claim alone between marks.
        prompt: a prompt file of your own in their place, with the fields ``claim`` and ``text``;
            the revised claim is what stands in the answer's first code block.
        temperature: of the sampling; 0.1 as in SAFE.
        max_new_tokens: of an answer with its reasoning.
        retries: how often an answer without a code block is asked for again.
        seed: of the sampling.
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
        marked = prompt is None and method == "factreasoner_table29"
        self.read = read_between_marks if marked else read_in_block

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Claim]]:
        prompts = [
            self.prompt.messages(claim=claim.text, text=document.text)
            for document, own in zip(documents, claims, strict=True)
            for claim in own
        ]
        readings = iter(self.asker.ask(prompts, self.read))
        return [[_revised(claim, *next(readings)[1:]) for claim in own] for own in claims]


def read_in_block(text: str) -> str | None:
    """The statement in the first code block, without its label; ``None`` where there is none."""
    found = _LABEL.sub("", read_code_block(text) or "")
    return None if not found or _NO_STATEMENT.match(found) else found


def read_between_marks(text: str) -> str | None:
    """The first text between two ``####``, on one line; ``None`` where there is none.

    The angle brackets in which the prompt shows its place do not belong to it.
    """
    found = _MARKED.search(text)
    marked = " ".join((found[1] or found[2]).split()).strip("#") if found else ""
    return re.sub(r"^<([^<>]+)>$", r"\1", marked.strip()) or None


def _revised(claim: Claim, text: str | None, failed: str | None) -> Claim:
    if text is None:
        return claim.model_copy(update={"failed": f"revision: {failed}"})
    if text == claim.text:
        return claim
    return claim.model_copy(update={"text": text, "original": claim.original or claim.text})
