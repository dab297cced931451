"""SAFE, the search-augmented factuality evaluator (Wei et al. 2024, 2403.18802, section 3).

A claim has a prompt for its relevance, prompts for the next query, and a prompt for its rating.
Departures from the released code (long-form-factuality, eval/safe): a claim is ``failed`` if its
relevance answer cannot be parsed (released: relevant), if no query was searched, or if all searches
were empty (released: rated). The last label of an answer counts (released: the first brackets).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from jsonargparse.typing import PositiveInt

from components.encoding import fill_prompt
from eval.models.chat import Writer
from eval.prompting.answer_forms import read_code_block, read_label
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from eval.stages import Searcher
from eval.verify.claim_by_claim import NOTHING_FOUND, ClaimByClaim, ClaimToJudge
from records import Claim, Document, Passage, Verdict
from records.types import VerdictLabel

_PROMPTS = Path(__file__).parent / "prompts"
_RELEVANCE = {"foo": "relevant", "not foo": "irrelevant"}
_RATING: dict[str, VerdictLabel] = {
    "supported": "supported",
    "not supported": "not_supported",
    "unsupported": "not_supported",
}


@dataclass
class _Case:
    """The state of a claim; ``stopped`` is the reason why no further query is generated."""

    document: Document
    claim: Claim
    queries: list[str] = field(default_factory=list)
    stopped: str | None = None
    label: VerdictLabel | None = None
    reason: str | None = None
    extras: dict[str, object] = field(default_factory=dict)

    def settle(self, label: VerdictLabel | None, reason: str | None) -> None:
        self.label, self.reason = label or "failed", reason


class Safe(ClaimByClaim):
    """Judge each claim by model-generated searches: supported, not_supported, irrelevant.

    The prompt for the next query shows the results of the claim's previous searches. A repeated
    query is not searched again, and its results are shown once.

    Args:
        writer: the language model; GPT-3.5-turbo in the paper.
        searcher: finds passages for a query; Google in the paper.
        max_searches: queries per claim; 5 in the paper.
        k: passages per query; 3 in the paper.
        title_in_knowledge: prepend a passage's title to its text, e.g. for encyclopedia passages.
        temperature: sampling temperature; the released code uses 0.1 and 512 tokens.
        max_new_tokens: maximum length of an answer with its reasoning, in tokens.
        retries: retries for an answer that cannot be parsed.
        seed: sampling seed.
        relevance_prompt: a custom prompt file with ``question``, ``response`` and ``claim``.
        query_prompt: a custom prompt file with the fields ``claim`` and ``knowledge``.
        rating_prompt: a custom prompt file with the fields ``claim`` and ``knowledge``.
        instruction: the question that the texts answer, with ``{topic}``, for the relevance prompt.
    """

    assessor = "safe"
    reads_passages = False

    def __init__(
        self,
        writer: Writer,
        searcher: Searcher,
        max_searches: PositiveInt = 5,
        k: PositiveInt = 3,
        title_in_knowledge: bool = False,
        temperature: float = 0.1,
        max_new_tokens: int = 512,
        retries: int = 10,
        seed: int = 0,
        relevance_prompt: Path | None = None,
        query_prompt: Path | None = None,
        rating_prompt: Path | None = None,
        instruction: str = "{topic}",
    ):
        self.asker = Asker(writer, temperature, max_new_tokens, retries, seed)
        self.searcher = searcher
        self.instruction = instruction
        self.max_searches = max_searches
        self.k = k
        self.title_in_knowledge = title_in_knowledge
        self.relevance_prompt = Prompt(relevance_prompt or _PROMPTS / "safe_relevance.jinja")
        self.query_prompt = Prompt(query_prompt or _PROMPTS / "safe_query.jinja")
        self.rating_prompt = Prompt(rating_prompt or _PROMPTS / "safe_rating.jinja")

    def judge(self, items: Sequence[ClaimToJudge]) -> list[Verdict]:
        """Judge claims without the pipeline's passages.

        A verdict's ``evidence`` has the ids of the search results, ``steps`` the searches
        (``query``, ``result``, ``passages``), and ``relevance_response`` and ``response`` the
        model's answers.
        """
        cases = [_Case(item.document, item.claim) for item in items]
        self._judge_relevance(cases)
        cases_open = [case for case in cases if case.label is None]
        results = self._search(cases_open)
        self._rate(cases_open, results)
        return [self._verdict(case, results) for case in cases]

    def _judge_relevance(self, cases: Sequence[_Case]) -> None:
        prompts = [
            self.relevance_prompt.messages(
                question=fill_prompt(self.instruction, topic=case.document.topic),
                response=case.document.text,
                claim=case.claim.text,
            )
            for case in cases
        ]
        reads = [partial(read_label, labels=_RELEVANCE, repeated=case.claim.text) for case in cases]
        readings = self.asker.ask(prompts, reads)
        for case, reading in zip(cases, readings, strict=True):
            case.extras["relevance_response"] = reading.text
            if reading.failed:
                case.settle(None, f"relevance: {reading.failed}")
            elif reading.value == "irrelevant":
                case.settle("irrelevant", None)

    def _search(self, cases: Sequence[_Case]) -> dict[str, list[Passage] | None]:
        results: dict[str, list[Passage] | None] = {}
        for step in range(1, self.max_searches + 1):
            searching = [case for case in cases if case.stopped is None]
            prompts = [
                self.query_prompt.messages(
                    claim=case.claim.text, knowledge=self._knowledge(case, results)
                )
                for case in searching
            ]
            readings = self.asker.ask(prompts, read_code_block, step)
            for case, reading in zip(searching, readings, strict=True):
                if reading.value is None:
                    case.stopped = reading.failed
                else:
                    case.queries.append(reading.value)
            queries = {case.queries[-1] for case in searching if case.stopped is None}
            new = sorted(queries - results.keys())
            if new:
                results.update(zip(new, self.searcher.search(new, self.k), strict=True))
        return results

    def _rate(self, cases: Sequence[_Case], results: dict[str, list[Passage] | None]) -> None:
        rated = []
        for case in cases:
            case_results = [results[query] for query in case.queries]
            if not case_results:
                case.settle(None, f"query: {case.stopped}")
            elif all(result is None for result in case_results):
                case.settle(None, "search failed")
            elif not any(case_results):
                case.settle(None, NOTHING_FOUND)
            else:
                rated.append(case)
        prompts = [
            self.rating_prompt.messages(
                claim=case.claim.text, knowledge=self._knowledge(case, results)
            )
            for case in rated
        ]
        reads = [partial(read_label, labels=_RATING, repeated=case.claim.text) for case in rated]
        readings = self.asker.ask(prompts, reads, self.max_searches + 1)
        for case, reading in zip(rated, readings, strict=True):
            case.extras["response"] = reading.text
            case.settle(reading.value, reading.failed and f"rating: {reading.failed}")

    def _knowledge(self, case: _Case, results: dict[str, list[Passage] | None]) -> list[str]:
        case_results = [results[query] for query in dict.fromkeys(case.queries)]
        return [self._line(result) for result in case_results if result]

    def _line(self, passages: Sequence[Passage]) -> str:
        titles = [f"{p.title}: " if self.title_in_knowledge and p.title else "" for p in passages]
        return " ".join(title + p.text for title, p in zip(titles, passages, strict=True))

    def _verdict(self, case: _Case, results: dict[str, list[Passage] | None]) -> Verdict:
        steps = []
        for query in case.queries:
            result = results[query]
            steps.append(
                {
                    "query": query,
                    "result": None if result is None else self._line(result),
                    "passages": [passage.id for passage in result or []],
                }
            )
        evidence = list(dict.fromkeys(name for step in steps for name in step["passages"]))
        return self.verdict(
            case.claim,
            case.label,
            evidence=evidence or None,
            reason=case.reason,
            steps=steps,
            **case.extras,
        )
