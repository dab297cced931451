"""On-disk store of pairs and indexes, since WAFER has millions of rows."""

import json
import re
import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise

from tqdm import tqdm

from data_builders.published.wafer.wafer_rows import chunk_number
from records import BadInput, iter_rows

HASHES, BANDS = 12, 4  # near-duplicate index: four bands of three minima
_MASK = (1 << 61) - 1
_FACTORS = [((2 * i + 1) ** 15 & _MASK, i * 0x9E3779B97F4A7C15) for i in range(1, HASHES + 1)]


def number_of(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "big") & _MASK


def bigrams(text: str) -> frozenset[str]:
    """Return the lower-cased word bigrams of a text, without punctuation."""
    words = re.findall(r"\w+", text.lower())
    return frozenset(f"{a} {b}" for a, b in pairwise(["", *words]))


def _bands(shingles: frozenset[str]) -> list[int]:
    numbers = [number_of(shingle) for shingle in sorted(shingles)]
    minima = [min((n * factor + shift) & _MASK for n in numbers) for factor, shift in _FACTORS]
    width = HASHES // BANDS
    return [number_of(f"{b}:{minima[b * width : (b + 1) * width]}") for b in range(BANDS)]


class Store:
    """Pairs, splits of pages, passages and near-duplicate index, in an empty SQLite file."""

    def __init__(self, base: sqlite3.Connection):
        self.base = base
        self.base.executescript(
            "BEGIN;"
            "CREATE TABLE pair(place INTEGER PRIMARY KEY, split TEXT, rank INTEGER, row TEXT);"
            "CREATE TABLE band(key INTEGER PRIMARY KEY, place INTEGER);"
            "CREATE TABLE page(key INTEGER PRIMARY KEY, split TEXT);"
            "CREATE TABLE passage(url TEXT, chunk TEXT, number INTEGER, text TEXT, title TEXT);"
        )

    def add_passages(self, path: str) -> None:
        for number, row in tqdm(iter_rows(path), desc="passages", unit="row", disable=None):
            for field in ("url", "text"):
                if not isinstance(row.get(field), str) or not row[field]:
                    raise BadInput([f"{path}:{number}: {field}: field required"])
            chunk = str(row.get("chunk_id", ""))
            text = " ".join(row["text"].split())
            values = (row["url"], chunk, chunk_number(chunk), text, str(row.get("title") or ""))
            self.base.execute("INSERT INTO passage VALUES (?, ?, ?, ?, ?)", values)
        self.base.execute("CREATE INDEX IF NOT EXISTS by_url ON passage(url)")

    def text(self, citation: dict) -> str:
        """Return the cited chunks of a page (all if none is cited), and fill in the title."""
        query = "SELECT chunk, text, title FROM passage WHERE url = ? ORDER BY number, rowid"
        rows = self.base.execute(query, (citation["url"],)).fetchall()
        chunks = {str(chunk) for chunk in citation["chunks"]}
        rows = [row for row in rows if row[0] in chunks] or rows
        citation["reference_title"] = citation["reference_title"] or (rows[0][2] if rows else "")
        return " ".join(dict.fromkeys(text for _, text, _ in rows))

    def splits_of(self, citation: dict) -> set[str]:
        query = "SELECT split FROM page WHERE key IN (?, ?)"
        return {split for (split,) in self.base.execute(query, _page_keys(citation))}

    def index(self, citation: dict, split: str) -> None:
        rows = [(key, split) for key in _page_keys(citation)]
        self.base.executemany("INSERT OR IGNORE INTO page VALUES (?, ?)", rows)

    def near_duplicate(self, claim: str, threshold: float) -> bool:
        """Return whether an earlier claim is a near-duplicate; if not, index this one."""
        shingles = bigrams(claim)
        if not shingles:
            return False
        keys = _bands(shingles)
        placeholders = ",".join("?" * len(keys))
        query = (
            "SELECT DISTINCT json_extract(row, '$.claim') FROM band JOIN pair USING (place) "
            f"WHERE key IN ({placeholders})"
        )
        for (earlier,) in self.base.execute(query, keys):
            other = bigrams(earlier)
            if len(shingles & other) >= threshold * len(shingles | other):
                return True
        (last,) = self.base.execute("SELECT coalesce(max(place), 0) FROM pair").fetchone()
        rows = [(key, last + 1) for key in keys]  # the rowid of the next `add`
        self.base.executemany("INSERT OR IGNORE INTO band VALUES (?, ?)", rows)
        return False

    def add(self, split: str, rank: int, row: dict) -> None:
        line = json.dumps(row, ensure_ascii=False)
        values = (split, rank, line)
        self.base.execute("INSERT INTO pair(split, rank, row) VALUES (?, ?, ?)", values)

    def counts(self) -> dict[str, int]:
        return dict(self.base.execute("SELECT split, count(*) FROM pair GROUP BY split"))

    def rows(self, split: str, sample: int | None) -> Iterator[dict]:
        """Yield at most ``sample`` rows of a split, in input order."""
        query = (
            "SELECT row FROM pair WHERE place IN (SELECT place FROM pair WHERE split = ? "
            "ORDER BY rank, place LIMIT ?) ORDER BY place"
        )
        most = -1 if sample is None else sample
        return (json.loads(row) for (row,) in self.base.execute(query, (split, most)))


def _page_keys(citation: dict) -> tuple[int, int]:
    return number_of(f"url:{citation['url']}"), number_of(f"text:{citation['reference'].lower()}")
