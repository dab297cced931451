"""Cleaning of answers: parts that make no claims are removed, statements of fact are kept."""

import time

import pytest

from components.sentences import split_sentences
from records import Claim, Document, Passage
from records.abstention import responds
from records.cleaning import clean, normalise

FACTS = ["Ada Roe was a botanist.", "She was born in Lima."]
FIRST, SECOND = FACTS
BOTH = f"{FIRST} {SECOND}"
REMOVED = {
    "paired reasoning": ("reasoning", f"<think>Was she born in Rome? No.</think>\n{BOTH}"),
    "two reasonings": ("reasoning", f"<thinking>A.</thinking>{FIRST}<THINK>b\n</THINK> {SECOND}"),
    "reasoning that never ends": ("reasoning", f"{BOTH}\n<reasoning>She was born in Rome."),
    "reasoning without its opening tag": ("reasoning", f"Rome is wrong.\n</think>\n{BOTH}"),
    "fenced code": ("code", f"{FIRST}\n```python\nprint('She was born.')\n```\n{SECOND}"),
    "code that never ends": ("code", f"{BOTH}\n~~~\nx = 'Ada'\nfor y in x: print(y)"),
    "fenced JSON": ("code", f'{FIRST}\n```json\n{{"born": "Rome", "is": 1}}\n```\n{SECOND}'),
    "pipe table": ("tables", f"{FIRST}\n| Year | Prize |\n|---|:-:|\n| 1903 | Gold |\n{SECOND}"),
    "table without outer pipes": (
        "tables",
        f"{FIRST}\nYear | Prize\n--- | ---\n1903 | Gold\n\n{SECOND}",
    ),
    "tab-separated table": ("tables", f"{FIRST}\nYear\tPrize\n1903\tGold\n{SECOND}"),
    "HTML table": (
        "tables",
        f"{FIRST}<table><tr><th>Year</th><th>Prize</th></tr>"
        f"<tr><td>1903</td><td>Gold</td></tr></table>{SECOND}",
    ),
    "HTML list": ("tags", f"<ul><li>{FIRST}</li><li class='a b'>{SECOND}</li></ul>"),
    "HTML paragraphs": (
        "tags",
        f"<p>{FIRST}</p><p><b>She</b>&nbsp;was born in <a href='x y'>Lima</a>.</p>",
    ),
    "HTML comment and style": (
        "tags",
        f"<!-- She was born. --><style>p {{x: y}}</style>{FIRST}<br/>{SECOND}",
    ),
    "HTML heading": ("headings", f"<h2>Early life</h2>{BOTH}"),
    "sources with addresses": (
        "sources",
        f"{BOTH}\n\nSources:\n[1] https://a.example/x\n[2] https://b.example",
    ),
    "bold references": (
        "sources",
        f"{BOTH}\n\n**References**\n\n1. Roe, Ada. Ferns. Lima: Ray, 1950.\n\n2. Bo Ray (1999).",
    ),
    "bibliography heading": (
        "sources",
        f"{FIRST}\n\n## Bibliography\n- Ferns (1950)\n- [Ada Roe](https://a.example)\n\n{SECOND}",
    ),
    "limits of the writer's knowledge": (
        "refusals",
        f"{FIRST} I couldn't verify her birthday. {SECOND}\nI’m not sure when she died.",
    ),
    "sources in one line": ("sources", f"{BOTH}\nSources: Britannica, https://a.example"),
    "bare addresses": (
        "addresses",
        f"{FIRST}\nhttps://a.example/x\n2. <https://b.example>\n{SECOND}",
    ),
    "labelled addresses": ("addresses", f"{BOTH}\n- Official website: www.a.example\n"),
    "links without sentences": (
        "addresses",
        f"{BOTH}\n1. [Ada Roe - Wiki](https://a.example/Roe_(botanist))",
    ),
    "address after its sentence": ("addresses", f"{FIRST} https://a.example/x {SECOND}"),
    "address in brackets": ("addresses", f"{FIRST[:-1]} (see https://a.example/x). {SECOND}"),
    "address without a scheme": ("addresses", f"{BOTH}\nen.pages.example/wiki/Ada_Roe"),
    "image": ("addresses", f"![Ada Roe](https://a.example/x.png)\n{BOTH}"),
    "citations": ("citations", f"{FIRST} [1][2] {SECOND} 【4:0†source】"),
    "speakers": ("speakers", f"User: Who is she?\nAssistant: {FIRST}\n**Assistant:** {SECOND}"),
    "special tokens": ("speakers", f"<|im_start|>assistant\n{BOTH}<|im_end|>"),
    "question at the start": ("questions", f"Who was Ada Roe, and where was she born? {BOTH}"),
    "question back": ("questions", f"{BOTH}\n\nWould you like to know more about Dr. Roe?"),
    "question within the text": (
        "questions",
        f"{FIRST} How many books did she write? {SECOND}",
    ),
    "apology for a delay": ("offers", f"Sorry for the wait! {BOTH}"),
    "what the writer knows only partly": ("refusals", f"{BOTH} I only know the outline."),
    "closing offers": ("offers", f"{BOTH}\n\nI hope this helps! Let me know if you need more."),
    "conditional offer": ("offers", f"{BOTH}\nIf you have other questions, feel free to ask."),
    "request": ("offers", f"User: Tell me about Ada Roe.\n{BOTH}"),
    "headings": ("headings", f"# Ada Roe\n{FIRST}\n- **Early life:**\n{SECOND}\nLegacy\n------"),
}
# Answers, and their sentences if these are not the text itself.
KEPT = {
    "She wrote the novel Who Are You?": None,
    "Her song “Would You Like to Swing?” was a hit.": None,
    "Did you know that she won two prizes?": None,
    "When she was five, she asked her mother: why me?": None,
    "Let me know if you need more about her prize, which she won in 1950.": None,
    "I hope this shows that she was born in 1901.": None,
    "Let Me Know is her only single.": None,
    "Will Ray was her father.": None,
    "Which fern she found first is unknown.": None,
    "Her website is https://a.example/x.": None,
    "Sources say that she moved to Peru in 1950.": None,
    "Source: Her letters are kept in Lima.": None,
    "She lived in a|b, a street of Lima.": None,
    "She proved that 2 < 5 and 5 > 3.": None,
    "She is married (source: her diary).": None,
    "The table lists the prizes that she won:\n|Year|\n|---|": [
        "The table lists the prizes that she won:"
    ],
    "Sources:\n- She was born in Lima.": ["She was born in Lima."],
    "References\n\nShe died in 1990.": ["She died in 1990."],
    "**She moved to Peru in 1950**": ["She moved to Peru in 1950"],
    "# Ada Roe was born in 1901": ["Ada Roe was born in 1901"],
    "She was tall.\n---": ["She was tall."],
    "```text\nBo and Ada.\n```": ["Bo and Ada."],
    "```\nShe was born in Lima.\nx = 1": ["She was born in Lima."],
    "| Born | She was born in Lima. |": ["She was born in Lima."],
    "1950\tShe moved to Peru.\n1951\tShe left Peru.": ["She moved to Peru.", "She left Peru."],
    "1.\tShe moved to Peru\n2.\tShe left Peru": ["She moved to Peru", "She left Peru"],
    "[She was born in Lima](https://a.example).": ["She was born in Lima."],
    "She met [Bo Ray](https://a.example) in Lima.": ["She met Bo Ray in Lima."],
    "She was born in Lima: https://a.example": ["She was born in Lima"],
    "[^1]: She was born in Lima.": ["She was born in Lima."],
    "Assistant: She was born in Lima.": ["She was born in Lima."],
    "<li>She was born in Lima</li><li>She left</li>": ["She was born in Lima", "She left"],
}


