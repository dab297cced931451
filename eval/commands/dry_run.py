"""How many calls and tokens a run would take, without asking any language model or server.

Each stage runs with language models that only count, and with stand-ins for what would have come
before it: subclaims for the sentences of a text, passages for its claims. The figures are therefore
estimates, and those of methods that ask in several steps an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from components.sentences import split_sentences, without_citations
from eval.models.chat import Answer, CachedWriter, Message, Sampling
from eval.pipeline import Pipeline
from eval.retrieve.given import Given as GivenPassages
from eval.retrieve.knowledge import WORDS
from eval.run.inside import replaced, writers
from records import Claim, Document, Passage

# Human annotators found 3.9 facts in a sentence of FActScore's labelled biographies (n = 2,748).
CLAIMS_A_SENTENCE = 4
# Of passages where the retriever does not say.
PASSAGES_A_CLAIM = 5
WORDS_A_PASSAGE = 100
# English text has about so many characters a token in the vocabularies of today's models.
CHARACTERS_A_TOKEN = 4

_NOTHING = Answer("", "dry run")


@dataclass
class Count:
    """What a stage would ask one model.

    Attributes:
        calls: texts to be written that no cache holds.
        prompt_tokens: about so many.
        completion_tokens: at most.
        cost: of these tokens; 0 where the model has no prices.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


class Counting:
    """A language model that counts what it is asked and no cache holds; it answers nothing.

    Args:
        writer: the model that would be asked.
    """

    def __init__(self, writer: CachedWriter):
        self.writer = writer
        self.identity = writer.identity
        self.count = Count()

    def answer(
        self,
        prompts: Sequence[Sequence[Message]],
        *,
        n: int = 1,
        temperature: float = 1.0,
        top_p: float = 0.95,
        max_new_tokens: int = 256,
        seed: int = 0,
        logprobs: bool = False,
    ) -> list[list[Answer]]:
        """No answers; each fails."""
        sampling = Sampling(temperature, top_p, max_new_tokens, logprobs)
        asked = self.writer.unanswered(prompts, n, sampling, seed)
        self.count.calls += len(asked)
        self.count.completion_tokens += len(asked) * max_new_tokens
        for messages in asked:
            characters = sum(len(message["content"]) for message in messages)
            self.count.prompt_tokens += characters // CHARACTERS_A_TOKEN + 1
        return [[_NOTHING] * n for _ in prompts]


def dry_run(pipeline: Pipeline, documents: Sequence[Document]) -> str:
    """A table of the calls and tokens that scoring ``documents`` would take."""
    rows: list[tuple[str, str, Count]] = []

    def counted(stage: Any, name: str, run: Callable[[Any], Any]) -> Any:
        models: list[Counting] = []
        found = run(replaced(stage, CachedWriter, lambda w: _counting(w, models)))
        most = getattr(stage, "most_calls", 1)
        rows.extend((name, model_name(m.identity), _priced(m, most)) for m in models)
        return found

    claims = counted(pipeline.decompose, "decompose", lambda stage: stage(documents))
    claims = [_stand_ins(own) for own in claims]
    # Stages without a language model cost no call, and their own models need not run.
    if writers(pipeline.revise):
        counted(pipeline.revise, "revise", lambda stage: stage(documents, claims))
    relevance = getattr(pipeline.select, "relevance", None)
    if writers(relevance):
        sentences = [split_sentences(without_citations(d.text)) for d in documents]
        counted(relevance, "relevance", lambda stage: stage(documents, sentences))
    claims, passages = _evidence(pipeline, documents, claims)
    for verifier in pipeline.verify:
        if writers(verifier):
            name = type(verifier).__name__
            counted(verifier, name, lambda stage: stage(documents, claims, passages))
    return _table(rows, sum(map(len, claims)), len(documents))


def _counting(writer: CachedWriter, models: list[Counting]) -> Counting:
    models.append(Counting(writer))
    return models[-1]


def _priced(model: Counting, times: int) -> Count:
    """What a model would be asked, so many times over, with what that costs."""
    count = model.count
    tokens = (count.prompt_tokens * times, count.completion_tokens * times)
    return Count(count.calls * times, *tokens, model.writer.cost(*tokens) or 0.0)


def _stand_ins(claims: Sequence[Claim]) -> list[Claim]:
    """For a sentence that nobody decomposed as many texts as it is likely to have claims."""
    found = []
    for claim in claims:
        if claim.failed is None:
            found.append(claim)
            continue
        words = claim.text.split()
        for number in range(CLAIMS_A_SENTENCE):
            text = f"{' '.join(words[number:] + words[:number])} {number}"
            update = {"id": f"{claim.id}.{number}", "text": text, "failed": None}
            found.append(claim.model_copy(update=update))
    return found


def _evidence(
    pipeline: Pipeline, documents: Sequence[Document], claims: list[list[Claim]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    """The documents' own passages, or stand-ins where a retriever would find some."""
    if isinstance(pipeline.retrieve, GivenPassages):
        return pipeline.retrieve(documents, claims)
    words = getattr(pipeline.retrieve, "words", WORDS_A_PASSAGE) or WORDS
    text = " ".join(["word"] * words)
    names = [f"p{n}" for n in range(getattr(pipeline.retrieve, "k", PASSAGES_A_CLAIM))]
    own = [Passage(id=name, title="Title", text=text) for name in names]
    given = [[c.model_copy(update={"contexts": names}) for c in row] for row in claims]
    return given, [own for _ in documents]


def model_name(identity: dict[str, Any]) -> str:
    """What a language model's identity calls it."""
    model = identity.get("model", "")
    return str(model.get("id", model) if isinstance(model, dict) else model)


def _table(rows: list[tuple[str, str, Count]], claims: int, documents: int) -> str:
    total = Count(*(sum(vars(c)[key] for *_, c in rows) for key in vars(Count())))
    head = f"{'stage':14} {'model':36} {'calls':>10} {'prompt tokens':>15} {'new tokens':>12}"
    lines = [
        f"{stage:14} {model[-36:]:36} {c.calls:10,} {c.prompt_tokens:15,} {c.completion_tokens:12,}"
        + (f" {c.cost:10,.2f}" if total.cost else "")
        for stage, model, c in [*rows, ("all", "", total)]
    ]
    return "\n".join(
        [
            head + (f" {'cost':>10}" if total.cost else ""),
            *lines,
            f"{documents} documents, about {claims} claims ({CLAIMS_A_SENTENCE} a sentence where a "
            "model decomposes). Calls that a cache answers are left out; prompt tokens are "
            f"characters / {CHARACTERS_A_TOKEN}, new tokens the most there can be, and methods of "
            "several steps count with all steps.",
        ]
    )
