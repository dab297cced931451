"""Querying a language model, with retries if its answer cannot be parsed."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from eval.models.chat import Message, Writer
from records import UserError

T = TypeVar("T")
# Parses an answer's text; returns ``None`` if that fails.
Read = Callable[[str], T | None]


class Reading(NamedTuple, Generic[T]):
    """A model's last answer to a prompt, parsed."""

    text: str
    value: T | None
    failed: str | None  # why there is no value
    cut: bool = False  # the text is a part of what the model would have written


class Asker:
    """Queries a language model, and retries with another seed if the answer cannot be parsed.

    Answers that the backend marks as failed (cut, filtered, too long a prompt) are not retried,
    since the backend retries them itself.

    Args:
        writer: the language model; set ``when_cut: fail`` so that a label in truncated reasoning is
            not taken for the answer.
        temperature: sampling temperature, with top_p 1.
        max_new_tokens: maximum number of tokens of an answer, including its reasoning.
        retries: maximum number of retries per prompt.
        seed: sampling seed.
    """

    def __init__(
        self, writer: Writer, temperature: float, max_new_tokens: int, retries: int, seed: int
    ):
        if temperature < 0 or max_new_tokens < 1 or retries < 0:
            raise UserError("temperature, retries: expected at least 0; max_new_tokens: at least 1")
        if retries and not temperature:
            raise UserError(
                "retries: with temperature 0 all retries return the same answer; set retries to 0 "
                "or temperature above 0"
            )
        self.writer = writer
        self.temperature = temperature
        self.max_new_tokens = max_new_tokens
        self.retries = retries
        self.seed = seed

    def ask(
        self, prompts: Sequence[list[Message]], read: Read[T] | Sequence[Read[T]], step: int = 0
    ) -> list[Reading[T]]:
        """Query the model until all answers are parsed; each try is one batched call.

        ``read`` parses an answer or returns ``None``: one function for all prompts, or one each.
        ``step`` is the index of the question in methods that ask several per claim.
        """
        reads = read if isinstance(read, Sequence) else [read] * len(prompts)
        readings: dict[int, Reading[T]] = {}
        todo = list(range(len(prompts)))
        for number in range(self.retries + 1):
            if not todo:
                break
            answers = self.writer.answer(
                [prompts[i] for i in todo],
                temperature=self.temperature,
                top_p=1.0,
                max_new_tokens=self.max_new_tokens,
                seed=self.seed + step * (self.retries + 1) + number,
            )
            for i, (answer,) in zip(todo, answers, strict=True):
                value = None if answer.failed else reads[i](answer.text)
                failed = answer.failed or (None if value is not None else "no answer in the text")
                readings[i] = Reading(answer.text, value, failed, answer.cut)
            todo = [i for i in todo if readings[i].failed == "no answer in the text"]
        return [readings[i] for i in range(len(prompts))]
