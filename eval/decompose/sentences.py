"""The simplest decomposer: each sentence is one claim."""

from collections.abc import Sequence
from dataclasses import dataclass

from components.sentences import split_sentences
from eval.decompose.pronouns import resolve
from records import Claim, Document


@dataclass(eq=False)
class Sentences:
    """Split the text into sentences; each is a claim and its own source.

    Args:
        resolve: replace a pronoun at the beginning of a claim by the name that it stands for, if
            the text before names only one (``eval/decompose/pronouns.py``). ``original`` is then
            the sentence, and ``resolved`` true. Without this, a passage about anything may support
            "It opened in 1950".
    """

    resolve: bool = False

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        return [self._claims(split_sentences(document.text)) for document in documents]

    def _claims(self, sentences: Sequence[str]) -> list[Claim]:
        texts = resolve(sentences) if self.resolve else sentences
        claims = []
        for index, (text, sentence) in enumerate(zip(texts, sentences, strict=True)):
            more = {"original": sentence, "resolved": True} if text != sentence else {}
            name = f"c{index}"
            claims.append(Claim(id=name, text=text, sentence=index, source=sentence, **more))
        return claims
