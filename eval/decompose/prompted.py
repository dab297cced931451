"""Decomposers that prompt a language model with in-context examples.

A method is a prompt, a bank of examples, and the numbers of static examples (the bank's first) and
of retrieved ones (nearest to the sentence by BM25; A Closer Look at Claim Decomposition,
2403.11903, section 4 and Table 1). Instructions are the published ones, except for SAFE and
VeriScore, whose prompt files describe the changes; examples are ours.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from eval.decompose.bank import Bank, Example
from eval.decompose.by_sentence import BackedOff, BySentence, Failed, Place
from eval.decompose.claim_lists import ask_for_claims
from eval.decompose.entity_check import check_entities
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
    # 2403.11903, Table 1; 0.7 and 512 tokens: appendix B. Chen et al. and CoNLL-U use FActScore's
    # examples.
    "factscore": _Method("factscore.jinja", "factscore.txt", 7, 1),
    "fs2": _Method("factscore.jinja", "factscore.txt", 1, 1),
    "wice": _Method("wice.jinja", "wice.txt", 6, 0),
    "chen": _Method("chen.jinja", "factscore.txt", 7, 1),
    "conllu": _Method("conllu.jinja", "factscore.txt", 1, 1),
    "rnd": _Method("rnd.jinja", "rnd.txt", 7, 1),
    # 2403.18802 and 2406.19276, as in their code. SAFE passes temperature 0, which its client
    # replaces by its default 0.1 (``temperature or self.temperature``).
    "safe": _Method("safe.jinja", "factscore.txt", 7, 1, temperature=0.1),
    "veriscore": _Method("veriscore.jinja", "veriscore.txt", 7, 0, 0.0, max_new_tokens=1000),
}


class Prompted(BySentence):
    """Decompose each sentence with a language model.

    Answers that :func:`eval.decompose.claim_lists.parse_claims` cannot read count as failed.
    If a prompt is too long for the model, the method ``conllu`` drops examples, static ones first;
    if it is too long without examples, the sentence is its only subclaim, marked ``backed_off``
    (2403.11903, appendix B). Examples that the parser cannot parse use the bank's CoNLL-U file.

    Args:
        writer: the language model.
        method: FActScore, FActScore with one static example (``fs2``), WiCE, Chen et al. 2023,
            CoNLL-U, R-ND, SAFE or VeriScore; sets the defaults of null options.
        prompt: a custom prompt file; its fields are ``examples`` (each with ``sentence``,
            ``claims``, ``text`` and ``conllu``), ``sentence``, ``text`` (the marked sentence
            between its neighbours, with the question it answers) and, with a parser, ``conllu``.
        examples: a custom file of examples, or a folder with one file per method, named like those
            in ``eval/decompose/examples``.
        static: number of first examples of the bank, the same for every sentence.
        retrieved: number of other examples, nearest by BM25.
        parser: parser for ``conllu`` or a custom prompt; also parses custom examples that have no
            ``.conllu`` file of the same name.
        temperature: sampling temperature; 0 is greedy decoding.
        max_new_tokens: maximum tokens of an answer.
        seed: sampling seed; a different seed gives different decompositions.
        from_all: retrieve from all examples, static ones too, as FActScore's code does.
        keep_duplicates: count equal subclaims of a sentence as often as the model writes them, as
            in DecompScore and FActScore, whose code drops them only where its entity check passes.
        entity_check: drop subclaims with dates or numbers that the sentence lacks, as FActScore's
            code does (``eval/decompose/entity_check.py``).
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
        keep_duplicates: bool = False,
        from_all: bool = False,
        entity_check: bool = False,
    ):
        if prompt is None and (method == "conllu") != (parser is not None):
            raise UserError(
                "parser: conllu needs one, e.g. class_path eval.decompose.ud.parsers.ConlluFiles"
                if parser is None
                else f"parser: the method {method} uses no parser; remove it or use conllu"
            )
        defaults = METHODS[method]
        self.method = method
        self.prompt = Prompt(prompt or _HERE / "prompts" / defaults.prompt)
        examples = examples or _HERE / "examples"
        self.bank = Bank(examples / defaults.examples if examples.is_dir() else examples)
        self.static = defaults.static if static is None else static
        self.retrieved = defaults.retrieved if retrieved is None else retrieved
        self.parser = parser
        self.keep_duplicates, self.from_all = keep_duplicates, from_all
        self.entity_check = entity_check
        bank_parses = self.bank.path.with_suffix(".conllu")
        self.parses = PromptFile(bank_parses) if parser and bank_parses.is_file() else None
        self.asker = Asker(
            writer,
            defaults.temperature if temperature is None else temperature,
            defaults.max_new_tokens if max_new_tokens is None else max_new_tokens,
            retries=0,
            seed=seed,
        )
        self.bank.check(self.static, self.retrieved)

    def subclaims(self, places: Sequence[Place]) -> list[list[str] | BackedOff | Failed]:
        examples, parses = self._add_parses(places, self._choose_examples(places))
        subclaims: list[list[str] | BackedOff | Failed] = [Failed("no parse") for _ in places]
        todo = [row for row in range(len(places)) if self.parser is None or parses[row]]
        while todo:
            prompts = [self._messages(places[row], examples[row], parses[row]) for row in todo]
            sentences = [places[row].sentence for row in todo]
            answers = ask_for_claims(self.asker, prompts, sentences, self.keep_duplicates)
            retried = []
            for row, answer in zip(todo, answers, strict=True):
                too_long = isinstance(answer, Failed) and "too long" in answer.reason
                if self.parser is None or not too_long:
                    subclaims[row] = self._checked(places[row], answer)
                elif examples[row]:
                    examples[row] = examples[row][1:]
                    retried.append(row)
                else:
                    subclaims[row] = BackedOff(answer.reason)
            todo = retried
        return subclaims

    def _checked(self, place: Place, answer: list[str] | Failed) -> list[str] | Failed:
        if isinstance(answer, Failed) or not self.entity_check:
            return answer
        return check_entities(place.sentence, answer)

    def _choose_examples(self, places: Sequence[Place]) -> list[tuple[Example, ...]]:
        sentences = list(dict.fromkeys(place.sentence for place in places))
        chosen = self.bank.choose(sentences, self.static, self.retrieved, self.from_all)
        by_sentence = dict(zip(sentences, chosen, strict=True))
        return [by_sentence[place.sentence] for place in places]

    def _add_parses(
        self, places: Sequence[Place], chosen: list[tuple[Example, ...]]
    ) -> tuple[list[tuple[Example, ...]], list[str | None]]:
        if self.parser is None:
            return chosen, [None for _ in places]
        sentences = list(dict.fromkeys(e.sentence for examples in chosen for e in examples))
        texts = list(dict.fromkeys([*(place.sentence for place in places), *sentences]))
        trees = dict(zip(texts, self.parser.parse(texts), strict=True))
        parses = {text: tree.conllu().strip() for text, tree in trees.items() if tree is not None}
        bank_trees = read_conllu(self.parses.text.splitlines()) if self.parses else ()
        by_text = {tree.text: tree.conllu().strip() for tree in bank_trees} | parses
        absent = [text for text in sentences if text not in by_text]
        if absent:
            raise UserError(
                f"{self.bank.name}: no parse of the example {absent[0]!r}; add it to the parser's "
                f"files, or to {self.bank.path.stem}.conllu in the folder of the examples"
            )
        with_parses = [
            tuple(replace(e, conllu=by_text[e.sentence]) for e in examples) for examples in chosen
        ]
        return with_parses, [parses.get(place.sentence) for place in places]

    def _messages(
        self, place: Place, examples: tuple[Example, ...], conllu: str | None
    ) -> list[Message]:
        fields = {"examples": examples, "sentence": place.sentence, "text": window(place)}
        return self.prompt.messages(**fields, **({} if conllu is None else {"conllu": conllu}))


def window(place: Place) -> str:
    """The marked sentence with the three sentences before it and the one after it.

    VeriScore (2406.19276, section 3 and its code). The window starts with the document's question:
    its field ``question``, or its topic if that ends with a question mark. Otherwise, in texts of
    more than five sentences, it starts with the document's first sentence (VeriScore: the
    paragraph's).
    """
    document = place.document
    question = (document.model_extra or {}).get("question") or (
        document.topic if document.topic.rstrip().endswith("?") else None
    )
    before = list(place.sentences[max(0, place.index - 3) : place.index])
    if question is None and len(place.sentences) > 5 and place.index > 3:
        before.insert(0, place.sentences[0])
    after = place.sentences[place.index + 1 : place.index + 2]
    text = " ".join([*before, f"<SOS>{place.sentence}<EOS>", *after])
    return f"Text: {text}" if question is None else f"Question: {question}\nResponse: {text}"
