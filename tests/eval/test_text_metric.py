"""What a text metric sees of a text."""

from eval.metrics.text_metric import Labels, TextMetric, blinded, text_scores
from records import Claim, Document, Gold, Passage

GOLD = Gold(precision=0, recall=0, f1=0, k=5, source="construction")
TEXT = Document(
    id="Ann Lee denied_unseen",
    topic="Ann Lee",
    text="Ann Lee was a poet.",
    kind="denied_unseen",
    gold=GOLD,
    family="judge",
    passages=[Passage(id="p", text="Ann Lee was a poet.")],
    claims=[Claim(id="c0", text="Ann Lee was a poet.", label="NS", rests_on=[])],
)


class Recorder(TextMetric):
    def score(self, documents):
        self.documents = documents
        return [0.5] * len(documents)


def test_a_metric_sees_no_kind_gold_family_label_or_telling_id():
    metric = Recorder()
    assert text_scores("m", metric, [TEXT]) == [0.5]
    (document,) = metric.documents
    row = document.model_dump_json()
    assert not any(word in row for word in ("denied", "judge", "construction", "NS", "rests_on"))
    assert (document.topic, document.text, document.passages) == (
        TEXT.topic, TEXT.text, TEXT.passages
    )  # fmt: skip
    assert document.id != TEXT.id


def test_labels_are_a_reference_and_see_everything():
    assert text_scores("labels", Labels(), [TEXT]) == [0.0]
    assert blinded(TEXT).claims[0].label is None
