"""The files of AmbigBio (2402.05629) as rows of ours: names, texts, citations, verdicts.

The files that its authors published, by their fields:

- ``AmbigBio.csv``: a prompt, a tab and a Python list with the name a line, and no header;
- ALCE's generations: one object of ``args`` and ``data``, of each text ``question``, ``output``
  with its brackets, and ``docs`` with ``title`` and ``text``;
- ALCE's scores (``….json.score``): one object whose ``autoais_log`` has an entry for each sentence
  that cites, with the verdict of the NLI model;
- D-FActScore's output: one object of ``decisions`` and ``global_decisions``, a list of atoms a
  text, null for a text that abstains;
- generations with all of these in one row (``atoms_independent``, ``atoms_grouped``,
  ``citations``).

Texts are numbered from 0 as ALCE's ``data`` has them, in the three files of one object alike. The
number is the document's ``id``, so that what the files say of a text can be put together.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from records.formats.row_fields import document_of

_NAME_LINE = re.compile(r"([^\t]*)\t\s*(\[\s*(?:'.*'|\".*\")\s*\])\s*")
_QUESTION = re.compile(r"^Tell me a bio of\s+(.+?)\s*$", re.IGNORECASE | re.DOTALL)
# ALCE's log has the sentences with their brackets.
_BRACKETS = re.compile(r"\s*\[\d+(?:\s*[,;–-]\s*\d+)*\]")
# Cited passages: sections of pages, one after the other, each under its page's title.
_SECTION = re.compile(r"^Title: (.*)\n((?:(?!Title: ).*\n?)*)", re.MULTILINE)


def is_name_line(line: str) -> bool:
    """Whether a line is one of ``AmbigBio.csv``, which has no header."""
    return _NAME_LINE.fullmatch(line.rstrip("\r\n")) is not None


def name_rows(lines: Iterable[str]) -> Iterator[tuple[int, dict | str]]:
    """The names of ``AmbigBio.csv``, or what is wrong with a line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = _NAME_LINE.fullmatch(line.rstrip("\r\n"))
        try:
            (name,) = ast.literal_eval(match[2]) if match else ()
            yield number, {"prompt": match[1], "name": name.strip()}
        except (SyntaxError, ValueError):
            yield number, "name: expected a prompt, a tab and a list with one name, as ['Ada Lee']"


def rows_of_object(whole: dict) -> list | None:
    """The rows of a file that is one object, ``None`` of any other object.

    Raises:
        ValueError: it is such a file, but not a whole one.
    """
    if "args" in whole and isinstance(whole.get("data"), list):
        return [{**row, "qid": place} for place, row in enumerate(whole["data"])]
    if isinstance(whole.get("autoais_log"), list):
        return _cited_texts(whole["autoais_log"])
    alone, grouped = whole.get("decisions"), whole.get("global_decisions")
    if isinstance(alone, list) and isinstance(grouped, list):
        if len(alone) != len(grouped):
            raise ValueError(
                f"global_decisions: {len(grouped)} texts where decisions has {len(alone)}; is the "
                "file whole?"
            )
        return [
            {"qid": place, "atoms_independent": atoms, "atoms_grouped": by_person}
            for place, (atoms, by_person) in enumerate(zip(alone, grouped, strict=True))
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
    found = _QUESTION.match(question)
    return found[1] if found else question


def read_generation(row: dict, number: int) -> dict | None:
    """ALCE's generations; ``docs`` are what the brackets of the text name, from 1."""
    docs = row.get("docs")
    if not isinstance(docs, list) or not isinstance(row.get("output"), str):
        return None
    passages = []
    for place, doc in enumerate(docs):
        text = doc.get("sent") or doc["text"] or doc["title"]
        passages.append({"id": f"p{place}", "title": doc["title"] or "", "text": text})
    return _document(row, number, row["output"], passages=passages)


def read_judged_text(row: dict, number: int) -> dict | None:
    """Atoms with FActScore's verdict, and the passages that the text cites where they are told.

    ``atoms_independent`` judges each atom by itself. All sections that the text cites, each once,
    are the contexts of every atom, since an atom does not say which citation is its own. The
    citations and both lists of atoms stay beside. D-FActScore's output has no texts; they are
    the atoms one after the other.
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
            "id": f"c{place}",
            "text": atom["atom"],
            "label": "S" if _is_supported(atom) else "NS",
            **contexts,
        }
        for place, atom in enumerate(atoms)
    ]
    text = row.get("output")
    text = " ".join(atom["atom"] for atom in atoms) if text is None else text
    return _document(row, number, text, claims=claims, **more)


def _is_supported(atom: dict) -> bool:
    said = atom["is_supported"]
    if said not in (0, 1):
        raise ValueError(f"is_supported: expected true or false, got {said!r}")
    return bool(said)


def _atoms(given: list[dict] | None) -> list[dict] | None:
    """Atoms with one supporting title each, or none.

    Some released files have lists there, of no title or of one; where they hold only a title's
    first letter, as they do after grouping, the title is not known.
    """
    if not isinstance(given, list):
        return given
    found = []
    for atom in given:
        title = atom["supporting_topic"]
        if isinstance(title, list):
            title = title[0] if title and len(title[0]) > 1 else None
        found.append({**atom, "supporting_topic": title})
    return found


def read_cited_text(row: dict, number: int) -> dict | None:
    """Texts with the verdicts of ALCE's NLI model on their citations."""
    given = row.get("citations")
    if not isinstance(given, list) or "qid" not in row or not isinstance(row.get("output"), str):
        return None
    return _document(row, number, row["output"], citations=given)


def _cited_passages(citations: list[dict]) -> list[dict]:
    found: dict[tuple[str, str], None] = {}
    for citation in citations:
        for title, text in _SECTION.findall("\n".join(citation["passage"])):
            # A section starts with its title once more.
            found[title, text.strip().removeprefix(title).strip() or text.strip() or title] = None
    return [
        {"id": f"p{place}", "title": title, "text": text}
        for place, (title, text) in enumerate(found)
    ]


def _document(row: dict, number: int, text: str, **more: object) -> dict:
    place = row.get("qid", number - 1)
    name = f"{row['generator']}-{place}" if row.get("generator") else str(place)
    topic = row.get("name") or _name(row.get("question") or f"text {place}")
    return document_of({**row, "id": name, "topic": topic}, number, text, **more)


def citation_pairs(row: dict) -> list[dict]:
    """Each citation of a text and what it cites, with the verdict of the authors' NLI model.

    A citation that stands behind no words (an empty ``claim``) makes no pair.
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
    """The atoms after grouping by person, each with the cited sections of one title.

    The title that supports an atom entails it. An atom that its person's title does not support is
    not entailed by any title, but for the one that supports it where it is judged by itself.
    """
    alone = {(a["atom"], a["supporting_topic"]) for a in _atoms(row.get("atoms_independent")) or []}
    titles: dict[str, list[str]] = {}
    for passage in _cited_passages(row.get("citations") or []):
        titles.setdefault(passage["title"], []).append(passage["text"])
    pairs = []
    for atom in row.get("atoms_grouped") or []:
        text, supporting, entailed = atom["atom"], atom["supporting_topic"], _is_supported(atom)
        for title, texts in titles.items():
            if title == supporting if entailed else (text, title) not in alone:
                pair = {"premise": f"{title}. " + "\n".join(texts), "hypothesis": text}
                label = "entailment" if entailed else "not_entailment"
                pairs.append(pair | {"label": label, "group": str(row["name"])})
    return pairs
