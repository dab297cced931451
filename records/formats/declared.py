"""Formats declared in YAML: which one a file has, and its rows as documents."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml

from records.errors import UserError
from records.evidence import evidence_passages
from records.formats.conversions import short_hash
from records.formats.label_words import parse_judgement
from records.formats.paths import Evaluate, columns_of, compile_block, compile_path
from records.formats.tokenised import join_tokens

SHIPPED = Path(__file__).parent / "formats.yaml"
# Records that a format makes directly, by the key of its declaration.
RECORD_KEYS = ("pairs", "lss", "unli")
_RULES = ("requires", "absent", "keep", "reads", *RECORD_KEYS)
_CLAIM_FIELDS = ("evidence", "label", "share")


class Format:
    """A declared format.

    Args:
        name: its name.
        declaration: its fields, as ``formats.yaml`` describes them.
    """

    def __init__(self, name: str, declaration: Mapping):
        self.name, self.declaration = name, declaration
        fields = {key: value for key, value in declaration.items() if key not in _RULES}
        self.is_judged = "claim" in fields
        if self.is_judged:
            claim = {name: fields.pop(name) for name in _CLAIM_FIELDS if name in fields}
            claim["text"] = fields["text"] = fields.pop("claim")
            fields["claims"] = claim
        fields = _defaults()["judged" if self.is_judged else "texts"] | fields
        self.fields = {name: path for name, path in fields.items() if path is not None}
        self.keeps = bool(declaration.get("keep"))
        self.makes_documents = "text" in fields or "claims" in fields
        self._document = compile_block(self.fields)
        self._records = {
            key: compile_block(block) if isinstance(block, Mapping) else compile_path(block)
            for key, block in declaration.items()
            if key in RECORD_KEYS
        }

    def applies(self, rows: Sequence[Mapping]) -> bool:
        """Whether a file with these first rows has the format."""
        required = self.declaration.get("requires", ())
        absent = self.declaration.get("absent", ())
        return (
            bool(required)
            and all(_is_present(path, rows) for path in required)
            and not any(_is_present(path, rows) for path in absent)
        )

    def columns(self) -> dict[str, str | None]:
        """Return the columns that the format reads, with the field of each, if it is one."""
        fields = dict(self.fields)
        if self.is_judged:
            claim = fields.pop("claims")
            fields = {"passages": claim.get("evidence", []), **fields, **claim}
            fields.pop("evidence", None)
        of_records = [self.declaration[key] for key in self._records]
        read = [*self.declaration.get("requires", ()), *self.declaration.get("reads", ())]
        columns: dict[str, str | None] = {}
        for field, path in fields.items():
            columns = {column: field for column in columns_of(path)} | columns
        return {c: None for path in (*read, *of_records) for c in columns_of(path)} | columns

    def records(self, key: str, row: Mapping) -> object:
        """Return the records of one of ``RECORD_KEYS``, or ``None`` without such a declaration."""
        return self._records[key]({**row, "row": row}) if key in self._records else None

    def value(self, field: str, row: Mapping) -> object:
        """Return a field of a row's document."""
        return compile_path(self.fields[field])(row) if field in self.fields else None

    def documents(self, row: Mapping, number: int) -> list[dict]:
        """Convert a row into documents.

        Raises:
            ValueError: the row is invalid; the message starts with the field.
        """
        block = self._document({**row, "row": row})
        listed = block if isinstance(block, list) else [block]
        documents = [self._complete(document, number, row) for document in listed]
        for document, parsed in zip(documents, listed, strict=True):
            if len(listed) > 1:
                document["id"] += f".{parsed['part']}"
        return [{**row, **document} for document in documents] if self.keeps else documents

    def _complete(self, parsed: dict, number: int, row: Mapping) -> dict:
        document = {key: value for key, value in parsed.items() if key != "part"}
        # A null in the column that tells the format is kept: the row has it, without a value.
        for column in self.declaration.get("requires", ()):
            is_null = isinstance(column, str) and row.get(column, 0) is None
            if is_null and column != "text" and column in self.fields:
                document.setdefault(column)
        name = parsed.get("id")
        document["id"] = f"d{number}" if name in (None, "") else str(name)
        if "passages" in document:
            document["passages"] = evidence_passages("passages", document["passages"])
        for key in ("claims", "model_claims"):
            if key in document:
                self._complete_claims(document, key)
        if document.get("text") in (None, "") and document.get("claims") and not self.is_judged:
            document["text"] = " ".join(claim["text"] for claim in document["claims"])
        if isinstance(document.get("text"), int | float):
            document["text"] = json.dumps(document["text"])
        topic = document.get("topic")
        if isinstance(topic, str):
            document["topic"] = topic = topic.strip()
        if self.is_judged:
            _complete_judged(document)
        elif not topic and "prompt_source" in document:
            document["topic"] = document["id"]  # VeriScore's texts without a question
        elif not topic:
            raise ValueError(
                f"topic: field required (or prompt, question, input); the row has {', '.join(row)}"
                "; name it with --fields '{topic: NAME}'"
            )
        return document

    def _complete_claims(self, document: dict, key: str) -> None:
        block, passages = self.fields[key], document.get("passages", [])
        all_ids = [passage["id"] for passage in passages]
        parsed = document[key] if isinstance(document[key], list) else [document[key]]
        claims = document[key] = []
        for place, fields in enumerate(parsed):
            claim = {"id": f"c{place}", **fields}
            if not isinstance(claim.get("text"), str):
                fault = (
                    f"expected a text, got {claim['text']!r}"
                    if "text" in claim
                    else "field required"
                )
                raise ValueError(f"{_name_of(block['text'])}: {fault}")
            if "label" in block or self.is_judged:
                label, finer = parse_judgement(claim.get("label"), _name_of(block.get("label", "")))
                claim |= {"label": label, "finer": finer}
            evidence = claim.pop("evidence", None)
            if evidence is not None:
                prefix = "p" if self.is_judged else f"p{place}_"
                cited = _passages(evidence, prefix)
                passages.extend(cited)
                claim["contexts"] = [passage["id"] for passage in cited]
            elif all_ids:
                claim.setdefault("contexts", all_ids)
            claims.append(claim)
        if passages or "evidence" in block:
            document["passages"] = passages


