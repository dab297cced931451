"""HALoGEN (AbhilashaRavichander/HALoGEN): biographies with atoms and a model's verdicts."""

import re

from records.formats.row_fields import document_of

# Table rows: ``| An atom. <tab> True |``.
_ATOM = re.compile(r"^\|?\s*(.+?)\s*(?:\t\s*(True|False))?\s*\|?$")
_VERDICTS = {"True": "S", "False": "NS"}
# One file has all its topics in quotation marks.
_QUOTED = re.compile(r"""\s*(['"])\s*(.+?)\s*\1\s*""")


def halogen(row: dict, number: int) -> dict | None:
    """Read a biography with its atoms.

    ``atoms`` is the release's table of lines, or a list of ``text`` and ``label``. Atoms without a
    verdict have no label. Rows with empty tables are texts without atoms. If the text is only the
    topic's name, the joined atoms replace it. Quotation marks around a topic are removed, as in the
    other files.
    """
    atoms = row.get("atoms")
    listed = isinstance(atoms, list) and "contexts" not in row
    if not (isinstance(atoms, str) or listed or "hallucinated atoms" in row):
        return None
    if listed:
        pairs = [(atom["text"], atom.get("label")) for atom in atoms]
    else:
        lines = [line.strip() for line in (atoms or "").splitlines() if line.strip("| \t")]
        pairs = [_ATOM.match(line).groups() for line in lines]
        pairs = [(text, _VERDICTS.get(verdict)) for text, verdict in pairs]
    claims = [
        {"id": f"c{index}", "text": text, "label": label}
        for index, (text, label) in enumerate(pairs)
    ]
    text = row.get("output", row.get("response"))
    if claims and isinstance(text, str) and text.strip() == str(row.get("topic", "")).strip():
        text = " ".join(claim["text"] for claim in claims)
    document = document_of(row, number, text, claims=claims)
    quoted = _QUOTED.fullmatch(str(document["topic"]))
    return document | ({"topic": quoted[2]} if quoted else {})
