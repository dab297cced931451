"""Whether a text says anything about its topic at all; FActScore leaves out those that do not."""

import re

from records.errors import UserError
from records.types import Document

# The text gives up on the topic. Short texts only: a biography may quote such words.
_REFUSAL = re.compile(
    r"^(?:[^.!?]{0,20}\bhappy to help! however, )?"  # Llama 3's opening
    r"((i['’]?m|i am) (sorry|unable|not (able|aware|familiar))|sorry"
    r"|i (do not|don['’]t|could not|couldn['’]t|cannot|can['’]t)"
    r"|i apologi[sz]e|unfortunately, i|as an ai|there is no (information|public)"
    r"|(could not|no) (find )?information)\b",
    re.IGNORECASE,
)
_REFUSAL_MAX_WORDS = 80


def responds(document: Document) -> bool:
    """Whether the text says anything about its topic (FActScore's abstention, by phrases).

    A document may say so itself, in a field ``responds``: true or false (in a table a text, in any
    case). An empty text never does.
    """
    text = document.text.strip()
    said = (document.model_extra or {}).get("responds")
    if isinstance(said, str):
        said = {"true": True, "false": False}.get(said.strip().lower(), said)
    if not isinstance(said, bool | None):
        raise UserError(f"document {document.id}: responds: {said!r}; give true or false")
    if not text or said is not None:
        return bool(text and said)
    return not (len(text.split()) <= _REFUSAL_MAX_WORDS and _REFUSAL.match(text) is not None)
