"""Devices of models."""

import torch

from eval.models.device import pick_device


def test_a_model_on_any_device_does_without_cudnn_attention():
    torch.backends.cuda.enable_cudnn_sdp(True)
    assert pick_device("cpu").type == "cpu"
    assert not torch.backends.cuda.cudnn_sdp_enabled()
