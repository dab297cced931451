"""Sample texts on topics from a language model."""

from collections.abc import Iterable
from pathlib import Path

from components.checkpoint import read_component
from components.encoding import fill_prompt
from data_builders.builder import Builder, Work
from data_builders.journal import Each, write_texts
from eval.models.chat import Answer, Writer
from records import UserError

# An interrupted build loses at most one batch. Larger batches are faster, since a local model
# samples topics of equal prompt length together.
TOPICS_PER_BATCH = 32


def sampling_of(builder: Builder, n: int) -> dict[str, int | float]:
    """Collect the keyword arguments of ``Writer.answer`` for ``n`` texts per prompt."""
    names = ("temperature", "top_p", "max_new_tokens", "seed")
    return {"n": n, **{name: getattr(builder, name) for name in names}}


def template_of(prompt: str, option: str) -> str:
    """Return ``prompt`` if it has ``{topic}``, else the prompt of that adversary checkpoint."""
    if "{topic}" in prompt:
        return prompt
    if not (Path(prompt) / "component.json").is_file():
        raise UserError(f"{option} {prompt!r} has no {{topic}} and is not a checkpoint folder")
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
    """Map each topic to the texts that a model wrote about it; resumable.

    Args:
        template: the prompt, with ``{topic}``.
        sampling: see :func:`sampling_of`.
        name: name of the journal.
        each: answers prompts elsewhere; by default ``writer`` runs here.
    """
    prompts = {
        topic: [{"role": "user", "content": fill_prompt(template, topic=topic)}] for topic in topics
    }
    journal = work.journal(name, writer, template, sampling)
    return write_texts(writer, prompts, sampling, journal, batch_size=TOPICS_PER_BATCH, each=each)
