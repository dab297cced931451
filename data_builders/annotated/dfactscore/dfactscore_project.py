"""``dfactscore_project``: a Label Studio project to judge biographies."""

from dataclasses import dataclass

from data_builders.annotated.dfactscore.dfactscore_tasks import FORM, to_task
from data_builders.annotated.labelstudio_exports import project_pages
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from eval.decompose.given import Given
from eval.retrieve.given import Given as GivenPassages
from eval.stages import Decomposer, Retriever, run_decomposer
from records.abstention import clean_document, responds


@dataclass
class DFActScoreProject(Builder):
    """A Label Studio project (config, tasks, instructions) to judge biographies by person.

    In Label Studio: create a project, paste ``label_config.xml`` under Labeling Setup → Code and
    ``instructions.html`` under Instructions, import ``tasks.json``. Export as JSON and
    pass the file to ``python -m data_builders dfactscore_labels``.

    Args:
        output: folder of the project.
        documents: generator (or prompt) to its file of texts, or files whose records have a
            ``generator``; as for ``eval experiment dfactscore``.
        decompose: decomposer; null uses the claims of the documents.
        retrieve: retriever of the people's pages; null uses the passages of the documents.
        limit: use only the texts of the first N names, of all generators.
        seed: has no effect: nothing is random.
    """

    documents: dict[str, str] | list[str]
    decompose: Decomposer | None = None
    retrieve: Retriever | None = None

    reads = ("documents",)

    def files(self) -> dict[str, dict[str, str]]:
        return {"texts": {"test": "texts.jsonl"}}

    def make(self, work: Work) -> Made:
        from eval.metrics.dfactscore_files import read_texts  # imports PyTorch

        texts = read_texts(self.documents)
        names = list(dict.fromkeys(document.topic for document in texts))[: self.limit]
        drawn = [document for document in texts if document.topic in set(names)]
        documents = [clean_document(document) for document in drawn if responds(document)]
        work.dropped["text that does not respond"] += len(drawn) - len(documents)
        decompose, retrieve = self.decompose or Given(), self.retrieve or GivenPassages()
        claims, passages = retrieve(
            documents,
            [
                [c for c in text_claims if c.failed is None]
                for text_claims in run_decomposer(decompose, documents)
            ],
        )
        tasks = []
        for document, text_claims, pages in zip(documents, claims, passages, strict=True):
            if text_claims:
                tasks.append(to_task(document, text_claims, pages))
            work.dropped["text without a claim"] += not text_claims
        files = {"texts.jsonl": [{**task["data"]["record"], **task["data"]} for task in tasks]}
        return Made(files, read_card("dfactscore_project"), project_pages(FORM, tasks))
