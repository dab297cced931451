"""Sentence encoders: texts as vectors, by sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from huggingface_hub import snapshot_download
from jsonargparse.typing import PositiveInt
from transformers.utils import logging

from components.base import resolve_base
from components.overlap import stem_shares
from eval.models.device import pick_device, present
from eval.models.hub import check_length, positions
from records import UserError
from records.errors import first_line

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")


class SentenceEncoder:
    """A sentence-transformers model; a local folder needs no network.

    Args:
        model: a hub id, a folder or ``package:…``; without ``modules.json``, mean pooling and
            normalisation are used.
        batch_size: texts per batch.
        max_length: maximum tokens of a text; null: the model's setting.
        device: ``auto``, ``cpu``, ``cuda``, …
    """

    def __init__(
        self,
        model: str,
        batch_size: PositiveInt = 64,
        max_length: PositiveInt | None = None,
        device: str = "auto",
    ):
        logging.disable_progress_bar()  # loading weights takes a second
        self._base = resolve_base(model)
        self.model = model
        self.batch_size = batch_size
        self.device = pick_device(device)
        self._length = max_length

    @cached_property
    def folder(self) -> Path:
        """The model's folder; a hub model is downloaded on first use."""
        if isinstance(self._base, Path):
            return self._base
        return Path(snapshot_download(self._base, allow_patterns=list(_FILES)))

    @cached_property
    def max_length(self) -> int:
        """Maximum tokens of a text; longer texts are truncated."""
        # older models: in the folder of the weights, in a file named after the model type
        file = next(iter(sorted(self.folder.rglob("sentence_*_config.json"))), None)
        settings = json.loads(file.read_text(encoding="utf-8")) if file else {}
        return self._length or settings.get("max_seq_length") or 512

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of shape (texts, width), float32."""
        return self._model.encode(
            list(texts),
            prompt="",
            batch_size=self.batch_size,
            normalize_embeddings=not (self.folder / "modules.json").is_file(),
            show_progress_bar=False,
        )

    @cached_property
    def _model(self) -> SentenceTransformer:
        from sentence_transformers import SentenceTransformer

        for pickled in sorted(self.folder.rglob("pytorch_model.bin")):
            if not pickled.with_name("model.safetensors").is_file():
                raise UserError(f"{pickled.parent}: no model.safetensors; use a model with it")
        options = {"use_safetensors": True, "dtype": torch.float32}
        try:
            model = SentenceTransformer(
                str(self.folder),
                device=str(present(self.device)),
                model_kwargs=options,
                local_files_only=True,
            )
        except (OSError, ValueError, TypeError, ImportError, AttributeError) as error:
            raise UserError(f"{self.model}: cannot load the model ({first_line(error)})") from None
        model.max_seq_length = self._fitting(getattr(model[0], "auto_model", None))
        return model.float()

    def _fitting(self, encoder: PreTrainedModel | None) -> int:
        config = getattr(encoder, "config", None)
        if not getattr(config, "max_position_embeddings", None):
            return self.max_length
        check_length(self.model, self._length or 0, config)
        return min(self.max_length, positions(config))


def unit_vectors(encoder: SentenceEncoder, texts: Sequence[str]) -> np.ndarray:
    """Encode texts as vectors of length 1, shape (texts, width), float64; (0, 1) without texts."""
    if not texts:
        return np.zeros((0, 1))
    vectors = np.asarray(encoder.encode(texts), dtype=float)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def relatedness(texts: Sequence[str], encoder: SentenceEncoder | None) -> np.ndarray:
    """Pairwise similarity of texts, shape (n, n).

    Cosines of the encoder's vectors; without an encoder, [i, j] is the share of text j's weighted
    stems that text i contains (:func:`components.overlap.stem_shares`).
    """
    if encoder is None:
        return stem_shares(texts)
    units = unit_vectors(encoder, texts)
    return units @ units.T
