"""Texts that a language model samples on topics: who is asked what, and what was answered."""

from collections.abc import Iterable
from pathlib import Path

from components.checkpoint import read_component
from components.encoding import fill_prompt
from data_builders.builder import Builder, Work
from data_builders.journal import Each, write_texts
from eval.models.chat import Answer, Writer
from records import UserError

# What a kill loses at most. A local model samples topics of equal prompt length together, so more
# at a time are faster.
TOPICS_PER_BATCH = 32


def sampling_of(builder: Builder, n: int) -> dict[str, int | float]:
    """The keywords of ``Writer.answer``, for ``n`` texts a prompt, of a builder's options."""
    names = ("temperature", "top_p", "max_new_tokens", "seed")
    return {"n": n, **{name: getattr(builder, name) for name in names}}


def template_of(prompt: str, option: str) -> str:
    """A prompt with ``{topic}``, or that of an adversary's checkpoint folder.

    Args:
        prompt: either.
        option: where the user gave it, for messages.
    """
    if "{topic}" in prompt:
        return prompt
    if not (Path(prompt) / "component.json").is_file():
        raise UserError(f"{option} {prompt!r} has no {{topic}} and is no checkpoint's folder")
    template = read_component(prompt, "adversary").prompt_template
    if template is None:
        raise UserError(f"{option} {prompt}: component.json has no prompt_template")
    return template


def sample(
    writer: Writer,
    template: str,
    topics: Iterable[str],
    sampling: dict[str, int | float],
    work: Work,
    name: str,
    each: Each | None = None,
) -> dict[str, list[Answer]]:
    """Topic to what a model wrote about it.

    Args:
        writer: the model.
        template: the prompt, with ``{topic}``.
        topics: each once.
        sampling: as :func:`sampling_of` gives.
        work: keeps the answers in case the build is killed.
        name: of the journal that does.
        each: has prompts answered elsewhere; by default ``writer`` is asked here.
    """
    prompts = {
        topic: [{"role": "user", "content": fill_prompt(template, topic=topic)}] for topic in topics
    }
    journal = work.journal(name, writer.identity, template, sampling)
    return write_texts(writer, prompts, sampling, journal, batch_size=TOPICS_PER_BATCH, each=each)
