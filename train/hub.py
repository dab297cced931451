"""Upload and conversion of checkpoint folders: ``python -m train {push,convert}``.

The Hub token is read from ``HF_TOKEN`` or from ``hf auth login``, and is never printed.

The authors of 2308.12157 released their LSS and LSS* models as archives of Hugging Face folders
(facebookresearch/lss_eval, README). Weights must be safetensors, since loading a pickle can execute
code. Convert a ``pytorch_model.bin`` in a sandbox::

    python -c "import transformers as t; name, to = 'lss_archive', 'downloads/lss_eval/lss'; \\
      t.AutoModelForSeq2SeqLM.from_pretrained(name, use_safetensors=False).save_pretrained(to); \\
      t.AutoTokenizer.from_pretrained(name).save_pretrained(to)"
"""

from pathlib import Path

import huggingface_hub
from huggingface_hub import constants  # not an attribute of the package until imported
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

# Only these files of a checkpoint folder are uploaded.
FILES = [
    "component.json", "README.md", "curves.png", "reliability.png", "*.safetensors",
    "*.safetensors.index.json", "config.json", "adapter_config.json", "generation_config.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "vocab.txt", "merges.txt", "*.model", "chat_template.jinja",
]  # fmt: skip
_CARD = """\
# {name}

Generates the longest subsequence of a claim's words that a reference supports
(arXiv 2308.12157{star}). Converted from `{base}` by `python -m train convert`; not trained or
evaluated here. To evaluate it, run `python -m eval component --checkpoint {name} --data FILE`.
"""


def check_push(repo_id: str) -> None:
    """Check repository name, network and token before training starts."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError:
        repo_id = ""
    if repo_id.count("/") != 1:
        raise UserError("--push_to_hub, --repo_id: expected ORG/NAME, e.g. my-lab/unli-minilm")
    if constants.is_offline_mode():
        raise UserError("cannot push: HF_HUB_OFFLINE is set; unset it, or do not push")
    if huggingface_hub.get_token() is None:
        raise UserError("cannot push: no token; run `hf auth login` or set HF_TOKEN")


def push(checkpoint: Path, repo_id: str, private: bool = False) -> None:
    """Upload a checkpoint folder to the Hugging Face Hub, and print the repository's address.

    Args:
        checkpoint: the checkpoint folder; files outside the checkpoint format are not uploaded.
        repo_id: the repository, ORG/NAME; created if it does not exist.
        private: create a new repository as private.
    """
    check_push(repo_id)
    component = read_component(checkpoint)
    base = str(component.base.get("id", ""))
    if component.architecture == "causal_lora" and Path(base).exists():
        print(f"note: the adapter's base {Path(base).name} is a local folder and is not uploaded")
    hub = huggingface_hub.HfApi()
    try:
        repository = hub.create_repo(repo_id, private=private or None, exist_ok=True)
        hub.upload_folder(
            repo_id=repository.repo_id,
            folder_path=checkpoint,
            allow_patterns=FILES,
            commit_message=f"{component.component} checkpoint",
        )
    except (HTTPError, OSError) as error:
        message = str(error).strip() or type(error).__name__
        # The server's message may contain the token.
        reason = message.splitlines()[-1].replace(huggingface_hub.get_token(), "***")
        raise UserError(f"push to {repo_id} failed: {reason}") from None
    print(f"pushed: {repository}")


def convert(model: str, output: Path, star: bool = False, constrained: bool | None = None) -> None:
    """Convert a published T5 that generates LSS to a checkpoint folder.

    Decoding is that of the authors (infer.py): 5 beams, 128 new tokens, 528 input tokens.

    Args:
        model: folder or hub id of a sequence-to-sequence model with safetensors weights.
        output: checkpoint folder, e.g. ``checkpoints/lss_t5``; an existing checkpoint is replaced.
        star: the model generates LSS*.
        constrained: decode only subsequences of the claim; false decodes freely, as the authors
            do. Null: true for LSS, false for LSS*.
    """
    from transformers.utils import logging

    from components.base import LOAD_ERRORS, load_seq2seq, load_tokenizer

    logging.disable_progress_bar()  # loading weights takes a second
    if star and constrained:
        raise UserError("--constrained: LSS* may add words; omit --constrained with --star")
    if output.exists() and not (output / "component.json").is_file():
        raise UserError(f"--output {output}: exists and is not a checkpoint; set another folder")
    try:
        weights = load_seq2seq(model)
    except LOAD_ERRORS as error:
        raise UserError(
            f"--model: {model}: {first_line(error)} Weights must be safetensors; to convert a "
            "pytorch_model.bin, see train/hub.py"
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
