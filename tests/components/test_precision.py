"""Which devices compute in bfloat16."""

import pytest
import torch

from components.precision import is_bfloat16_fast


@pytest.mark.parametrize("has_amx", [True, False])
def test_cpu_with_avx512_bf16_computes_in_bfloat16_only_with_amx(monkeypatch, has_amx):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_amx)
    assert is_bfloat16_fast("cpu") == has_amx
