"""Trained components and language models as batched engines."""
