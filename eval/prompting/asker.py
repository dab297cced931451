"""Asking a language model until its answer can be read."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from eval.models.chat import Message, Writer
from records import UserError

T = TypeVar("T")
# Gives the value of an answer's text, or ``None`` where it cannot be read.
Read = Callable[[str], T | None]


class Reading(NamedTuple, Generic[T]):
    """What was read out of a model's last answer to a prompt.

    Attributes:
        text: the answer.
        value: what it says; ``None`` where nothing could be read.
        failed: why there is no value.
    """

    text: str
    value: T | None
    failed: str | None


class Asker:
    """Asks a language model, and again with another seed where its answer cannot be read.

    An answer that the model failed to give (cut, filtered, too long a prompt) is not asked for
    again: the backend has tried.

    Args:
        writer: the language model; one that counts a cut answer as failed (``when_cut: fail``)
            keeps a label of the reasoning from being taken for the answer.
        temperature: of the sampling, with the whole distribution (top_p 1).
        max_new_tokens: of an answer, with its reasoning.
        retries: how often a prompt whose answer cannot be read is asked again.
        seed: of the sampling.
    """

    def __init__(
        self, writer: Writer, temperature: float, max_new_tokens: int, retries: int, seed: int
    ):
        if temperature < 0 or max_new_tokens < 1 or retries < 0:
            raise UserError("temperature, retries: at least 0; max_new_tokens: at least 1")
        if retries and not temperature:
            raise UserError(
                "retries: without temperature every try gives the same answer; set retries to 0 "
                "or temperature above 0"
            )
        self.writer = writer
        self.temperature = temperature
        self.max_new_tokens = max_new_tokens
        self.retries = retries
        self.seed = seed

    def ask(
        self,
        prompts: Sequence[list[Message]],
        read: Read[T] | Sequence[Read[T]],
        step: int = 0,
    ) -> list[Reading[T]]:
        """One reading a prompt; each try is one call of the model over all that are open.

        Args:
            prompts: to be answered.
            read: gives the value of an answer's text, or ``None``; one for all prompts, or one a
                prompt where its answer must fit it.
            step: number of the question where a claim is asked several; draws its own seeds.
        """
        reads = read if isinstance(read, Sequence) else [read] * len(prompts)
        readings: dict[int, Reading[T]] = {}
        todo = list(range(len(prompts)))
        for number in range(self.retries + 1):
            if not todo:
                break
            answers = self.writer.answer(
                [prompts[place] for place in todo],
                temperature=self.temperature,
                top_p=1.0,
                max_new_tokens=self.max_new_tokens,
                seed=self.seed + step * (self.retries + 1) + number,
            )
            for place, (answer,) in zip(todo, answers, strict=True):
                value = None if answer.failed else reads[place](answer.text)
                failed = answer.failed or (None if value is not None else "no answer in the text")
                readings[place] = Reading(answer.text, value, failed)
            todo = [p for p in todo if readings[p].failed == "no answer in the text"]
        return [readings[place] for place in range(len(prompts))]
