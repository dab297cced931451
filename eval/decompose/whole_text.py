"""One prompt per text: FactReasoner's Atomizer (2502.18573, appendix D, Table 28)."""

from collections.abc import Sequence
from pathlib import Path

from components.english import stems
from components.sentences import split_sentences
from eval.decompose.by_sentence import Failed
from eval.decompose.claim_lists import ask_for_claims
from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt
from records import Claim, Document
from records.abstention import responds

_PROMPT = Path(__file__).parent / "prompts" / "factreasoner.jinja"


class WholeText:
    """Decompose each text with one prompt into claims that can be understood without the text.

    Abstentions (:func:`records.abstention.responds`) have no claims; a text with an unreadable
    answer has one failed claim. A claim's ``source`` is the whole text, which the model saw; its
    ``sentence`` is the one that shares most stems with it. The instructions are the published
    ones, the examples are ours.

    Args:
        writer: the language model.
        prompt: a custom prompt file, with the field ``text``.
        temperature: sampling temperature; the paper does not state it.
        max_new_tokens: maximum tokens of the answer with all claims.
        seed: sampling seed.
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
        texts = [" ".join(d.text.split()) for d in documents if responds(d)]
        prompts = [self.prompt.messages(text=text) for text in texts]
        answers = zip(texts, ask_for_claims(self.asker, prompts, texts), strict=True)
        return [_claims(*next(answers)) if responds(d) else [] for d in documents]


def _claims(text: str, answer: list[str] | Failed) -> list[Claim]:
    if isinstance(answer, Failed):
        return [Claim(id="c0", text=text, source=text, failed=answer.reason)]
    sentences = [set(stems(sentence)) for sentence in split_sentences(text)]
    return [
        Claim(id=f"c{n}", text=claim, sentence=_nearest(claim, sentences), source=text)
        for n, claim in enumerate(answer)
    ]


def _nearest(claim: str, sentences: Sequence[set[str]]) -> int:
    claim_stems = set(stems(claim))
    shared = [len(claim_stems & sentence) for sentence in sentences]
    return shared.index(max(shared)) if shared else 0
