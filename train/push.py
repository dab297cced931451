"""Pushing a checkpoint folder to the Hugging Face Hub, only when asked to.

The token comes from the environment (``HF_TOKEN``) or from ``hf auth login``; nothing prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import huggingface_hub
from huggingface_hub import constants  # no attribute of the package before somebody imports it
from huggingface_hub.errors import HFValidationError, HTTPError
from huggingface_hub.utils import validate_repo_id
from jsonargparse import ArgumentParser

from components.checkpoint import read_component
from records import UserError

# The files of the contract; whatever else lies in the folder stays at home.
FILES = [
    "component.json", "README.md", "curves.png", "reliability.png", "*.safetensors",
    "*.safetensors.index.json", "config.json", "adapter_config.json", "generation_config.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "vocab.txt", "merges.txt", "*.model", "chat_template.jinja",
]  # fmt: skip


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


def push(folder: Path, repo_id: str, private: bool = False) -> str:
    """Upload a checkpoint folder's files of the contract.

    Args:
        folder: the checkpoint.
        repo_id: ``ORG/NAME``; made where it does not exist.
        private: make a new repository private.

    Returns:
        The address of the repository.
    """
    check_push(repo_id)
    component = read_component(folder)
    base = str(component.base.get("id", ""))
    if component.architecture == "causal_lora" and Path(base).exists():
        print(f"note: the adapter's base {Path(base).name} is a folder of this machine only")
    hub = huggingface_hub.HfApi()
    try:
        found = hub.create_repo(repo_id, private=private or None, exist_ok=True)
        hub.upload_folder(
            repo_id=found.repo_id,
            folder_path=folder,
            allow_patterns=FILES,
            commit_message=f"{component.component} checkpoint",
        )
    except (HTTPError, OSError) as error:  # what the Hub answers, or that nobody does
        said = str(error).strip() or type(error).__name__
        # A server may repeat what it was sent.
        reason = said.splitlines()[-1].replace(huggingface_hub.get_token(), "***")
        raise UserError(f"push to {repo_id} failed: {reason}") from None
    return str(found)


def main(arguments: Sequence[str]) -> int:
    """``python -m train push``."""
    parser = ArgumentParser(
        prog="python -m train push",
        description="Upload a checkpoint folder to the Hugging Face Hub.",
        exit_on_error=False,
    )
    parser.add_argument("--checkpoint", type=str, required=True, help="the checkpoint folder")
    parser.add_argument("--repo_id", type=str, required=True, help="where it goes: ORG/NAME")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    given = parser.parse_args(arguments)
    print(f"pushed: {push(Path(given.checkpoint), given.repo_id, given.private)}")
    return 0
