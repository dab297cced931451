"""A defence against a judge that reads one sentence: does the text state its own claims?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from components.english import without_qualifier
from components.sentences import split_sentences
from eval.decompose.pronouns import with_name
from eval.stages import Verifier, run_verifier
from eval.verify.in_parts import strictest
from eval.verify.whole_text import HEADING, written_text
from eval.verify.wrapped import WrappedVerifier
from records import Claim, Document, Passage, Verdict


@dataclass(eq=False)
class StatedByText(WrappedVerifier):
    """Judge supported claims a second time, by their own text instead of the evidence.

    A claim stays supported if the text around it supports it too (:func:`text_around`), so frames,
    headings and retractions count as far as the second verifier understands them. A pronoun at the
    beginning of a claim is read as the topic. The stricter of the two verdicts is the claim's.

    Args:
        verify: the verifier that reads the evidence.
        by_text: the verifier that reads the text, e.g. ``NLI`` with the model of
            ``configs/train/laptop/relation_framed.yaml``.
        sentences: sentences of the text that are read on both sides of a claim.
    """

    by_text: Verifier
    sentences: int = 2

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        judged = run_verifier(self.verify, documents, claims, passages)
        listed: list[list[Claim]] = []
        texts: list[list[Passage]] = []
        for document, row, verdicts in zip(documents, claims, judged, strict=True):
            name = without_qualifier(document.topic)
            supported = {verdict.claim for verdict in verdicts if verdict.label == "supported"}
            kept = [claim for claim in row if claim.id in supported]
            named = [{"text": with_name(c.text, name), "contexts": [c.id]} for c in kept]
            listed.append([c.model_copy(update=u) for c, u in zip(kept, named, strict=True)])
            around = [text_around(document, claim, self.sentences) for claim in kept]
            texts.append([Passage(id=c.id, text=t) for c, t in zip(kept, around, strict=True)])
        by_text = run_verifier(self.by_text, documents, listed, texts)
        rows = []
        for verdicts, second in zip(judged, by_text, strict=True):
            by_id = {verdict.claim: verdict for verdict in second}
            rows.append([strictest([v, by_id.get(v.claim, v)], v.claim) for v in verdicts])
        return rows


def text_around(document: Document, claim: Claim, sentences: int) -> str:
    """The sentences around a claim, the heading above it, and the text's first and last sentence.

    The whole text if it does not contain the claim's source.
    """
    written = written_text(document)
    units = _sentences(written)
    source = (claim.source or claim.text).strip()
    place = next((place for place, unit in enumerate(units) if source in unit), None)
    if place is None:
        return written
    heading = [unit for unit in units[:place] if HEADING.match(unit)][-1:]
    near = units[max(0, place - sentences) : place + sentences + 1]
    return "\n".join(dict.fromkeys([units[0], *heading, *near, units[-1]]))


@lru_cache(maxsize=1)  # the claims of a text come one after another
def _sentences(text: str) -> list[str]:
    return [unit.strip() for line in text.splitlines() for unit in split_sentences(line)]
