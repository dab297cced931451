"""A control without a model: a claim is supported if a passage contains its words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from components.english import content_stems
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from records import Verdict

# Words that state which property a statement is about, next to its value, and those of time.
IGNORED = (
    "birth born came career death died honoured nationality passed also profession received "
    "awarded recipient year world position held served known called name into away "
    "before after between until when but only even long decade whose"
)


@dataclass(eq=False)
class WordTest(ClaimByClaim):
    """Support a claim if one passage contains all its content words.

    It reads neither order nor negation, so a result that it also reaches is no evidence that a
    metric understands a text.

    Args:
        ignored: words that a passage need not contain, separated by blanks.
    """

    assessor = "word_test"

    ignored: str = field(default=IGNORED)

    def judge(self, items: Sequence[ClaimToJudge]) -> Iterable[Verdict]:
        ignored = content_stems(self.ignored)
        stems_of = cache(content_stems)  # the claims of a text have one page
        for item in items:
            words = content_stems(item.claim.text.replace("'s ", " ")) - ignored
            texts = (f"{passage.title} {passage.text}" for passage in item.passages)
            supported = any(words <= stems_of(text) for text in texts)
            label = "supported" if supported else "not_supported"
            yield self.verdict(item.claim, label, p=float(supported), evidence=item.evidence)
