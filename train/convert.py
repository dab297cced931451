"""``python -m train convert``: a checkpoint folder from a published T5 that generates LSS.

The authors of 2308.12157 released their LSS and LSS* models as archives of Hugging Face folders
(``python -m data_builders fetch lss_models``). Weights must be safetensors, since loading a pickle
can execute code. Convert a ``pytorch_model.bin`` in a sandbox::

    python -c "import transformers as t; name = 'downloads/lss_models/lss'; \\
      t.AutoModelForSeq2SeqLM.from_pretrained(name, use_safetensors=False).save_pretrained(name)"
"""

from pathlib import Path

from components.checkpoint import (
    LSS_TEMPLATE,
    Component,
    library_versions,
    replace_folder,
    write_component,
)
from components.code import describe_code
from records import UserError, sha256_file
from records.errors import first_line

_CARD = """\
# {name}

Generates the longest subsequence of a claim's words that a reference supports
(arXiv 2308.12157{star}). Converted from `{base}` by `python -m train convert`; not trained or
evaluated here. To evaluate it, run `python -m eval component --checkpoint {name} --data FILE`.
"""


def convert(model: str, output: Path, star: bool = False, constrained: bool | None = None) -> None:
    """Convert a published T5 that generates LSS to a checkpoint folder.

    Decoding is that of the authors (infer.py): 5 beams, 128 new tokens, 528 input tokens.

    Args:
        model: folder or hub id of a sequence-to-sequence model with safetensors weights.
        output: new checkpoint folder, e.g. ``checkpoints/lss_t5``.
        star: the model generates LSS*.
        constrained: decode only subsequences of the claim; false decodes freely, as the authors
            do. Null: true for LSS, false for LSS*.
    """
    from transformers.utils import logging

    from components.base import LOAD_ERRORS, load_seq2seq, load_tokenizer

    logging.disable_progress_bar()  # loading weights takes a second
    if star and constrained:
        raise UserError("--constrained: LSS* may add words; omit --constrained with --star")
    if output.exists():
        raise UserError(f"--output {output}: exists; set another folder")
    try:
        weights = load_seq2seq(model)
    except LOAD_ERRORS as error:
        raise UserError(
            f"--model: {model}: {first_line(error)} Weights must be safetensors; to convert a "
            "pytorch_model.bin, see train/convert.py"
        ) from None
    tokenizer = load_tokenizer(model)
    is_constrained = not star if constrained is None else constrained
    component = Component(
        component="lss_star" if star else "lss",
        architecture="seq2seq",
        prompt_template=LSS_TEMPLATE,
        decoding={"num_beams": 5, "max_new_tokens": 128, "constrained": is_constrained},
        max_length=528,
        base=_base(model),
        versions=library_versions(),
        code=describe_code([__name__]),
    )
    note = ", LSS*, which may add words" if star else ""
    card = _CARD.format(name=output.name, star=note, base=component.base["id"])
    with replace_folder(output) as folder:
        weights.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_component(folder, component, card)
    print(f"checkpoint: {output}")


def _base(model: str) -> dict:
    if not Path(model).is_dir():
        return {"id": model, "revision": None}
    weights = sorted(Path(model).glob("*.safetensors"))
    return {"id": Path(model).name, "sha256": {file.name: sha256_file(file) for file in weights}}
