"""A training writes no key and no token: not into curves, wandb's files, card or logs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from train.__main__ import main

KEY = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_s3cr3t0123456789"


def test_a_training_holds_no_key(
    arguments: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    command = arguments("unli", "--trainer.max_steps", "3")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    main(command)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("wandb" in path.parts for path in files)
    message = "".join(capfd.readouterr()) + caplog.text
    for secret in (KEY, TOKEN):
        assert secret not in message
        assert [path for path in files if secret.encode() in path.read_bytes()] == []
