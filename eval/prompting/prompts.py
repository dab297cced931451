"""Prompts: jinja2 template files, identified by the hash of their text.

A file starts with a comment that names its version and its source. A line ``=== system``,
``=== user`` or ``=== assistant`` starts a message; a file without such lines is one user message.
"""

import re
from pathlib import Path

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from eval.models.chat import Message
from records import UserError, sha256_text

_ROLE = re.compile(r"^=== (system|user|assistant)[ \t]*\n", re.MULTILINE)
# Sandboxed, since a third-party template could otherwise run code.
_JINJA = SandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)


class PromptFile:
    """A file whose text is part of prompts; ``sha256`` goes into journal keys and manifests."""

    def __init__(self, path: Path | str):
        path = Path(path)
        if not path.is_file():
            raise UserError(f"{path}: no such file; prompts and their examples are files")
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise UserError(f"{path}: not UTF-8; convert it to that encoding") from None
        self.name = path.name
        self.sha256 = sha256_text(self.text)


class Prompt(PromptFile):
    """A prompt template."""

    def __init__(self, path: Path | str):
        super().__init__(path)
        # The roles are split before the fields are filled in, so no field can start a message.
        parts = _ROLE.split(self.text)
        head = parts[0] if len(parts) > 1 else ""
        pairs = list(zip(parts[1::2], parts[2::2], strict=True)) or [("user", self.text)]
        try:
            self._messages = [(role, _JINJA.from_string(head + body)) for role, body in pairs]
        except TemplateError as error:
            raise UserError(f"{path}: not a valid jinja2 template ({error})") from None

    def messages(self, **fields: object) -> list[Message]:
        """Render the messages with the fields."""
        try:
            messages = [
                {"role": role, "content": template.render(**fields).strip()}
                for role, template in self._messages
            ]
        except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
            raise UserError(
                f"{self.name}: {error}; the fields are {', '.join(sorted(fields))}"
            ) from None
        if not any(message["content"] for message in messages):
            names = ", ".join(sorted(fields))
            raise UserError(f"{self.path}: the rendered prompt is empty; the fields are {names}")
        return messages
