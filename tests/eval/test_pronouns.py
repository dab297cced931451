"""Names in place of pronouns at the beginning of sentences."""

import pytest

from eval.commands.remarks import pronoun_note
from eval.decompose.pronouns import resolve
from eval.decompose.sentences import Sentences
from eval.metrics.corpus import summarise
from eval.pipeline import Pipeline
from eval.verify.labels import Labels
from records import Document

MUSEUM = "The Ostrava Museum is a museum in Brno. It opened in 1950."


@pytest.mark.parametrize(
    ("before", "sentence", "resolved"),
    [
        ("Ann Lee was born in Oslo.", "She paints.", "Ann Lee paints."),
        ("Ann Lee was born in Oslo.", "Her mother sang.", "Ann Lee’s mother sang."),
        ("Ann Lee was a nurse. Lee lived.", "She died.", "Ann Lee died."),
        ("The Ostrava Museum is in Brno.", "It opened.", "The Ostrava Museum opened."),
        # Two candidates
        ("Ann Lee was a nurse. She met Eve Roe.", "She died.", None),
        ("The Ostrava Museum is near the Baltic Opera.", "It opened.", None),
        # No candidate, or one of another kind
        ("A woman was a nurse.", "She died.", None),
        ("Ann Lee painted a picture.", "It was sold.", None),
        ("The Ostrava Museum is in Brno.", "It is possible that the roof fell.", None),
        ("The Ostrava Museum is in Brno.", "They opened it.", None),
        ("The winner of the Nobel Prize was unknown.", "He died.", None),
    ],
)
def test_a_pronoun_is_replaced_only_by_the_single_candidate(before, sentence, resolved):
    sentences = [f"{part.strip()}." for part in before.split(".") if part] + [sentence]
    assert resolve(sentences)[-1] == (resolved or sentence)


def test_resolved_claims_are_counted_and_unresolved_ones_named():
    texts = {"a": MUSEUM, "b": "It opened in 1950."}
    documents = [Document(id=name, topic="x", text=text) for name, text in texts.items()]
    scored = Pipeline(Sentences(resolve=True), [Labels()]).score(documents)
    claim = scored[0].claims[1]
    assert claim.text == "The Ostrava Museum opened in 1950."
    assert (claim.source, claim.original) == ("It opened in 1950.",) * 2
    values = {row.metric: row.value for row in summarise(scored, "hash", "tests")}
    assert values["resolved"] == 1
    (line,) = pronoun_note(scored)
    assert line.startswith("1 of 3 claims begin with an unresolved pronoun (1 resolved)")
    assert line.endswith("b: It opened in 1950.")


def test_pronouns_stay_by_default():
    ((_, claim),) = Sentences()([Document(id="a", topic="x", text=MUSEUM)])
    assert (claim.text, claim.original) == ("It opened in 1950.", None)
