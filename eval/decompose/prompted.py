"""Decomposers that prompt a language model with in-context examples.

A method is a prompt, a bank of examples and how many of them are shown: always the bank's first
ones, and the nearest to the sentence by BM25 (A Closer Look at Claim Decomposition, 2403.11903,
section 4 and Table 1). Instruction lines are the published ones, except those of SAFE and
VeriScore, which say in their heads what is ours; examples are our own.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from eval.decompose.answers import ask_for_claims
from eval.decompose.bank import Bank, Example
from eval.decompose.by_sentence import BackedOff, BySentence, Failed, Place
from eval.decompose.ud.parsers import Parser
from eval.decompose.ud.tree import read_conllu
from eval.models.chat import Message, Writer
from eval.prompting.asker import Asker
from eval.prompting.prompts import Prompt, PromptFile
from records import UserError

_HERE = Path(__file__).parent


class _Method(NamedTuple):
    prompt: str
    examples: str
    static: int
    retrieved: int
    temperature: float = 0.7
    max_new_tokens: int = 512


METHODS = {
    # 2403.11903, Table 1; 0.7 and 512 tokens: appendix B. FActScore's examples are those of Chen
    # et al. and, parsed, of CoNLL-U.
    "factscore": _Method("factscore.jinja", "factscore.txt", 7, 1),
    "fs2": _Method("factscore.jinja", "factscore.txt", 1, 1),
    "wice": _Method("wice.jinja", "wice.txt", 6, 0),
    "chen": _Method("chen.jinja", "factscore.txt", 7, 1),
    "conllu": _Method("conllu.jinja", "factscore.txt", 1, 1),
    "rnd": _Method("rnd.jinja", "rnd.txt", 7, 1),
    # 2403.18802 and 2406.19276, as in their code. SAFE's asks for facts with temperature 0, which
    # its client takes for none given (``temperature or self.temperature``): 0.1.
    "safe": _Method("safe.jinja", "factscore.txt", 7, 1, temperature=0.1),
    "veriscore": _Method("veriscore.jinja", "veriscore.txt", 7, 0, 0.0, max_new_tokens=1000),
}


class Prompted(BySentence):
    """Decompose each sentence with a language model.

    :func:`eval.decompose.answers.parse_claims` parses the answers; unreadable ones count as failed.
    The method ``conllu`` drops examples, static ones first, while the model finds the
    prompt too long, and takes the sentence itself where it is too long without any (2403.11903,
    appendix B); such claims carry ``backed_off``. An example whose sentence the parser does not
    know is shown with its parse from the CoNLL-U file beside its bank.

    Args:
        writer: the language model.
        method: FActScore, FActScore with one static example (``fs2``), WiCE, Chen et al. 2023,
            CoNLL-U, R-ND, SAFE or VeriScore. It sets what is null below.
        prompt: a prompt file of your own; its fields are ``examples`` (each with ``sentence``,
            ``claims``, ``text`` and ``conllu``), ``sentence``, ``text`` (the sentence marked
            between its neighbours, with the question it answers) and, with a parser, ``conllu``.
        examples: a file of examples of your own.
        static: how many of the first examples are shown to every sentence.
        retrieved: how many of the others, the nearest ones by BM25, are shown.
        parser: gives the parses that ``conllu``, or a prompt of your own, shows; of your own
            examples too, if there is no CoNLL-U file of their file's name beside them.
        temperature: of sampling; 0 takes the likeliest token.
        max_new_tokens: the longest answer.
        seed: of sampling; another one gives other decompositions.
    """

    def __init__(
        self,
        writer: Writer,
        method: Literal[
            "factscore", "fs2", "wice", "chen", "conllu", "rnd", "safe", "veriscore"
        ] = "rnd",
        prompt: Path | None = None,
        examples: Path | None = None,
        static: int | None = None,
        retrieved: int | None = None,
        parser: Parser | None = None,
        temperature: float | None = None,
        max_new_tokens: int | None = None,
        seed: int = 0,
    ):
        if prompt is None and (method == "conllu") != (parser is not None):
            raise UserError(
                "parser: the method conllu shows parses, so give it a parser, "
                "e.g. class_path eval.decompose.ud.parsers.ConlluFiles"
                if parser is None
                else f"parser: the method {method} shows no parses; leave it out or take conllu"
            )
        own = METHODS[method]
        self.method = method
        self.prompt = Prompt(prompt or _HERE / "prompts" / own.prompt)
        self.bank = Bank(examples or _HERE / "examples" / own.examples)
        self.static = own.static if static is None else static
        self.retrieved = own.retrieved if retrieved is None else retrieved
        self.parser = parser
        beside = self.bank.path.with_suffix(".conllu")
        self.parses = PromptFile(beside) if parser and beside.is_file() else None
        self.asker = Asker(
            writer,
            own.temperature if temperature is None else temperature,
            own.max_new_tokens if max_new_tokens is None else max_new_tokens,
            retries=0,
            seed=seed,
        )
        self.bank.check(self.static, self.retrieved)

    def subclaims(self, places: Sequence[Place]) -> list[list[str] | BackedOff | Failed]:
        shown, parses = self._parsed(places, self._chosen(places))
        found: list[list[str] | BackedOff | Failed] = [Failed("no parse") for _ in places]
        todo = [row for row in range(len(places)) if self.parser is None or parses[row]]
        while todo:
            asked = [self._messages(places[row], shown[row], parses[row]) for row in todo]
            answers = ask_for_claims(self.asker, asked, [places[row].sentence for row in todo])
            again = []
            for row, own in zip(todo, answers, strict=True):
                too_long = isinstance(own, Failed) and "too long" in own.reason
                if self.parser is None or not too_long:
                    found[row] = own
                elif shown[row]:
                    shown[row] = shown[row][1:]
                    again.append(row)
                else:
                    found[row] = BackedOff(own.reason)
            todo = again
        return found

    def _chosen(self, places: Sequence[Place]) -> list[tuple[Example, ...]]:
        sentences = list(dict.fromkeys(place.sentence for place in places))
        chosen = self.bank.choose(sentences, self.static, self.retrieved)
        by_sentence = dict(zip(sentences, chosen, strict=True))
        return [by_sentence[place.sentence] for place in places]

    def _parsed(
        self, places: Sequence[Place], shown: list[tuple[Example, ...]]
    ) -> tuple[list[tuple[Example, ...]], list[str | None]]:
        if self.parser is None:
            return shown, [None for _ in places]
        examples = list(dict.fromkeys(e.sentence for own in shown for e in own))
        texts = list(dict.fromkeys([*(place.sentence for place in places), *examples]))
        trees = dict(zip(texts, self.parser.parse(texts), strict=True))
        parses = {text: tree.conllu().strip() for text, tree in trees.items() if tree is not None}
        beside = read_conllu(self.parses.text.splitlines()) if self.parses else ()
        known = {tree.text: tree.conllu().strip() for tree in beside} | parses
        absent = [text for text in examples if text not in known]
        if absent:
            raise UserError(
                f"{self.bank.name}: no parse of its example {absent[0]!r}; add it to the parser's "
                f"files, or to {self.bank.path.stem}.conllu beside the examples"
            )
        with_parses = [tuple(replace(e, conllu=known[e.sentence]) for e in own) for own in shown]
        return with_parses, [parses.get(place.sentence) for place in places]

    def _messages(
        self, place: Place, examples: tuple[Example, ...], conllu: str | None
    ) -> list[Message]:
        fields = {"examples": examples, "sentence": place.sentence, "text": window(place)}
        return self.prompt.messages(**fields, **({} if conllu is None else {"conllu": conllu}))


def window(place: Place) -> str:
    """The sentence, marked, between the three before it and the one after it.

    VeriScore (2406.19276, section 3 and its code). A document answers a question where it has a
    field ``question`` or its topic ends with a question mark; the question then stands before the
    window. In other texts of more than five sentences the first one does; there it is the
    paragraph's, here the document's.
    """
    own = place.document
    question = (own.model_extra or {}).get("question") or (
        own.topic if own.topic.rstrip().endswith("?") else None
    )
    before = list(place.sentences[max(0, place.index - 3) : place.index])
    if question is None and len(place.sentences) > 5 and place.index > 3:
        before.insert(0, place.sentences[0])
    after = place.sentences[place.index + 1 : place.index + 2]
    text = " ".join([*before, f"<SOS>{place.sentence}<EOS>", *after])
    return f"Text: {text}" if question is None else f"Question: {question}\nResponse: {text}"
