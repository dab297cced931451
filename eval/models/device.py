"""Devices, and linear layers that are fast on a CPU."""

import torch

from components.precision import configure_cuda
from records import UserError


def pick_device(device: str) -> torch.device:
    """Resolve a device name; ``auto`` is the GPU if present, else the CPU."""
    configure_cuda()
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.device(device)
    except RuntimeError:
        raise UserError(
            f"device: unknown PyTorch device {device!r}; use auto, cpu, cuda or cuda:1"
        ) from None


def present(device: torch.device) -> torch.device:
    """Return the device if it exists; raise a one-line error otherwise."""
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"device: {device}: no such GPU; use auto or cpu")
    return device


class _PackedLinear(torch.nn.Module):
    """A linear layer with weights packed for oneDNN, for inference on a CPU.

    Equal to ``torch.nn.Linear`` up to rounding. In float32 up to 2.3 times as fast as MKL on AMD
    CPUs; in bfloat16 about 8 % faster for a whole model.
    """

    def __init__(self, linear: torch.nn.Linear):
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.data, None)
        self.bias = None if linear.bias is None else linear.bias.data

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


def pack_linears(module: torch.nn.Module) -> None:
    """Replace a CPU model's linear layers by packed ones, if oneDNN supports the dtype."""
    for name, child in module.named_children():
        if type(child) is torch.nn.Linear and _can_pack(child.weight.dtype):
            setattr(module, name, _PackedLinear(child))
        else:
            pack_linears(child)


def _can_pack(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype != torch.bfloat16 or torch.ops.mkldnn._is_mkldnn_bf16_supported()
