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

_NAME_LINE = re.compile(r"([^\t]*)\t\s*(\[\s*(?:'.*'|\".*\")\s*\])\s*")
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
        text = {name: entry[name] for name in ("qid", "question", "output")} | {"citations": []}
        claim = _BRACKETS.sub("", entry["claim"]).strip()
        cited = {"passage": entry["passage"], "entailed": entry["model_output"]}
        texts.setdefault(entry["qid"], text)["citations"].append({"claim": claim} | cited)
    return list(texts.values())


def generation_id(row: dict) -> str | None:
    """Return the number of a text, after its generator if it is named."""
    number, generator = row.get("qid"), row.get("generator")
    return f"{generator}-{number}" if generator and number is not None else number


def text_number(row: dict) -> str:
    """Return a topic for a text whose name is not published."""
    return f"text {row['qid']}"


def word_of_truth(value: object) -> str:
    """Return the word for ``is_supported``."""
    if value not in (0, 1):
        raise ValueError(f"is_supported: expected true or false, got {value!r}")
    return "supported" if value else "not_supported"


def single_titles(atoms: list[dict] | None) -> list[dict] | None:
    """Normalise the atoms' ``supporting_topic`` to one title or ``None``.

    Some files have lists of up to one title; after grouping they hold only its first letter.
    """
    if atoms is None:
        return None
    normalised = []
    for atom in atoms:
        title = atom["supporting_topic"]
        if isinstance(title, list):
            title = title[0] if title and len(title[0]) > 1 else None
        normalised.append({**atom, "supporting_topic": title})
    return normalised


def cited_sections(citations: list[dict] | None) -> list[dict] | None:
    """Return the distinct cited page sections with title and text."""
    sections: dict[tuple[str, str], None] = {}
    for citation in citations or ():
        for title, text in _SECTION.findall("\n".join(citation["passage"])):
            # A section repeats its title.
            body = text.strip().removeprefix(title).strip() or text.strip() or title
            sections[title, body] = None
    return citations and [{"title": title, "text": text} for title, text in sections]


def citation_pairs(row: dict) -> list[dict]:
    """Return one pair per citation and cited passage, with the NLI model's verdict.

    Citations with an empty ``claim`` are skipped.
    """
    pairs = []
    for citation in row["citations"]:
        passage, entailed = citation["passage"], citation["entailed"]
        if entailed not in (0, 1):
            raise ValueError(f"citations: entailed: expected 0 or 1, got {entailed!r}")
        premise = passage if isinstance(passage, str) else "\n".join(passage)
        label = "entailment" if entailed else "not_entailment"
        if citation["claim"].strip():
            pairs.append({"premise": premise, "hypothesis": citation["claim"], "label": label})
    return pairs


def atom_pairs(row: dict) -> list[dict]:
    """Return pairs of atoms grouped by person and the cited sections of one title.

    An atom is entailed by its supporting title. An unsupported atom is not entailed by any title,
    except the one that supports it when judged alone.
    """
    alone = {
        (a["atom"], a["supporting_topic"])
        for a in single_titles(row.get("atoms_independent")) or []
    }
    titles: dict[str, list[str]] = {}
    for passage in cited_sections(row.get("citations")) or []:
        titles.setdefault(passage["title"], []).append(passage["text"])
    pairs = []
    for atom in row.get("atoms_grouped") or []:
        text, supporting, word = (
            atom["atom"],
            atom["supporting_topic"],
            word_of_truth(atom["is_supported"]),
        )
        for title, texts in titles.items():
            if title == supporting if word == "supported" else (text, title) not in alone:
                premise = f"{title}. " + "\n".join(texts)
                pairs.append({"premise": premise, "hypothesis": text, "label": word})
    return pairs
