"""Detection of abstentions, which FActScore excludes."""

import re

from records.errors import UserError
from records.types import Document

# Applied to short texts only: a biography may quote such phrases.
_REFUSAL = re.compile(
    r"^(?:[^.!?]{0,20}\bhappy to help! however, )?"  # Llama 3
    r"((i['’]?m|i am) (sorry|unable|not (able|aware|familiar))|sorry"
    r"|i (do not|don['’]t|could not|couldn['’]t|cannot|can['’]t)"
    r"|i apologi[sz]e|unfortunately, i|as an ai|there is no (information|public)"
    r"|(could not|no) (find )?information)\b",
    re.IGNORECASE,
)
_REFUSAL_MAX_WORDS = 80


def responds(document: Document) -> bool:
    """Whether a text gives information about its topic (FActScore's abstention, by phrases).

    A document's own field ``responds`` takes precedence: true or false, in tables as text in any
    case. An empty text never responds.
    """
    text = document.text.strip()
    declared = (document.model_extra or {}).get("responds")
    if isinstance(declared, str):
        declared = {"true": True, "false": False}.get(declared.strip().lower(), declared)
    if not isinstance(declared, bool | None):
        raise UserError(
            f"document {document.id}: field 'responds': expected true or false, got {declared!r}"
        )
    if not text or declared is not None:
        return bool(text and declared)
    return not (len(text.split()) <= _REFUSAL_MAX_WORDS and _REFUSAL.match(text) is not None)
