"""PredPatt as a decomposer: parse, extract, and a sentence for each predicate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eval.decompose.by_sentence import BySentence, Failed, Place
from eval.decompose.predpatt.extract import extract
from eval.decompose.predpatt.realise import realise
from eval.decompose.predpatt.verbalise import WAYS, Structures
from eval.decompose.ud.parsers import Parser
from eval.decompose.ud.tree import check_ud
from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt

_PROMPTS = Path(__file__).parents[1] / "prompts"
# 2403.11903, appendix B, for the published way.
_TEMPERATURE = {"one_by_one": 0.7, "together": 0.0}


class PredPatt(BySentence):
    """Decompose each sentence by rule into its predicates (White et al. 2016).

    Its parse is read by PredPatt's rules, and each predicate becomes a sentence: written by a
    language model (:mod:`eval.decompose.predpatt.verbalise`), in the way of 2403.11903 (appendix B)
    or in one of our own, or by rules of our own (:mod:`eval.decompose.predpatt.realise`). A
    sentence without a parse, or whose parse is not Universal Dependencies, counts as failed. One in
    which PredPatt finds no predicate (a heading, a name) has no subclaims, as in the original.

    Args:
        parser: gives the parses.
        writer: a language model that writes the sentences; without one the rules do.
        prompt: a prompt file of your own; its fields are ``sentence`` and ``structures``, the
            predicates as PredPatt prints them; for ``one_by_one`` ``structure``, a line of words.
        temperature: of sampling; 0 takes the likeliest token. Null is 0.7 for ``one_by_one``, else
            0.
        max_new_tokens: the longest answer.
        seed: of sampling.
        verbalise: how the model is asked: ``one_by_one``, as published: each predicate alone and
            without its sentence; or ``together``: all predicates of a sentence, with the sentence.
    """

    def __init__(
        self,
        parser: Parser,
        writer: Writer | None = None,
        prompt: Path | None = None,
        temperature: float | None = None,
        max_new_tokens: int = 512,
        seed: int = 0,
        verbalise: Literal["one_by_one", "together"] = "together",
    ):
        self.parser = parser
        self.way = WAYS[verbalise]
        warmth = _TEMPERATURE[verbalise] if temperature is None else temperature
        self.asker = Asker(writer, warmth, max_new_tokens, 0, seed) if writer else None
        self.prompt = Prompt(prompt or _PROMPTS / f"predpatt_{verbalise}.jinja") if writer else None

    def subclaims(self, places: Sequence[Place]) -> list[list[str | Failed] | Failed]:
        sentences = [place.sentence for place in places]
        found: list[list[str | Failed] | Failed] = []
        asked: dict[int, Structures] = {}
        for row, tree in enumerate(self.parser.parse(sentences)):
            if tree is None:
                found.append(Failed("no parse"))
                continue
            if fault := check_ud(tree):
                found.append(Failed(f"no Universal Dependencies: {fault}"))
                continue
            predicates = extract(tree)
            found.append(realise(tree, predicates) if self.asker is None else [])
            if self.asker and predicates:
                asked[row] = Structures(sentences[row], predicates)
        if asked:
            written = self.way(self.asker, self.prompt, list(asked.values()))
            for row, own in zip(asked, written, strict=True):
                found[row] = own
        return found
