"""A run's chunks done by workers on Ray Data, on this machine or on a cluster that is running.

Each worker builds what does the work once, from the same configuration. What it gives of a chunk
is what one process would give, and the process that started the run keeps it in the run's journal
as it comes, in any order: a run may lose workers, be killed, and go on with another number of them.
Ray is optional: ``pip install -r requirements-ray.txt``.
"""

from __future__ import annotations

import json
import logging
import math
import os
import secrets
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from eval.run.held import keep_answers
from eval.run.run import journal_rows
from records import Document, UserError

# A worker that dies on the same documents as often as this is not killed by chance.
_RETRIES = 3


class Scorer(Protocol):
    """What a worker builds; its models are those that it ``holds``."""

    def score(self, documents: Sequence[Document]) -> Sequence[Any]:
        """One record a document, in order."""


@dataclass(frozen=True)
class OnRay:
    """Does chunks on Ray; what :meth:`eval.run.run.Run.chunks` takes.

    Args:
        build: gives the scorer of a configuration; a function of a module, which every worker
            imports.
        config: the configuration.
        folder: of the run; workers keep language models' answers in it.
        workers: processes, each with the models in its memory.
        address: of a Ray cluster, ``auto`` for the one that runs on this machine; without it Ray is
            started here, on loopback, and ended with the run.
    """

    build: Callable[[dict], Scorer]
    config: dict
    folder: Path
    workers: int
    address: str | None = None

    def __call__(self, chunks: Sequence[Sequence[Document]]) -> Iterator[list[dict]]:
        """The journal's rows of each chunk, as they are ready.

        Raises:
            UserError: no Ray, no such cluster or one too small, a worker that dies again and again
                on the same documents, or what a worker has to say.
        """
        if not chunks:
            return
        ray = _started(self.workers, self.address)
        try:
            for row in self._dataset(ray, chunks).iter_rows():
                if row["refused"]:
                    raise UserError(row["refused"])
                yield json.loads(row["rows"])
        except ray.exceptions.RayActorError:
            raise UserError(
                "ray.workers: a worker died again and again on the same documents, as a rule for "
                "want of memory; give fewer --ray.workers or a smaller --chunk and start again: "
                "what was done is kept"
            ) from None
        finally:
            ray.shutdown()

    def _dataset(self, ray: ModuleType, chunks: Sequence[Sequence[Document]]) -> Any:
        """A row a chunk; rows become ready in any order."""
        from_driver = (self.build, self.config, self.folder, _host(ray), os.getcwd())
        rows = [
            {"documents": json.dumps([one.model_dump(mode="json") for one in chunk])}
            for chunk in chunks
        ]
        workers = min(self.workers, len(chunks))
        gpus = ray.cluster_resources().get("GPU", 0)
        with warnings.catch_warnings():
            # Ray means to take remote arguments by name, and has no other for this one yet.
            warnings.filterwarnings("ignore", "`ray_remote_args` is deprecated")
            return ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                _Worker,
                fn_constructor_args=from_driver,
                compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1),
                num_cpus=1,
                num_gpus=1 / math.ceil(workers / gpus) if gpus else None,
                max_task_retries=_RETRIES,
            )


class _Worker:
    """An actor: holds the scorer, on whatever machine Ray puts it.

    Args:
        build, config, folder: as of :class:`OnRay`.
        host: the machine of the process that started the run.
        place: the directory that it was started in; relative paths begin there.
    """

    def __init__(
        self, build: Callable[[dict], Scorer], config: dict, folder: Path, host: str, place: str
    ):
        self._given = (build, config, folder, host, place)

    def __call__(self, row: dict[str, str]) -> dict[str, str]:
        """The journal's rows of a chunk; ``refused`` is a user's mistake, which needs no trace."""
        documents = [Document.model_validate(one) for one in json.loads(row["documents"])]
        try:
            rows = journal_rows(self._scorer, self._scorer.score, documents)
        except UserError as error:
            return {"rows": "", "refused": str(error)}
        return {"rows": json.dumps(rows), "refused": ""}

    @cached_property
    def _scorer(self) -> Scorer:
        build, config, folder, host, place = self._given
        try:
            os.chdir(place)
        except OSError:
            raise UserError(
                f"{place}: not there on {_host(_ray())}; every machine needs the run's folder, "
                "files and checkpoints under the same path"
            ) from None
        if place not in sys.path:  # a user's own stages stand beside the configuration
            sys.path.insert(0, place)
        # The write-ahead log of SQLite is for the processes of one machine; others have own files.
        own = "" if _host(_ray()) == host else _host(_ray())
        scorer = build(_with_caches(config, own) if own else config)
        keep_answers(scorer, folder / f".{own}" if own else folder)
        return scorer


def _with_caches(value: Any, host: str) -> Any:
    """A configuration in which each cache is the host's own."""
    if isinstance(value, list):
        return [_with_caches(item, host) for item in value]
    if not isinstance(value, dict):
        return value
    config = {key: _with_caches(item, host) for key, item in value.items()}
    if isinstance(config.get("cache"), str):
        path = Path(config["cache"])
        config["cache"] = str(path.with_name(f"{path.stem}.{host}{path.suffix}"))
    return config


def _started(workers: int, address: str | None) -> ModuleType:
    """Ray, connected to a cluster, or to one on loopback that is started here.

    Raises:
        UserError: no Ray, no cluster there, or one with fewer processors than workers.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"  # the run has its own
    if address is None:
        # Otherwise Ray takes this machine's own address in the place of 127.0.0.1, and listens
        # to all that reach it. Despite its name the variable is read on Linux as well.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # For this run only; otherwise Ray keeps one in the home directory.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray = _ray()
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        here = {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
        ray.init(num_cpus=workers, **here, **quiet)
    else:
        try:
            _ask(address)
            ray.init(address=address, **quiet)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"ray.address: {address}: no Ray cluster answers ({reason})") from None
    there = int(ray.cluster_resources().get("CPU", 0))
    if there < workers:
        ray.shutdown()
        raise UserError(f"ray.workers: {workers}, but the cluster has {there} processors")
    return ray


def _ask(address: str) -> None:
    """Whether somebody listens at HOST:PORT, for Ray itself would try for many minutes.

    Raises:
        OSError: nobody does.
        ValueError: the port is no number.
    """
    host, colon, port = address.rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _ray() -> ModuleType:
    """Ray with its library of data.

    Raises:
        UserError: it is not installed.
    """
    try:
        __import__("ray.data")
    except ImportError as error:
        raise UserError(
            f"ray.workers: {error}; `pip install -r requirements-ray.txt`, or leave the option out"
        ) from None
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    return sys.modules["ray"]


def _host(ray: ModuleType) -> str:
    """The address by which Ray knows this machine."""
    return ray.util.get_node_ip_address()
