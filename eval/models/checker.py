"""Fact-checking models from the hub, such as MiniCheck (Tang et al. 2024, 2404.10774).

A sequence-to-sequence model or a two-class classifier predicts the probability that a document
supports a claim. A long document is cut into chunks of whole sentences, and the best chunk counts.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from components.base import load_tokenizer, resolve_base
from components.calibration import probabilities
from components.encoding import Features, Pair, text_windows
from components.sentences import split_sentences
from components.windows import best_windows
from eval.models.engine import EncodedRow, Engine
from eval.models.hub import load_whole
from records import UserError
from records.errors import first_line


class Checker(Engine):
    """Support of claims by documents (an ``EntailmentModel`` of ``eval/stages.py``).

    Published models with their default ``chunk`` and ``max_length``:
    ``lytang/MiniCheck-Flan-T5-Large`` (500 words, 2048), ``lytang/MiniCheck-RoBERTa-Large`` (400
    tokens, 512), ``lytang/MiniCheck-DeBERTa-v3-Large`` (400, 512; 2048 in the released code).

    As in the released code (Liyan06/MiniCheck, ``minicheck/inference.py``) the input is
    ``document</s>claim``, prefixed with ``predict: `` for a sequence-to-sequence model, whose first
    token is "1" or "0". Departure: the released code truncates the end of the input, and so the
    claim; here a chunk that does not fit next to the claim is cut into windows, and a claim that
    is too long has no answer. Sentences longer than a chunk are split, and line breaks in a
    document of several chunks become spaces.

    Args:
        model: a hub id, a folder or ``package:…``; safetensors only.
        supported: the model's label (classifier) or answer (sequence-to-sequence) for a supported
            claim.
        not_supported: the same for a claim that is not supported.
        chunk: chunk size, in whitespace words for a sequence-to-sequence model and in tokens for a
            classifier.
        max_length: input length in tokens.
        segments: encode document and claim as two segments, as for ``manueldeprada/FactCC``
            (labels ``CORRECT``, ``INCORRECT``).
        batch_size: rows per batch; batches of long rows are smaller.
        cache: SQLite file for the answers; null (the default) caches nothing, and a re-run computes
            all answers again.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, …
        template: input template with ``{document}`` and ``{claim}``, instead of MiniCheck's. For
            ALCE's citation judge (TRUE, Honovich et al. 2022; ``google/t5_xxl_true_nli_mixture``,
            first token "1" or "0"): ``premise: {document} hypothesis: {claim}``.
    """

    def __init__(
        self,
        model: str,
        supported: str = "1",
        not_supported: str = "0",
        chunk: int | None = None,
        max_length: int | None = None,
        segments: bool = False,
        batch_size: int = 16,
        cache: Path | None = None,
        device: str = "auto",
        template: str | None = None,
    ):
        super().__init__(batch_size, cache, device)
        if any(number is not None and number < 1 for number in (chunk, max_length)):
            raise UserError("chunk, max_length: expected at least 1, or null for the default")
        fields = ("{document}", "{claim}")
        if template is not None and (segments or any(template.count(f) != 1 for f in fields)):
            raise UserError("template: expected {document} and {claim} once each, no `segments`")
        self.model = model
        self.supported = supported
        self.not_supported = not_supported
        self.chunk = chunk
        self.max_length = max_length
        self.segments = segments
        self.template = template

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the uncalibrated probabilities of (document, claim) pairs.

        Returns:
            Shape (n, 3): supported, not supported, and 0 (contradiction is not predicted); NaN for
            a claim that is too long.
        """
        distinct = dict.fromkeys(document for document, _ in pairs)
        chunks = {document: self._chunks(document) for document in distinct}
        rows = [row for row, (document, _) in enumerate(pairs) for _ in chunks[document]]
        inputs = [(piece, claim) for document, claim in pairs for piece in chunks[document]]
        if not inputs:
            return np.empty((0, 3))
        answers = self._judge(inputs)
        support = np.asarray([a[0] if a.size else np.nan for a in answers])  # (chunks,)
        best = support[best_windows(support, rows)]  # (pairs,)
        best[np.asarray(rows)[np.isnan(support)]] = np.nan
        return np.stack([best, 1 - best, 0 * best], axis=1)

    def _chunks(self, document: str) -> list[str]:
        limit = self.chunk or (500 if self._seq2seq else 400)
        if self._size(document) <= limit:
            return [document.strip()]
        chunks: list[list[str]] = [[]]
        tokens_left = limit
        for sentence in split_sentences(document):
            for piece in self._pieces(sentence, limit):
                size = self._size(piece)
                if size > tokens_left and chunks[-1]:
                    chunks.append([])
                    tokens_left = limit
                chunks[-1].append(piece)
                tokens_left -= size
        return [" ".join(chunk) for chunk in chunks]

    def _pieces(self, sentence: str, limit: int) -> list[str]:
        words = sentence.split()
        if self._size(sentence) <= limit or len(words) < 2:
            return [sentence]
        halves = words[: len(words) // 2], words[len(words) // 2 :]
        return [piece for half in halves for piece in self._pieces(" ".join(half), limit)]

    def _size(self, text: str) -> int:
        if self._seq2seq:
            return len(text.split())
        return len(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    @cached_property
    def _config(self) -> PretrainedConfig:
        try:
            return AutoConfig.from_pretrained(resolve_base(self.model), trust_remote_code=False)
        except (OSError, ValueError) as error:
            reason = first_line(error)
            raise UserError(f"{self.model}: config.json cannot be loaded ({reason})") from None

    @property
    def _seq2seq(self) -> bool:
        return self._config.is_encoder_decoder

    @property
    def _longest(self) -> int:
        return self.max_length or (2048 if self._seq2seq else 512)

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return load_tokenizer(self.model)

    @cached_property
    def _model(self) -> PreTrainedModel:
        auto = AutoModelForSeq2SeqLM if self._seq2seq else AutoModelForSequenceClassification
        return load_whole(auto, self.model, self.device)

    @cached_property
    def _outputs(self) -> list[int]:
        labels = [self.not_supported, self.supported]
        if self._seq2seq:
            encoded = self._tokenizer(labels, add_special_tokens=False)["input_ids"]
            places = [ids[0] for ids in encoded if ids]
        else:
            indexes = {name: place for place, name in self._config.id2label.items()}
            places = [indexes[label] for label in labels if label in indexes]
            if len(indexes) != 2:
                raise UserError(f"{self.model}: expected two classes, got {list(indexes)}")
        if len(set(places)) != 2:
            label_list = "" if self._seq2seq else f" of {list(self._config.id2label.values())}"
            raise UserError(
                f"{self.model}: labels {labels} do not match; set supported and not_supported to "
                f"its labels{label_list}"
            )
        return places

    def _encode(self, inputs: Sequence[Pair]) -> list[list[EncodedRow]]:
        return [[EncodedRow(features) for features in self._windows(*pair)] for pair in inputs]

    def _windows(self, chunk: str, claim: str) -> Iterator[Features]:
        def encode(window: str) -> Features:
            texts = (window, claim) if self.segments else (self._text(window, claim),)
            features = dict(self._tokenizer(*texts, verbose=False))
            del features["attention_mask"]
            if self._seq2seq:
                features["decoder_input_ids"] = [self._config.decoder_start_token_id]
            return features

        return text_windows(self._tokenizer, chunk, encode, self._longest)

    def _text(self, chunk: str, claim: str) -> str:
        if self.template is None:
            lead = "predict: " if self._seq2seq else ""
            return f"{lead}{chunk}{self._tokenizer.eos_token or self._tokenizer.sep_token}{claim}"
        # Split at the fields, so that the texts may contain field names.
        pieces = re.split(r"(\{document\}|\{claim\})", self.template)
        return "".join({"{document}": chunk, "{claim}": claim}.get(p, p) for p in pieces)

    def _read(self, logits: np.ndarray, rows: Sequence[EncodedRow]) -> list[np.ndarray]:
        logits = logits[:, 0] if self._seq2seq else logits  # of the first token
        return list(probabilities(logits[:, self._outputs], 1.0)[:, 1:])
