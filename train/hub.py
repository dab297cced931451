"""Checkpoint folders from and to elsewhere: ``python -m train push``, ``python -m train convert``.

The Hub's token comes from the environment (``HF_TOKEN``) or from ``hf auth login``; nothing prints
it.

2308.12157's authors released their LSS and LSS* models as archives of plain Hugging Face folders
(facebookresearch/lss_eval, README). Weights must be safetensors, since reading a pickle can run
whatever is in it; a ``pytorch_model.bin`` is converted where that does no harm::

    python -c "import transformers as t; name, to = 'lss_archive', 'downloads/lss_eval/lss'; \\
      t.AutoModelForSeq2SeqLM.from_pretrained(name, use_safetensors=False).save_pretrained(to); \\
      t.AutoTokenizer.from_pretrained(name).save_pretrained(to)"
"""

from pathlib import Path

import huggingface_hub
from huggingface_hub import constants  # no attribute of the package before somebody imports it
from huggingface_hub.errors import HFValidationError, HTTPError
from huggingface_hub.utils import validate_repo_id

from components.checkpoint import (
    LSS_TEMPLATE,
    Component,
    library_versions,
    read_component,
    replace_folder,
    write_component,
)
from records import UserError, sha256_file
from records.errors import first_line

# The files of the contract; whatever else lies in the folder stays at home.
FILES = [
    "component.json", "README.md", "curves.png", "reliability.png", "*.safetensors",
    "*.safetensors.index.json", "config.json", "adapter_config.json", "generation_config.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "vocab.txt", "merges.txt", "*.model", "chat_template.jinja",
]  # fmt: skip
_CARD = """\
# {name}

Writes what a reference supports of a claim: the longest supported subsequence of its words
(arXiv 2308.12157{star}). Converted from `{base}` by `python -m train convert`; not trained and not
measured here. `python -m eval component --checkpoint {name} --data FILE` measures it.
"""


def check_push(repo_id: str) -> None:
    """Refuse a push that could not succeed, before hours of training."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError:
        repo_id = ""
    if repo_id.count("/") != 1:
        raise UserError("--push_to_hub and --repo_id take ORG/NAME, such as my-lab/unli-minilm")
    if constants.is_offline_mode():
        raise UserError("cannot push: HF_HUB_OFFLINE is set; unset it, or leave the push out")
    if huggingface_hub.get_token() is None:
        raise UserError("cannot push: no token; run `hf auth login` or set HF_TOKEN")


def push(checkpoint: Path, repo_id: str, private: bool = False) -> None:
    """Upload a checkpoint folder to the Hugging Face Hub, and print the repository's address.

    Args:
        checkpoint: the checkpoint folder; its files of the contract are uploaded.
        repo_id: where it goes: ORG/NAME; made where it does not exist.
        private: make a new repository private.
    """
    check_push(repo_id)
    component = read_component(checkpoint)
    base = str(component.base.get("id", ""))
    if component.architecture == "causal_lora" and Path(base).exists():
        print(f"note: the adapter's base {Path(base).name} is a folder of this machine only")
    hub = huggingface_hub.HfApi()
    try:
        repository = hub.create_repo(repo_id, private=private or None, exist_ok=True)
        hub.upload_folder(
            repo_id=repository.repo_id,
            folder_path=checkpoint,
            allow_patterns=FILES,
            commit_message=f"{component.component} checkpoint",
        )
    except (HTTPError, OSError) as error:  # what the Hub answers, or that nobody does
        message = str(error).strip() or type(error).__name__
        # A server may repeat what it was sent.
        reason = message.splitlines()[-1].replace(huggingface_hub.get_token(), "***")
        raise UserError(f"push to {repo_id} failed: {reason}") from None
    print(f"pushed: {repository}")


def convert(model: str, output: Path, star: bool = False, constrained: bool | None = None) -> None:
    """Make a checkpoint folder of a published T5 that writes LSS; one that is there is replaced.

    It decodes as the authors' models do (infer.py): 5 beams, 128 new tokens, 528 input tokens.

    Args:
        model: a folder or a hub id of a sequence-to-sequence model with safetensors weights.
        output: the checkpoint folder, e.g. ``checkpoints/lss_t5``.
        star: it writes LSS*.
        constrained: decode only subsequences of the claim; false lets the model write what it will,
            as its authors do. Null: true for LSS, false for LSS*.
    """
    from transformers.utils import logging

    from components.base import LOAD_ERRORS, load_seq2seq, load_tokenizer

    logging.disable_progress_bar()  # a bar for loading weights that takes a second is noise
    if star and constrained:
        raise UserError("--constrained: LSS* has words of its own; leave it out")
    if output.exists() and not (output / "component.json").is_file():
        raise UserError(f"--output: {output} is there and is no checkpoint; give another folder")
    try:
        weights = load_seq2seq(model)
    except LOAD_ERRORS as error:
        raise UserError(
            f"--model: {model}: {first_line(error)} Weights must be safetensors; train/hub.py says "
            "how to convert a pytorch_model.bin"
        ) from None
    tokenizer = load_tokenizer(model)
    component = Component(
        component="lss_star" if star else "lss",
        architecture="seq2seq",
        prompt_template=LSS_TEMPLATE,
        decoding={
            "num_beams": 5,
            "max_new_tokens": 128,
            "constrained": not star if constrained is None else constrained,
        },
        max_length=528,
        base=_base(model),
        versions=library_versions(),
    )
    note = ", LSS*, which may have words of its own" if star else ""
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
