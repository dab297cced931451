"""Estimated gold scores: a text is credited with the facts that it entails and names."""

import pytest

from data_builders.written.claims.fact_gold import FactGold
from records import write_jsonl

# The others make the words of a frame common, so that they weigh little.
OTHERS = ["Bo Fenn/Lima/carved spoons", "Cy Hale/Pisa/taught chess", "Di Rook/Kyiv/raced boats"]
PAGES = [
    {"title": name, "text": f"{name} was born in {town}. She {deed}."}
    for name, town, deed in (row.split("/") for row in ["Ada Rees/Oslo/flew gliders", *OTHERS])
]


class EntailsAll:
    identity = "entails all"

    def relations(self, pairs):
        return [(1.0, 0.0, 0.0)] * len(pairs)


@pytest.mark.parametrize(
    ("topic", "text", "expected"),
    [
        ("Ada Rees", "She was born in Oslo. Ada Rees flew gliders.", (1, 1)),
        ("Ada Rees", "Ada Rees was from Oslo. Ada Rees had a name.", (0.5, 0.5)),
        ("Ada Rees", "Ada Rees was from Oslo. She lived in Oslo.", (0.5, 0.5)),
        ("Ada Rees", "Ada Rees came from Lima. She carved spoons.", (0, 0)),
        ("Cal Ott", "Cal Ott was born in Oslo.", None),
    ],
)
def test_a_sentence_credits_the_facts_it_names(tmp_path, topic, text, expected):
    pages = [{"id": page["title"], **page} for page in PAGES]
    write_jsonl(tmp_path / "pages.jsonl", pages)
    gold = FactGold(EntailsAll(), [str(tmp_path / "pages.jsonl")])([(topic, text)])[0]
    assert (gold and (gold.precision, gold.recall)) == expected
