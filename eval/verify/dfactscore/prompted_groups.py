"""Grouping atomic facts by person with a language model (2402.05629, section 4.1 and appendix C).

The released code (``coreference.py``) accepts any answer and loses its first fact. Here an answer
must repeat every fact in exactly one group.
"""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from eval.verify.dfactscore.grouping import number_groups
from records import Claim, Document

_PROMPT = Path(__file__).parent / "prompts" / "groups.jinja"
# Bullets and numbers before a fact, also in sequence.
_MARKS = re.compile(
    r"^(?:\s*(?:[-*•–—·‣▪]+|\(?\d{1,3}[.):]|fact\s*#?\d+\s*[.:)-])(?=\s|[\"“*]))+\s*", re.IGNORECASE
)
_BREAK = re.compile(r"={3,}")
# Headings that some models write above each group.
_HEADING = re.compile(r"\W*(?:group|person|individual|biography|bio)\s*#?(?:\d{1,2}|[a-z])\b")
_FENCE = re.compile(r"```\w*\n(.*?)(?:```|\Z)", re.DOTALL)
# Start of the next fact in a one-line answer.
_INLINE = re.compile(r"(?<=[.!?\"”'])\s+-\s+(?=\S)|(?<====)\s+(?:-\s+)?|\s+-\s+(?====)")
_SAME = str.maketrans("“”„‘’–—‐‑", '"""\'\'----')


class PromptedGroups:
    """Group the claims of each document by person with a language model (a ``Grouper``).

    The prompt shows the text and its claims, and the model repeats the claims with ``- ===``
    between people. An answer is invalid if it omits, changes or adds a claim, or repeats it in two
    groups. Invalid answers are retried. If no answer is valid, or the model cannot answer (prompt
    too long, refusal), the document's claims have no group. A single claim is one group without a
    query.

    Args:
        writer: the language model, with ``when_cut: fail``.
        temperature: sampling temperature; 0.7 in the released code, for ChatGPT.
        max_new_tokens: maximum length of an answer, which repeats all claims, in tokens.
        retries: retries for an invalid answer.
        seed: sampling seed.
        prompt: a custom prompt file with the fields ``paragraph`` and ``facts``.

    Attributes:
        counts: number of ``answers`` (one per document), and of failures by reason, over all calls.
    """

    def __init__(
        self,
        writer: Writer,
        temperature: float = 0.7,
        max_new_tokens: int = 2048,
        retries: int = 3,
        seed: int = 0,
        prompt: Path | None = None,
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.prompt = Prompt(prompt or _PROMPT)
        self.counts: Counter[str] = Counter()

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        facts = [[" ".join(claim.text.split()) for claim in listed] for listed in claims]
        rows = [row for row, listed in enumerate(facts) if len(listed) > 1]
        prompts = [
            self.prompt.messages(paragraph=" ".join(documents[row].text.split()), facts=facts[row])
            for row in rows
        ]
        reads = [partial(read_groups, facts=facts[row]) for row in rows]
        labels: list[list[str | None]] = [["g0"] * len(listed) for listed in facts]
        for row, reading in zip(rows, self.asker.ask(prompts, reads), strict=True):
            self.counts["answers"] += 1
            if reading.value is None:
                self.counts[str(reading.failed)] += 1
            labels[row] = number_groups(reading.value or [None] * len(facts[row]))
        return labels


def read_groups(text: str, facts: Sequence[str]) -> list[int] | None:
    """Parse the group number of each fact; ``None`` if the answer is invalid.

    Facts are compared without bullets, numbers, quotation marks, blanks, case and final full stops.
    Lines of ``===``, headings such as ``Person 2:`` and the lists of a JSON answer separate groups.
    Other text may precede or follow a group. A fact that occurs several times must be repeated as
    often, in the same order, or within one group.
    """
    fact_set = {_normalize(fact) for fact in facts}
    groups = _parse_json(text, fact_set) or _parse_lines(text, fact_set)
    if groups is None:
        return None
    places: dict[str, list[int]] = defaultdict(list)
    for number, group in enumerate(group for group in groups if group):
        for fact in group:
            places[fact].append(number)
    counts = Counter(_normalize(fact) for fact in facts)
    if places.keys() != counts.keys():
        return None
    for fact, positions in places.items():
        if len(set(positions)) == 1:
            places[fact] = positions[:1] * counts[fact]
        elif len(positions) != counts[fact]:
            return None
    order = {fact: iter(positions) for fact, positions in places.items()}
    return [next(order[_normalize(fact)]) for fact in facts]


def _parse_lines(text: str, facts: set[str]) -> list[list[str]] | None:
    body = text.strip()
    lines = (body if "\n" in body else _INLINE.sub("\n- ", body)).splitlines()
    groups: list[list[str]] = [[]]
    after_text = False
    for line in lines:
        content = _normalize(line)
        if content in facts:
            if after_text:
                return None
            groups[-1].append(content)
        elif _BREAK.search(line) or _HEADING.match(content):
            groups.append([])
            after_text = False
        elif content:
            if _MARKS.match(line):  # an added fact
                return None
            # Text around a group is harmless, text inside it may separate groups.
            after_text = after_text or bool(groups[-1])
    return groups


def _parse_json(text: str, facts: set[str]) -> list[list[str]] | None:
    fence = _FENCE.search(text)
    try:
        value = json.loads(fence[1] if fence else text)
    except (ValueError, RecursionError):  # not JSON, or with absurd numbers or depth
        return None
    while isinstance(value, dict):
        values = list(value.values())
        value = values[0] if len(values) == 1 else values
    if not isinstance(value, list):
        return None
    if all(isinstance(entry, str) for entry in value):
        return _parse_lines("\n".join(f"- {' '.join(entry.split())}" for entry in value), facts)
    if all(isinstance(entry, list) and all(isinstance(f, str) for f in entry) for entry in value):
        return [[_normalize(fact) for fact in entry] for entry in value]
    return None


def _normalize(line: str) -> str:
    text = unicodedata.normalize("NFKC", line).translate(_SAME)
    for _ in range(2):  # a number may be inside quotation marks
        text = _MARKS.sub("", text).strip("\"'`*_ \t")
    return " ".join(text.rstrip(".,;\"'`*_ \t").split()).casefold()
