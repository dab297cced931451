"""Grouping atomic facts by person with a language model (2402.05629, section 4.1 and appendix C).

The model repeats the facts and writes ``- ===`` between those of different people. The released
code (``coreference.py``) takes whatever comes back for the facts and loses the first of them; here
an answer counts where every given fact came back, and in one place.
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
# Bullets and numbers before a fact, also one behind the other.
_MARKS = re.compile(
    r"^(?:\s*(?:[-*•–—·‣▪]+|\(?\d{1,3}[.):]|fact\s*#?\d+\s*[.:)-])(?=\s|[\"“*]))+\s*", re.IGNORECASE
)
_BREAK = re.compile(r"={3,}")
# What some models write over the facts of each person.
_HEADING = re.compile(r"\W*(?:group|person|individual|biography|bio)\s*#?(?:\d{1,2}|[a-z])\b")
_FENCE = re.compile(r"```\w*\n(.*?)(?:```|\Z)", re.DOTALL)
# The next fact of an answer in one line.
_INLINE = re.compile(r"(?<=[.!?\"”'])\s+-\s+(?=\S)|(?<====)\s+(?:-\s+)?|\s+-\s+(?====)")
_SAME = str.maketrans("“”„‘’–—‐‑", '"""\'\'----')


class PromptedGroups:
    """Group the claims of each document by the person they are about (a ``Grouper``).

    The prompt shows the whole text and its claims, and the model repeats them with ``- ===``
    between people. An answer that leaves a claim out, changes or adds one, or gives one claim to
    two people cannot be read and is asked for again; after the last try, or where the model cannot
    answer (a prompt too long, a refusal), all claims of the document are without a group. A
    document of one claim is one group, and the model is not asked.

    Args:
        writer: the language model; one that counts a cut answer as failed (``when_cut: fail``).
        temperature: of the sampling; 0.7 in the released code, which asks ChatGPT.
        max_new_tokens: of an answer, which repeats all claims.
        retries: how often an answer that cannot be read is asked for again.
        seed: of the sampling.

    Attributes:
        counts: ``answers`` that the model was asked for, one a document, and those of them that
            failed, by reason; over all calls.
    """

    def __init__(
        self,
        writer: Writer,
        temperature: float = 0.7,
        max_new_tokens: int = 2048,
        retries: int = 3,
        seed: int = 0,
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.prompt = Prompt(_PROMPT)
        self.counts: Counter[str] = Counter()

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str | None]]:
        facts = [[" ".join(claim.text.split()) for claim in own] for own in claims]
        asked = [row for row, own in enumerate(facts) if len(own) > 1]
        prompts = [
            self.prompt.messages(paragraph=" ".join(documents[row].text.split()), facts=facts[row])
            for row in asked
        ]
        reads = [partial(read_groups, facts=facts[row]) for row in asked]
        labels: list[list[str | None]] = [["g0"] * len(own) for own in facts]
        for row, reading in zip(asked, self.asker.ask(prompts, reads), strict=True):
            self.counts["answers"] += 1
            if reading.value is None:
                self.counts[str(reading.failed)] += 1
            labels[row] = number_groups(reading.value or [None] * len(facts[row]))
        return labels


def read_groups(text: str, facts: Sequence[str]) -> list[int] | None:
    """The group of each fact, by its place in the answer; ``None`` where it cannot be read.

    Facts are compared without bullets, numbers, quotation marks, blanks, case and full stops at
    their end. A line of ``===`` parts groups, one like ``Person 2:`` does too, and so do the lists
    of a JSON answer; other words may stand before a group and after it. A fact that was given
    several times may come back as often, and is then told apart by its order; or all in one group.
    """
    known = {_plain(fact) for fact in facts}
    groups = _from_json(text, known) or _from_lines(text, known)
    if groups is None:
        return None
    places: dict[str, list[int]] = defaultdict(list)
    for number, group in enumerate(group for group in groups if group):
        for fact in group:
            places[fact].append(number)
    given = Counter(_plain(fact) for fact in facts)
    if places.keys() != given.keys():
        return None
    for fact, own in places.items():
        if len(set(own)) == 1:
            places[fact] = own[:1] * given[fact]
        elif len(own) != given[fact]:
            return None
    order = {fact: iter(own) for fact, own in places.items()}
    return [next(order[_plain(fact)]) for fact in facts]


def _from_lines(text: str, known: set[str]) -> list[list[str]] | None:
    body = text.strip()
    lines = (body if "\n" in body else _INLINE.sub("\n- ", body)).splitlines()
    groups: list[list[str]] = [[]]
    talk = False
    for line in lines:
        content = _plain(line)
        if content in known:
            if talk:
                return None
            groups[-1].append(content)
        elif _BREAK.search(line) or _HEADING.match(content):
            groups.append([])
            talk = False
        elif content:
            if _MARKS.match(line):  # a fact that nobody gave
                return None
            # Words around a group are harmless, words in it may part it.
            talk = talk or bool(groups[-1])
    return groups


def _from_json(text: str, known: set[str]) -> list[list[str]] | None:
    fence = _FENCE.search(text)
    try:
        found = json.loads(fence[1] if fence else text)
    except (ValueError, RecursionError):  # none, or one of absurd numbers or depth
        return None
    while isinstance(found, dict):
        values = list(found.values())
        found = values[0] if len(values) == 1 else values
    if not isinstance(found, list):
        return None
    if all(isinstance(one, str) for one in found):
        return _from_lines("\n".join(f"- {' '.join(one.split())}" for one in found), known)
    if all(isinstance(one, list) and all(isinstance(f, str) for f in one) for one in found):
        return [[_plain(fact) for fact in one] for one in found]
    return None


def _plain(line: str) -> str:
    text = unicodedata.normalize("NFKC", line).translate(_SAME)
    for _ in range(2):  # a number may stand in the quotation marks
        text = _MARKS.sub("", text).strip("\"'`*_ \t")
    return " ".join(text.rstrip(".,;\"'`*_ \t").split()).casefold()
