"""AmbigBio (2402.05629): names, texts, citations and verdicts.

Files, recognised by their fields; texts are numbered from 0, and the number is the document's id:

- ``AmbigBio.csv``: lines of a prompt, a tab and a Python list with the name; no header;
- ALCE's generations: ``args`` and ``data`` with ``question``, ``output`` and cited ``docs``;
- ALCE's scores (``….json.score``): ``autoais_log``, per citing sentence the NLI model's verdict;
- D-FActScore's output: ``decisions`` and ``global_decisions``, per text a list of atoms or null;
- generations with all of these (``atoms_independent``, ``atoms_grouped``, ``citations``).
"""

import ast
import re
from collections.abc import Iterable, Iterator

from records.formats.row_fields import document_of

_NAME_LINE = re.compile(r"([^\t]*)\t\s*(\[\s*(?:'.*'|\".*\")\s*\])\s*")
_QUESTION = re.compile(r"^Tell me a bio of\s+(.+?)\s*$", re.IGNORECASE | re.DOTALL)
# Citations in the sentences of ALCE's log.
_BRACKETS = re.compile(r"\s*\[\d+(?:\s*[,;–-]\s*\d+)*\]")
# Cited passages are page sections, each preceded by its page title.
_SECTION = re.compile(r"^Title: (.*)\n((?:(?!Title: ).*\n?)*)", re.MULTILINE)


def is_name_line(line: str) -> bool:
    """Whether a line is a row of ``AmbigBio.csv``."""
    return _NAME_LINE.fullmatch(line.rstrip("\r\n")) is not None


def name_rows(lines: Iterable[str]) -> Iterator[tuple[int, dict | str]]:
    """Yield the names of ``AmbigBio.csv``, or the error of a line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = _NAME_LINE.fullmatch(line.rstrip("\r\n"))
        try:
            (name,) = ast.literal_eval(match[2]) if match else ()
            yield number, {"prompt": match[1], "name": name.strip()}
        except (SyntaxError, ValueError):
            yield number, "name: expected a prompt, a tab and a list with one name, as ['Ada Lee']"


def rows_of_object(content: dict) -> list | None:
    """Return the rows of a file that is one object; ``None`` for other objects."""
    if "args" in content and isinstance(content.get("data"), list):
        return [{**row, "qid": index} for index, row in enumerate(content["data"])]
    if isinstance(content.get("autoais_log"), list):
        return _cited_texts(content["autoais_log"])
    independent, grouped = content.get("decisions"), content.get("global_decisions")
    if isinstance(independent, list) and isinstance(grouped, list):
        if len(independent) != len(grouped):
            raise ValueError(
                f"global_decisions: {len(grouped)} texts, decisions: {len(independent)}; the "
                "file may be incomplete"
            )
        return [
            {"qid": index, "atoms_independent": atoms, "atoms_grouped": by_person}
            for index, (atoms, by_person) in enumerate(zip(independent, grouped, strict=True))
        ]
    return None


def _cited_texts(log: list[dict]) -> list[dict]:
    texts: dict[object, dict] = {}
    for entry in log:
        qid, output = entry["qid"], entry["output"]
        text = {"qid": qid, "name": _name(entry["question"]), "output": output, "citations": []}
        claim = _BRACKETS.sub("", entry["claim"]).strip()
        cited = {"passage": entry["passage"], "entailed": entry["model_output"]}
        texts.setdefault(qid, text)["citations"].append({"claim": claim} | cited)
    return list(texts.values())


def _name(question: str) -> str:
    match = _QUESTION.match(question)
    return match[1] if match else question


def read_generation(row: dict, number: int) -> dict | None:
    """Read ALCE's generations; bracketed citations refer to ``docs``, from 1."""
    docs = row.get("docs")
    if not isinstance(docs, list) or not isinstance(row.get("output"), str):
        return None
    if not all(isinstance(doc, dict) and "title" in doc for doc in docs):
        return None
    passages = []
    for index, doc in enumerate(docs):
        text = doc.get("sent") or doc["text"] or doc["title"]
        passages.append({"id": f"p{index}", "title": doc["title"] or "", "text": text})
    return _document(row, number, row["output"], passages=passages)


