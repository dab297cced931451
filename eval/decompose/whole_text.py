"""One prompt for a whole text: FactReasoner's Atomizer (2502.18573, appendix D, Table 28)."""

from collections.abc import Sequence
from pathlib import Path

from components.overlap import stems
from components.sentences import remove_citations, split_sentences
from eval.decompose.answers import ask_for_claims
from eval.decompose.by_sentence import Failed
from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from records import Claim, Document
from records.abstention import responds

_PROMPT = Path(__file__).parent / "prompts" / "factreasoner.jinja"


class WholeText:
    """Decompose each text by one prompt, in one shot; its claims are to stand alone already.

    Texts that do not respond (:func:`records.abstention.responds`) have no claims; of a text whose
    answer cannot be read there is one that has failed. A claim's ``source`` is the whole text,
    which the model saw; its ``sentence`` is the one that shares most stems with it. The
    instructions are the published ones, the examples our own.

    Args:
        writer: the language model.
        prompt: a prompt file of your own, with the field ``text``.
        temperature: of the sampling; the paper does not state it.
        max_new_tokens: of an answer with all claims.
        seed: of the sampling.
    """

    def __init__(
        self,
        writer: Writer,
        prompt: Path | None = None,
        temperature: float = 0.0,
        max_new_tokens: int = 2048,
        seed: int = 0,
    ):
        self.prompt = Prompt(prompt or _PROMPT)
        self.asker = Asker(writer, temperature, max_new_tokens, retries=0, seed=seed)

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        texts = [" ".join(remove_citations(d.text).split()) for d in documents if responds(d)]
        prompts = [self.prompt.messages(text=text) for text in texts]
        found = zip(texts, ask_for_claims(self.asker, prompts, texts), strict=True)
        return [_claims(*next(found)) if responds(d) else [] for d in documents]


def _claims(text: str, found: list[str] | Failed) -> list[Claim]:
    if isinstance(found, Failed):
        return [Claim(id="c0", text=text, source=text, failed=found.reason)]
    sentences = [set(stems(sentence)) for sentence in split_sentences(text)]
    return [
        Claim(id=f"c{n}", text=claim, sentence=_nearest(claim, sentences), source=text)
        for n, claim in enumerate(found)
    ]


def _nearest(claim: str, sentences: Sequence[set[str]]) -> int:
    own = set(stems(claim))
    shared = [len(own & sentence) for sentence in sentences]
    return shared.index(max(shared)) if shared else 0
