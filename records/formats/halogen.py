"""HALoGEN's biographies (AbhilashaRavichander/HALoGEN): atoms with a model's verdicts."""

import re

from records.formats.row_fields import document_of

# Its tables: ``| An atom. <tab> True |``, one a line.
_ATOM = re.compile(r"^\|?\s*(.+?)\s*(?:\t\s*(True|False))?\s*\|?$")
_VERDICTS = {"True": "S", "False": "NS"}
# The topics of one of its files stand in quotation marks, all of them.
_QUOTED = re.compile(r"""\s*(['"])\s*(.+?)\s*\1\s*""")


def halogen(row: dict, number: int) -> dict | None:
    """A biography with its atoms.

    ``atoms`` is the release's table of lines, or a list of ``text`` and ``label``. An atom without
    a verdict has no label. A row whose tables are empty is a text without atoms. Where a
    copy has nothing but the topic's name for a text, its atoms, joined, stand for it. A topic in
    quotation marks is the one without, as the other files have it.
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
        {"id": f"c{place}", "text": text, "label": label}
        for place, (text, label) in enumerate(pairs)
    ]
    text = row.get("output", row.get("response"))
    if claims and isinstance(text, str) and text.strip() == str(row.get("topic", "")).strip():
        text = " ".join(claim["text"] for claim in claims)
    document = document_of(row, number, text, claims=claims)
    quoted = _QUOTED.fullmatch(str(document["topic"]))
    return document | ({"topic": quoted[2]} if quoted else {})
