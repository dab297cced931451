"""Choice between float32 and bfloat16, and what PyTorch computes with on CUDA."""

import torch


def is_bfloat16_fast(device: str) -> bool:
    """Return whether computing in bfloat16 is faster than in float32.

    True of GPUs with native bfloat16 and of CPUs with AMX. Speed in bfloat16 relative to float32,
    measured on three kinds of CPUs:

    - with AMX: 2 (MiniLM) to 4 times (SmolLM2) in training, 3 times in inference;
    - with AVX512-BF16 and without AMX: 0.7 times in training (MiniLM, 20.3 and 30.9 rows/s of one
      core at 48 tokens; 7.1 and 10.5 at 128) and inference (103 and 150 rows/s at 32 tokens), and
      0.7 times in sampling from SmolLM2 (146 and 200 tokens/s), but 1.7 times in LoRA of SmolLM2;
    - without bfloat16 instructions: 0.25 times, since they are emulated.

    Args:
        device: type of the device, ``cpu`` or ``cuda``.
    """
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cpu._is_amx_tile_supported()


def configure_cuda() -> None:
    """Choose attention kernels and the precision of float32 products on CUDA.

    On Hopper PyTorch prefers cuDNN's attention, which builds a plan for each new shape of a batch.
    Without it, and with TF32 products, a step of UNLI takes 104 instead of 242 ms (H200, batches of
    16 rows of up to 256 tokens).
    """
    torch.backends.cuda.enable_cudnn_sdp(False)
    if torch.cuda.is_available():  # on a CPU it would change float32 products, too
        torch.set_float32_matmul_precision("high")


def describe_kernels() -> str:
    """Return a sentence on the choices of ``configure_cuda``; empty if it left the products."""
    precision = torch.get_float32_matmul_precision()
    if precision == "highest":
        return ""
    return f"Float32 products had precision `{precision}`, and cuDNN's attention was off."