def read_judged_text(row: dict, number: int) -> dict | None:
    """Read atoms with FActScore's verdicts, and the cited passages if present.

    Claims are the atoms of ``atoms_independent``, each judged alone. All distinct cited sections
    are contexts of every atom, since atoms do not name their citation. Citations and both lists of
    atoms are kept. D-FActScore's output has no texts; the joined atoms replace them.
    """
    if "atoms_independent" not in row:
        return None
    more: dict[str, object] = {
        name: _atoms(row.get(name)) for name in ("atoms_independent", "atoms_grouped")
    }
    atoms = more["atoms_independent"] or []
    contexts = {}
    if isinstance(row.get("citations"), list):
        more |= {"citations": row["citations"], "passages": _cited_passages(row["citations"])}
        contexts = {"contexts": [passage["id"] for passage in more["passages"]]}
    claims = [
        {
            "id": f"c{index}",
            "text": atom["atom"],
            "label": "S" if _is_supported(atom) else "NS",
            **contexts,
        }
        for index, atom in enumerate(atoms)
    ]
    text = row.get("output")
    text = " ".join(atom["atom"] for atom in atoms) if text is None else text
    return _document(row, number, text, claims=claims, **more)


def _is_supported(atom: dict) -> bool:
    supported = atom["is_supported"]
    if supported not in (0, 1):
        raise ValueError(f"is_supported: expected true or false, got {supported!r}")
    return bool(supported)


def _atoms(atoms: list[dict] | None) -> list[dict] | None:
    """Normalise ``supporting_topic`` to one title or ``None``.

    Some files have lists of up to one title; after grouping they hold only its first letter.
    """
    if not isinstance(atoms, list):
        return atoms
    normalised = []
    for atom in atoms:
        title = atom["supporting_topic"]
        if isinstance(title, list):
            title = title[0] if title and len(title[0]) > 1 else None
        normalised.append({**atom, "supporting_topic": title})
    return normalised


def read_cited_text(row: dict, number: int) -> dict | None:
    """Read texts with the verdicts of ALCE's NLI model on their citations."""
    citations = row.get("citations")
    if (
        not isinstance(citations, list)
        or "qid" not in row
        or not isinstance(row.get("output"), str)
    ):
        return None
    return _document(row, number, row["output"], citations=citations)


def _cited_passages(citations: list[dict]) -> list[dict]:
    sections: dict[tuple[str, str], None] = {}
    for citation in citations:
        for title, text in _SECTION.findall("\n".join(citation["passage"])):
            # A section repeats its title.
            sections[title, text.strip().removeprefix(title).strip() or text.strip() or title] = (
                None
            )
    return [
        {"id": f"p{index}", "title": title, "text": text}
        for index, (title, text) in enumerate(sections)
    ]


def _document(row: dict, number: int, text: str, **more: object) -> dict:
    qid = row.get("qid", number - 1)
    name = f"{row['generator']}-{qid}" if row.get("generator") else str(qid)
    topic = row.get("name") or _name(row.get("question") or f"text {qid}")
    return document_of({**row, "id": name, "topic": topic}, number, text, **more)


def citation_pairs(row: dict) -> list[dict]:
    """Return one pair per citation and cited passage, with the NLI model's verdict.

    Citations with an empty ``claim`` are skipped.
    """
    name = row.get("name") or row.get("topic")
    pairs = []
    for citation in row["citations"]:
        passage, entailed = citation["passage"], citation["entailed"]
        if entailed not in (0, 1):
            raise ValueError(f"citations: entailed: expected 0 or 1, got {entailed!r}")
        premise = passage if isinstance(passage, str) else "\n".join(passage)
        label = "entailment" if entailed else "not_entailment"
        pair = {"premise": premise, "hypothesis": citation["claim"], "label": label}
        pairs.append(pair | {"source": "citations", "group": str(name) if name else premise})
    return [pair for pair in pairs if pair["hypothesis"].strip()]


def atom_pairs(row: dict) -> list[dict]:
    """Return pairs of atoms grouped by person and the cited sections of one title.

    An atom is entailed by its supporting title. An unsupported atom is not entailed by any title,
    except the one that supports it when judged alone.
    """
    independent = {
        (a["atom"], a["supporting_topic"]) for a in _atoms(row.get("atoms_independent")) or []
    }
    titles: dict[str, list[str]] = {}
    for passage in _cited_passages(row.get("citations") or []):
        titles.setdefault(passage["title"], []).append(passage["text"])
    pairs = []
    for atom in row.get("atoms_grouped") or []:
        text, supporting, entailed = atom["atom"], atom["supporting_topic"], _is_supported(atom)
        for title, texts in titles.items():
            if title == supporting if entailed else (text, title) not in independent:
                pair = {"premise": f"{title}. " + "\n".join(texts), "hypothesis": text}
                label = "entailment" if entailed else "not_entailment"
                pairs.append(pair | {"label": label, "group": str(row["name"])})
    return pairs