@pytest.mark.parametrize("name", REMOVED)
def test_parts_without_claims_are_removed_and_counted(name):
    kind, text = REMOVED[name]
    cleaned = clean(text)
    assert split_sentences(cleaned.text) == FACTS
    assert cleaned.removed[kind] >= 1
    assert clean(cleaned.text) == (cleaned.text, {})


@pytest.mark.parametrize(("text", "sentences"), KEPT.items())
def test_statements_of_fact_are_kept(text, sentences):
    assert split_sentences(clean(text).text) == (sentences or [text])


# The text as it is written, and as a reader understands it.
SPELLINGS = {
    "a raised digit after a year is a note": ("Bo Ek left in 1912².", "Bo Ek left in 1912."),
    "a linked note after a stop": (
        'Bo Ek left.<sup id="a"><a href="#b">12</a></sup> He sang.',
        "Bo Ek left. He sang.",
    ),
    "a power of ten": ("It has 3×10<sup>8</sup> cells.", "It has 3×10^8 cells."),
    "a negative power": ("It took 10⁻⁹ s.", "It took 10^-9 s."),
    "a unit": ("It covers 40 km<sup>2</sup>.", "It covers 40 km²."),
    "an ordinal": ("the 4<sup>th</sup> prize", "the 4th prize"),
    "an isotope and an ion": ("¹⁴C and Ca²⁺", "¹⁴C and Ca²⁺"),
    "ligatures": ("the oﬃcial ﬂag", "the official flag"),
    "full-width digits": ("in ２０１４", "in 2014"),
    "zero-width spaces and soft hyphens": ("the mu\u200bse\u00adum", "the museum"),
    "entities": ("1950&ndash;1960 at St&ouml;r &#38; Co.", "1950–1960 at Stör & Co."),
    "Cyrillic letters in a Latin word": ("in Mаlmo", "in Malmo"),
    "lines of a fixed width": (
        "The museum of Orren was opened in the spring\nof 1950 by the mayor, who had collected\n"
        "the money for it since the end of the war.",
        "The museum of Orren was opened in the spring of 1950 by the mayor, who had collected the "
        "money for it since the end of the war.",
    ),
    "hyphens at line ends": (
        "The museum was opened by the may-\nor of Orren, who was a well-\nknown collector.",
        "The museum was opened by the mayor of Orren, who was a well-known collector.",
    ),
}
SEPARATE_LINES = {
    "a list": "- The museum of Orren was opened in 1950\n- The mayor collected the money for it",
    "a list without marks": "Studied painting in the city of Orren\nTaught at the academy of Lund\n"
    "Won the prize of the academy in 1901",
    "a verse": "the sea is wide,\nthe night is long,\nand i shall hide\nbehind a song",
    "sentences": "The museum of Orren opened in 1950.\nIt was paid by the mayor of the town.\n"
    "it closed.",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_text_in_another_spelling_is_read_as_its_reader_does(name):
    written, read = SPELLINGS[name]
    assert normalise(written) == read
    assert clean(f"{written}\n\n{FIRST}").text.startswith(read)
    assert Passage(id="p", text=written).text == Claim(id="c", text=written).text == read
    changed = clean(written).removed
    assert bool(changed) == (written != read)


@pytest.mark.parametrize("name", SEPARATE_LINES)
def test_lines_that_are_no_wrapped_prose_stay_apart(name):
    assert normalise(SEPARATE_LINES[name]) == SEPARATE_LINES[name]


def test_citations_stay_for_the_metric_that_reads_them():
    text = f"# Ada Roe\n{FIRST} [1] {SECOND} [2](https://a.example)"
    assert clean(text, "citations").text == f"{FIRST} [1] {SECOND} [2]"


def test_reasoning_around_a_refusal_is_an_abstention():
    text = "<think>Ada Roe was a botanist. She was born in Lima.</think>I don't know Ada Roe."
    assert not responds(Document(id="a", topic="Ada Roe", text=text))


@pytest.mark.parametrize(
    "part",
    [
        "<think>",
        "```\n",
        "<!--",
        "[a](",
        "https://a(",
        "a|",
        "a\tb\n",
        "**a",
        " ",
        "。「",
        "<sup>",
        "a о\n",
    ],
)
def test_hostile_repetitions_take_linear_time(part):
    start = time.perf_counter()
    split_sentences(clean(part * 20_000).text)
    assert time.perf_counter() - start < 20
