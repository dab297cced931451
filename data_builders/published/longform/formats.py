"""The projects' files that long texts come in, each by its published field names.

One function a format: a row to a :class:`~records.Document`, or to a prompt (a dict) where the
source has only questions; a text where there is nothing to score, which says why.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from records import BadInput, Claim, Document, Passage

Format = Literal["factscore", "factreasoner", "safe", "veriscore", "factor", "prompts", "longfact"]


@dataclass(frozen=True)
class Source:
    """One source of long texts.

    Attributes:
        name: folder of its records, and the beginning of their ids.
        format: whose field names its files have.
        files: files, or folders of files.
        sample: how many rows are drawn; all where it is null.
        per_topic: how many rows of each topic are drawn.
        topics: how many topics are drawn.
        topic: field that holds the topic, where it is not the format's own.
        where: values that a row's fields must have.
        generator: who wrote the texts, where the rows do not say.
    """

    name: str
    format: Format
    files: list[str]
    sample: int | None = None
    per_topic: int | None = None
    topics: int | None = None
    topic: str | None = None
    where: dict[str, str] = field(default_factory=dict)
    generator: str | None = None


@dataclass(frozen=True)
class Row:
    """A row on its way: what it is, and where it stands, for ids and messages."""

    source: Source
    path: Path
    number: int
    fields: dict
    id: str
    seed: int
    dropped: Counter[str]

    def topic(self, *names: str) -> str:
        """The topic: the source's field, else the first of ``names`` that holds a text."""
        own = (self.source.topic,) if self.source.topic else names
        for name in own:
            value = self.fields.get(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
        raise BadInput([f"{self.path}:{self.number}: {own[0]}: field required"])


def factscore(row: Row) -> Document | str:
    """FActScore's labelled biographies (2305.14251): human atoms with S, NS or IR.

    The 157 biographies of 2502.18573 seem to be those of ``ChatGPT.jsonl`` that do not abstain:
    that many would follow from its response rate; the file was not at hand.
    """
    if row.fields["annotations"] is None:
        return "abstention (no annotations)"
    claims = []
    for place, sentence in enumerate(row.fields["annotations"]):
        for fact in sentence.get("human-atomic-facts") or []:
            label = fact["label"]
            more = {"sentence": place, "source": sentence["text"], "label": label}
            claims.append(Claim(id=f"a{len(claims)}", text=fact["text"], **more))
    if not claims:
        return "text without human atoms"
    frequency, region = (*(row.fields.get("cat") or []), None, None)[:2]
    return Document(
        id=row.id,
        topic=row.topic("topic"),
        text=row.fields["output"],
        claims=claims,
        group=frequency,
        kind="normal",
        generator=row.source.generator,
        region=region,
        prompt=row.fields.get("input"),
        label_source="human",
    )


def factreasoner(row: Row) -> Document | str:
    """FactReasoner's files (IBM/FactReasoner): atoms, and the contexts retrieved for each."""
    passages = []
    for context in row.fields["contexts"]:
        text = context.get("text") or context.get("snippet") or ""
        if not text.strip():
            row.dropped[f"{row.source.name}: context without text"] += 1
            continue
        title = context.get("title") or ""
        more = {"url": context.get("link"), "snippet": context.get("snippet")}
        passages.append(Passage(id=context["id"], title=title, text=text, **more))
    known = {passage.id for passage in passages}
    empty = {context["id"] for context in row.fields["contexts"]} - known
    claims = []
    for atom in row.fields["atoms"]:
        named = atom.get("contexts") or []
        if lost := set(named) - known - empty:
            where = f"{row.path}:{row.number}: atoms: contexts"
            raise BadInput([f"{where}: {atom['id']} names {sorted(lost)[0]}, which is not there"])
        more = {"contexts": [name for name in named if name in known], "label": atom.get("label")}
        claims.append(Claim(id=atom["id"], text=atom["text"], source=atom.get("original"), **more))
    if not claims:
        return "text without atoms"
    return Document(
        id=row.id,
        topic=row.topic("topic", "input"),
        # Its Conflicts have an empty output, which would count as no answer
        text=row.fields["output"] or " ".join(claim.text for claim in claims),
        claims=claims,
        passages=passages,
        kind="normal",
        generator=row.source.generator,
        prompt=row.fields.get("input"),
        label_source="file" if any(c.label for c in claims) else None,
    )


# Answers of SAFE (2403.18802) and VeriScore (2406.19276): a model's; `label_source` says whose.
_SAFE = {"Supported": "S", "Not Supported": "NS", "Irrelevant": "IR"}
_VERISCORE = {
    "supported": "S",
    **dict.fromkeys(("unsupported", "contradicted", "inconclusive"), "NS"),
}


def safe(row: Row) -> Document | str:
    """SAFE's results of ``side_1``: self-contained atomic facts, their searches and answers."""
    data = row.fields.get("side1_posthoc_eval_data")
    if not data:
        return "response that SAFE did not evaluate"
    places = {found["sentence"]: i for i, found in enumerate(data["all_atomic_facts"])}
    steps = data.get("past_steps_jsonified_all") or []
    checked = data["checked_statements"]
    if len(steps) != len(checked):
        row.dropped[f"{row.source.name}: searches that do not line up with the facts"] += 1
        steps = [{}] * len(checked)
    claims, passages = [], []
    for index, (fact, step) in enumerate(zip(checked, steps, strict=True)):
        own = []
        for number, search in enumerate(step.get("google_searches") or []):
            if (search.get("result") or "").strip():
                own.append(f"c_a{index}_{number}")
                text, query = search["result"], search.get("query")
                passages.append(Passage(id=own[-1], text=text, source="google", query=query))
        claims.append(
            Claim(
                id=f"a{index}",
                text=fact["self_contained_atomic_fact"],
                sentence=places.get(fact["sentence"], 0),
                source=fact["sentence"],
                label=_SAFE.get(fact.get("annotation")),
                contexts=own,
                original=fact["atomic_fact"],
            )
        )
    if not claims:
        return "text without atomic facts"
    generator = row.fields.get("side_1")
    return Document(
        id=row.id,
        topic=row.topic("topic", "prompt"),
        text=data["response"],
        claims=claims,
        passages=passages,
        kind="normal",
        generator=generator if isinstance(generator, str) else row.source.generator,
        prompt=data["prompt"],
        label_source="safe",
    )


def veriscore(row: Row) -> Document | str:
    """VeriScore's files at any stage: texts, with claims, with snippets, with its answers.

    The names of the claims and snippets differ between its releases; all are read.
    """
    fields = row.fields
    if fields.get("abstained"):
        return "abstention"
    if not (fields.get("response") or "").strip():
        return "question without a response"
    lists = fields.get("claim_list") or fields.get("claim_lst_lst") or []
    names = ("claim_search_results", "claim_snippets_dict", "claim_srch_res_lst")
    found = next((fields[name] for name in names if fields.get(name)), {})
    answers = {a["claim"]: a for a in fields.get("claim_verification_result") or []}
    claims, passages, seen = [], [], set()
    for place, own in enumerate(lists):
        for text in own:
            if text in seen or text.strip().rstrip(".") in {"", "No verifiable claim"}:
                continue
            seen.add(text)
            index = len(claims)
            contexts = []
            for number, hit in enumerate(found.get(text) or []):
                if (hit.get("snippet") or "").strip():
                    contexts.append(f"c_a{index}_{number}")
                    more = {"title": hit.get("title") or "", "url": hit.get("link")}
                    passages.append(Passage(id=contexts[-1], text=hit["snippet"], **more))
            answer = answers.get(text, {}).get("verification_result")
            label = _VERISCORE.get(answer)
            more = {"sentence": place, "label": label, "contexts": contexts if found else None}
            claims.append(Claim(id=f"a{index}", text=text, **more, answer=answer))
    return Document(
        id=row.id,
        topic=row.topic("topic", "question"),
        text=fields["response"],
        claims=claims or None,
        passages=passages or None,
        kind="normal",
        generator=fields.get("model") or row.source.generator,
        prompt=fields.get("question"),
        label_source="veriscore" if answers else None,
    )


def factor(row: Row) -> Document | str:
    """FACTOR (2307.06908), News and Expert: one true and three false ways to go on with a text.

    The text so far is the only passage. The order of the four is drawn, so that it tells nothing.
    """
    prefix = row.fields["full_prefix"]
    if not prefix.strip():
        return "row without a prefix"
    told = [(row.fields["completion"], "S")]
    told += [(row.fields[f"contradiction_{index}"], "NS") for index in range(3)]
    if len({text.strip() for text, _ in told}) < len(told) or not all(t.strip() for t, _ in told):
        return "row with completions that are equal or empty"
    true = told[0][0].strip()
    random.Random(f"{row.seed}:{prefix}{true}").shuffle(told)
    claims = [
        Claim(
            id=f"a{index}",
            text=text.strip(),
            source=text.strip(),
            label=label,
            contexts=["prefix"],
        )
        for index, (text, label) in enumerate(told)
    ]
    glue = "" if prefix[-1].isspace() else " "
    return Document(
        id=row.id,
        topic=f"{row.source.name} {row.fields['doc_id']}",
        text=f"{prefix}{glue}{true}",
        claims=claims,
        passages=[Passage(id="prefix", text=prefix, source="prefix")],
        kind="normal",
        label_source="factor",
    )


def prompts(row: Row) -> dict | str:
    """Any table of questions: ``prompt``, ``question``, ``input`` or ``title``."""
    for name in ("prompt", "question", "input", "title"):
        text = row.fields.get(name)
        if isinstance(text, str):
            break
    else:
        raise BadInput([f"{row.path}:{row.number}: prompt: field required"])
    if not text.strip():
        return "row without a question"
    return {"id": row.id, "topic": row.topic("topic", name), "prompt": text.strip()}


def longfact(row: Row) -> dict | str:
    """LongFact (2403.18802): ``prompt``; the topic is the file's name behind its first ``_``."""
    if not row.fields["prompt"].strip():
        return "row without a question"
    topic = row.path.name.partition(".")[0].partition("_")[2] or row.path.stem
    return {"id": row.id, "topic": topic, "prompt": row.fields["prompt"].strip()}


FORMATS: dict[str, Callable[[Row], Document | dict | str]] = {
    "factscore": factscore,
    "factreasoner": factreasoner,
    "safe": safe,
    "veriscore": veriscore,
    "factor": factor,
    "prompts": prompts,
    "longfact": longfact,
}
