"""``fetch NAME``: download files that authors released, listed in ``downloads.yaml``."""

import shutil
import tarfile
from pathlib import Path

import requests
import yaml
from pydantic import BaseModel, ConfigDict
from tqdm import tqdm

from clients.polite import PoliteClient, Transient, one_line
from records import UserError, sha256_file, write_json
from records.reading import load_json
from records.writing import lock_folder

SETS = Path(__file__).with_name("downloads.yaml")
_BLOCK = 1 << 20  # bytes


class ReleasedFile(BaseModel):
    """A URL, the file's published SHA-256, if there is one, and the folder for its content."""

    url: str
    sha256: str | None = None
    folder: str = ""


class Release(BaseModel):
    """An entry of ``downloads.yaml``, which explains the fields."""

    model_config = ConfigDict(extra="forbid")

    source: str
    licence: str
    files: dict[str, ReleasedFile | str] = {}
    extract: bool = False
    holds: list[str] = []


class Download(PoliteClient):
    """Downloads one file; an interrupted download resumes where it stopped (HTTP ``Range``)."""

    def to(self, path: Path) -> None:
        """Write the file to ``path``, through ``path.partial``."""
        self._attempts(lambda: self._attempt(path))

    def _attempt(self, path: Path) -> None:
        partial, validator = Path(f"{path}.partial"), Path(f"{path}.validator")
        start = partial.stat().st_size if partial.is_file() and validator.is_file() else 0
        # Without compression, so that a range counts the bytes of the file. If the file changed
        # since (If-Range), the server sends it whole.
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": validator.read_text("utf-8")}
        try:
            response = requests.get(self.endpoint, headers=headers, stream=True, timeout=60)
            with response, tqdm(unit="B", unit_scale=True, desc=path.name, disable=None) as bar:
                if response.status_code == 416:  # nothing is left
                    partial.unlink()
                if response.status_code == 416 or response.status_code >= 500:
                    raise Transient(f"HTTP {response.status_code}")
                if response.status_code not in {200, 206}:
                    raise UserError(f"{self.endpoint}: HTTP {response.status_code}; check the URL")
                start = start if response.status_code == 206 else 0
                tag = response.headers.get("ETag", "")
                if tag and not tag.startswith("W/"):
                    validator.write_text(tag, "utf-8")
                else:
                    validator.unlink(missing_ok=True)
                length = response.headers.get("Content-Length")
                bar.total = start + int(length) if length else None
                bar.update(start)
                with partial.open("ab" if start else "wb") as file:
                    for block in response.iter_content(_BLOCK):
                        bar.update(file.write(block))
                if bar.total not in {None, partial.stat().st_size}:
                    raise Transient(f"{partial.stat().st_size:,} of {bar.total:,} bytes received")
        except requests.RequestException as error:
            raise Transient(f"{type(error).__name__}: {one_line(error)}") from None
        partial.replace(path)
        validator.unlink(missing_ok=True)


def fetch(name: str, output: Path = Path("downloads"), sets: Path = SETS) -> str:
    """Download the files that a paper's authors released, with checksums, and show their licence.

    Interrupted downloads resume. ``fetched.json`` in the folder records URLs, sizes and SHA-256;
    files that it lists are not downloaded again, and later changes of a file are reported.

    Args:
        name: a set of ``data_builders/downloads.yaml``.
        output: parent of the folder ``name``.
        sets: YAML with the sets.

    Returns:
        A summary for the terminal.
    """
    releases = yaml.safe_load(sets.read_text("utf-8"))
    if name not in releases:
        raise UserError(f"{name}: not in {sets}; expected one of: {', '.join(releases)}")
    release = Release(**releases[name])
    if not release.files:
        paths = ", ".join(str(output / path) for path in release.holds)
        raise UserError(f"{name}: get it from {release.source}, and save it as {paths}")
    folder = output / name
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        manifest = folder / "fetched.json"
        fetched = load_json(manifest)["files"] if manifest.is_file() else {}
        for file, entry in release.files.items():
            entry = ReleasedFile(url=entry) if isinstance(entry, str) else entry
            path, record = folder / file, fetched.get(file, {})
            if record.get("url") != entry.url or not path.is_file():
                Download(entry.url, "factfoundry").to(path)
                record = {}
            digest = sha256_file(path)
            if digest != (expected := entry.sha256 or record.get("sha256", digest)):
                raise UserError(
                    f"{path}: SHA-256 {digest}, expected {expected}; delete it to fetch it again"
                )
            if release.extract:
                _extract(path, folder / entry.folder)
            size = path.stat().st_size
            fetched[file] = {"url": entry.url, "bytes": size, "sha256": digest}
            write_json(
                manifest, release.model_dump(include={"source", "licence"}) | {"files": fetched}
            )
    sizes = [f"  {file}: {record['bytes']:,} bytes" for file, record in fetched.items()]
    return "\n".join([f"{folder}: {release.source}; licence: {release.licence}", *sizes])


def _extract(archive: Path, folder: Path) -> None:
    """Unpack into the folder, without the top folder; links and paths outside are errors."""
    scratch = archive.with_name(".extracted")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        with tarfile.open(archive) as members:
            members.extractall(scratch, filter="data")
    except tarfile.TarError as error:
        raise UserError(f"{archive}: not extracted: {error}; delete it to fetch it again") from None
    tops = list(scratch.iterdir())
    top = tops[0] if len(tops) == 1 and tops[0].is_dir() else scratch
    shutil.copytree(top, folder, dirs_exist_ok=True)
    shutil.rmtree(scratch)