def _complete_judged(document: dict) -> None:
    (claim,) = document["claims"]
    claim["text"] = document["text"] = join_tokens(claim["text"].strip())
    texts = [passage["text"] for passage in document.get("passages", ())]
    unit = document.get("unit") or (short_hash("\n".join(texts)) if texts else claim["text"])
    topic = document.get("topic")
    document |= {
        "unit": str(unit),
        "topic": topic if isinstance(topic, str) and topic else claim["text"],
    }
    if document.get("group") in (None, ""):
        document.pop("group", None)


def _passages(evidence: str | list, prefix: str) -> list[dict]:
    listed = [evidence] if isinstance(evidence, str) else evidence
    passages = [{"text": item} if isinstance(item, str) else item for item in listed]
    filled = [p | {"text": join_tokens(p["text"].strip())} for p in passages if p["text"].strip()]
    return [{"id": f"{prefix}{place}"} | passage for place, passage in enumerate(filled)]


def _name_of(path: str | list) -> str:
    first = path[0] if isinstance(path, list) else path
    return first.partition(" | ")[0].rpartition(".")[2]


def _is_present(path: str | list, rows: Sequence[Mapping]) -> bool:
    if isinstance(path, list):
        return any(_is_present(alternative, rows) for alternative in path)
    evaluate: Evaluate = compile_path(path)
    return any(path in row or evaluate(row) not in (None, []) for row in rows)


@cache
def _defaults() -> dict[str, dict]:
    return yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))["defaults"]


@cache
def formats(path: str | Path = SHIPPED) -> dict[str, Format]:
    """Return the formats that a YAML file declares, by name.

    Raises:
        UserError: the file is not a mapping of names to declarations.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise UserError(
            f"{path}: no such format; expected a YAML file or one of {', '.join(formats())}"
        ) from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    return {name: Format(name, fields) for name, fields in content.items() if name != "defaults"}


def find_format(rows: Sequence[Mapping], key: str | None, name: str | None = None) -> Format | None:
    """Return the format of a file by its first rows.

    Args:
        rows: the first rows.
        key: one of ``RECORD_KEYS``, or ``None`` for documents.
        name: of a shipped format, or a YAML file whose formats are tried first.
    """
    shipped = formats()
    if name in shipped:
        return shipped[name]
    candidates: Iterable[Format] = [*(formats(name).values() if name else ()), *shipped.values()]
    if key is None:
        candidates = [format for format in candidates if format.makes_documents]
    elif key == "pairs":
        candidates = [f for f in candidates if "pairs" in f.declaration or "claims" in f.fields]
    else:
        candidates = [format for format in candidates if key in format.declaration]
    return next((format for format in candidates if format.applies(rows)), None)
