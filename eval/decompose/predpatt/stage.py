"""PredPatt as a decomposer: parse, extract predicates, write a sentence for each predicate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eval.decompose.by_sentence import BySentence, Failed, Place
from eval.decompose.predpatt.extract import extract
from eval.decompose.predpatt.realise import realise
from eval.decompose.predpatt.verbalise import METHODS, Structures, drop_duplicates
from eval.decompose.ud.parsers import Parser
from eval.decompose.ud.tree import check_ud
from eval.models.chat import Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt

_PROMPTS = Path(__file__).parents[1] / "prompts"
# one_by_one: 2403.11903, appendix B
_TEMPERATURE = {"one_by_one": 0.7, "together": 0.0}


class PredPatt(BySentence):
    """Decompose each sentence into its predicates by PredPatt's rules (White et al. 2016).

    A language model (:mod:`eval.decompose.predpatt.verbalise`) or our rules
    (:mod:`eval.decompose.predpatt.realise`) write a sentence for each predicate. Sentences without
    a valid Universal Dependencies parse count as failed. As in the original, a sentence without a
    predicate (a heading, a name) has no subclaims.

    Args:
        parser: parses the sentences.
        writer: language model that writes the sentences; null: rules write them.
        prompt: a custom prompt file; its fields are ``sentence`` and ``structures``, the
            predicates as PredPatt prints them; for ``one_by_one`` ``structure``, a line of words.
        temperature: sampling temperature; 0 is greedy decoding; null: 0.7 for ``one_by_one``, 0
            for ``together``.
        max_new_tokens: maximum tokens of an answer.
        seed: sampling seed.
        verbalise: ``one_by_one`` (as published): one prompt per predicate, without its sentence;
            ``together``: one prompt per sentence, with the sentence and all its predicates.
        keep_duplicates: with ``one_by_one``, count equal statements of a sentence as often as the
            model writes them; the paper does not mention duplicates.
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
        keep_duplicates: bool = False,
    ):
        self.parser = parser
        self.keep_duplicates = keep_duplicates
        self.verbalise = METHODS[verbalise]
        default = _TEMPERATURE[verbalise] if temperature is None else temperature
        self.asker = Asker(writer, default, max_new_tokens, 0, seed) if writer else None
        self.prompt = Prompt(prompt or _PROMPTS / f"predpatt_{verbalise}.jinja") if writer else None

    def subclaims(self, places: Sequence[Place]) -> list[list[str | Failed] | Failed]:
        sentences = [place.sentence for place in places]
        subclaims: list[list[str | Failed] | Failed] = []
        structures: dict[int, Structures] = {}
        for row, tree in enumerate(self.parser.parse(sentences)):
            if tree is None:
                subclaims.append(Failed("no parse"))
                continue
            if fault := check_ud(tree):
                subclaims.append(Failed(f"no Universal Dependencies: {fault}"))
                continue
            predicates = extract(tree)
            subclaims.append(realise(tree, predicates) if self.asker is None else [])
            if self.asker and predicates:
                structures[row] = Structures(sentences[row], predicates)
        if structures:
            answers = self.verbalise(self.asker, self.prompt, list(structures.values()))
            for row, statements in zip(structures, answers, strict=True):
                is_list = isinstance(statements, list) and not self.keep_duplicates
                subclaims[row] = drop_duplicates(statements) if is_list else statements
        return subclaims
