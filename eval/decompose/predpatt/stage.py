"""PredPatt as a decomposer: parse, extract, and a sentence for each predicate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eval.decompose.answers import ask_for_claims
from eval.decompose.by_sentence import BySentence, Failed, Place
from eval.decompose.predpatt.extract import extract
from eval.decompose.predpatt.realise import realise
from eval.decompose.predpatt.show import show
from eval.decompose.predpatt.structures import Options, Predicate
from eval.decompose.ud.parsers import Parser
from eval.decompose.ud.tree import check_ud
from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt

_PROMPT = Path(__file__).parents[1] / "prompts" / "predpatt_realise.jinja"
_ALL = Options()


class PredPatt(BySentence):
    """Decompose each sentence by rule into its predicates (White et al. 2016).

    Its parse is read by PredPatt's rules, and each predicate becomes a sentence: written by a
    language model as in 2403.11903 (appendix B), or by rules of our own
    (:mod:`eval.decompose.predpatt.realise`). A sentence without a parse, or whose parse is not
    Universal Dependencies, counts as failed. One in which PredPatt finds no predicate (a heading,
    a name) has no subclaims, as in the original.

    Args:
        parser: gives the parses.
        options: what is extracted; all that 2403.11903 extracts unless said otherwise.
        writer: a language model that writes the sentences; without one the rules do.
        prompt: a prompt file of your own; its fields are ``sentence`` and ``structures``, the
            predicates as PredPatt prints them.
        temperature: of sampling; 0 takes the likeliest token.
        max_new_tokens: the longest answer.
        seed: of sampling.
    """

    def __init__(
        self,
        parser: Parser,
        options: Options = _ALL,
        writer: Writer | None = None,
        prompt: Path | None = None,
        temperature: float = 0.0,
        max_new_tokens: int = 512,
        seed: int = 0,
    ):
        self.parser = parser
        self.options = options
        self.asker = Asker(writer, temperature, max_new_tokens, 0, seed) if writer else None
        self.prompt = Prompt(prompt or _PROMPT) if writer else None

    def holds(self) -> list[object]:
        """The parser, and what words its claims."""
        return [self.parser, self.asker, self.prompt]

    def subclaims(self, places: Sequence[Place]) -> list[list[str] | Failed]:
        """A sentence for each predicate, in the order of their roots, each once."""
        sentences = [place.sentence for place in places]
        found: list[list[str] | Failed] = []
        asked: list[tuple[int, list[Predicate]]] = []
        for row, tree in enumerate(self.parser.parse(sentences)):
            if tree is None:
                found.append(Failed("no parse"))
                continue
            if fault := check_ud(tree):
                found.append(Failed(f"no Universal Dependencies: {fault}"))
                continue
            predicates = extract(tree, self.options)
            found.append(realise(tree, predicates) if self.asker is None else [])
            if self.asker and predicates:
                asked.append((row, predicates))
        if asked:
            own_sentences = [sentences[row] for row, _ in asked]
            prompts = [
                self.prompt.messages(sentence=sentences[row], structures=show(own))
                for row, own in asked
            ]
            written = ask_for_claims(self.asker, prompts, own_sentences)
            for (row, predicates), own in zip(asked, written, strict=True):
                found[row] = _no_more_than(len(predicates), own)
        return found


def _no_more_than(count: int, own: list[str] | Failed) -> list[str] | Failed:
    """What a model wrote for ``count`` predicates; more than one for each is its own invention."""
    if isinstance(own, Failed) or len(own) <= count:
        return own
    return Failed(f"{len(own)} sentences for {count} predicates")
