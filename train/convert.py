"""A published T5 that writes LSS, as the checkpoint folder that ``eval`` reads.

2308.12157's authors released their LSS and LSS* models as archives of plain Hugging Face folders
(facebookresearch/lss_eval, README). Weights must be safetensors, since reading a pickle can run
whatever is in it; a ``pytorch_model.bin`` is converted where that does no harm::

    python -c "import transformers as t; name, to = 'lss_archive', 'downloads/lss_eval/lss'; \\
      t.AutoModelForSeq2SeqLM.from_pretrained(name, use_safetensors=False).save_pretrained(to); \\
      t.AutoTokenizer.from_pretrained(name).save_pretrained(to)"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser

from components.checkpoint import Component, library_versions, new_folder, write_component
from records import UserError, sha256_file
from records.errors import first_line

# The released code's prompt (infer.py), which T5's tokenizers read as they read that of A.3.
TEMPLATE = "Reference: {reference}\n Claim: {claim}\n Output:"
_CARD = """\
# {name}

Writes what a reference supports of a claim: the longest supported subsequence of its words
(arXiv 2308.12157{star}). Converted from `{base}` by `python -m train convert`; not trained and not
measured here. `python -m eval component --checkpoint {name} --data FILE` measures it.
"""


@dataclass
class Conversion:
    """What is converted, and how it is to write.

    Args:
        model: a folder or a hub id of a sequence-to-sequence model with safetensors weights.
        output: the checkpoint folder, e.g. ``checkpoints/lss_t5``.
        star: it writes LSS*.
        constrained: decode only subsequences of the claim; false lets the model write what it will,
            as its authors do. Null: true for LSS, false for LSS*.
        num_beams: beams; 1 is greedy search.
        max_new_tokens: longest output in tokens.
        max_length: input length in tokens; the reference is cut, the claim stays whole.
        prompt_template: the input, with ``{reference}`` and ``{claim}``.
    """

    model: str
    output: str
    star: bool = False
    constrained: bool | None = None
    num_beams: int = 5
    max_new_tokens: int = 128
    max_length: int = 528
    prompt_template: str = TEMPLATE

    def __post_init__(self):
        if min(self.num_beams, self.max_new_tokens, self.max_length) < 1:
            raise UserError("--num_beams, --max_new_tokens, --max_length: at least 1")
        for field in ("{reference}", "{claim}"):
            if field not in self.prompt_template:
                raise UserError(f"--prompt_template lacks {field}")
        if self.star and self.constrained:
            raise UserError("--constrained: LSS* has words of its own; leave it out")

    def component(self) -> Component:
        """What ``component.json`` says; nothing was trained or measured."""
        constrained = not self.star if self.constrained is None else self.constrained
        return Component(
            component="lss_star" if self.star else "lss",
            architecture="seq2seq",
            prompt_template=self.prompt_template,
            decoding={
                "num_beams": self.num_beams,
                "max_new_tokens": self.max_new_tokens,
                "constrained": constrained,
            },
            max_length=self.max_length,
            base=_base(self.model),
            versions=library_versions(),
        )


def convert(conversion: Conversion) -> Path:
    """Write the checkpoint folder; one that is there is replaced."""
    from transformers.utils import logging

    from components.base import UNLOADABLE, load_seq2seq, load_tokenizer

    logging.disable_progress_bar()  # a bar for loading weights that takes a second is noise
    to = Path(conversion.output)
    if to.exists() and not (to / "component.json").is_file():
        raise UserError(f"--output: {to} is there and is no checkpoint; give another folder")
    try:
        model = load_seq2seq(conversion.model)
    except UNLOADABLE as error:
        raise UserError(
            f"--model: {conversion.model}: {first_line(error)} Weights must be safetensors; "
            "train/convert.py says how to convert a pytorch_model.bin"
        ) from None
    tokenizer = load_tokenizer(conversion.model)
    star = ", LSS*, which may have words of its own" if conversion.star else ""
    card = _CARD.format(name=to.name, star=star, base=conversion.component().base["id"])
    with new_folder(to) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_component(folder, conversion.component(), card)
    return to


def _base(model: str) -> dict:
    if not Path(model).is_dir():
        return {"id": model, "revision": None}
    weights = sorted(Path(model).glob("*.safetensors"))
    return {"id": Path(model).name, "sha256": {file.name: sha256_file(file) for file in weights}}


def build_parser() -> ArgumentParser:
    """The options of ``python -m train convert``."""
    parser = ArgumentParser(
        prog="python -m train convert",
        description="Make a checkpoint folder of a published T5 that writes LSS.",
        exit_on_error=False,
    )
    parser.add_class_arguments(Conversion)
    return parser


def main(arguments: Sequence[str]) -> int:
    """``python -m train convert``."""
    given = build_parser().parse_args(arguments)
    print(f"checkpoint: {convert(Conversion(**given.as_dict()))}")
    return 0
