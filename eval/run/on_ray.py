"""Chunks processed by workers on Ray Data, on this machine or on a running cluster.

Each worker builds the stages once, from the same configuration. Its output for a chunk equals that
of a single process. The process that started the run writes results to a journal as they arrive, in
any order, so a run survives lost workers and resumes with any number of workers.
Ray is optional: ``pip install -r requirements-ray.txt``.
"""

import json
import logging
import math
import os
import re
import secrets
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from jsonargparse import ArgumentParser

from eval.run.parts import add_answer_caches
from records import UserError

# If a worker dies on the same chunk more often than this, it is not by chance.
_RETRIES = 3
# Columns of a worker's output.
_COLUMNS = ("chunk_id", "rows", "error")


@dataclass(frozen=True)
class OnRay:
    """Worker processes on Ray; without ``workers`` this process does all the work.

    Args:
        workers: number of worker processes on Ray Data, each with the models in its memory; results
            equal those of a single process (requirements-ray.txt, docs/scaling.md).
        address: address of a running Ray cluster, e.g. ``auto`` for one on this machine; null
            starts Ray here, on loopback, and stops it at the end.
    """

    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UserError(f"ray.workers: expected at least 1, got {self.workers}")
        if self.address is not None and self.workers is None:
            raise UserError("ray.address: needs --ray.workers, the number of worker processes")

    def rows(
        self,
        kind: type,
        config: dict,
        folder: Path,
        work: Callable[[Any, Any], list],
        chunks: Sequence[Any],
    ) -> Iterator[list]:
        """Yield the result of each chunk as soon as it is ready, in any order.

        Args:
            kind: the class that does the work; each worker builds one instance.
            config: its options, as in the YAML.
            folder: where language models and searchers without a cache store their answers.
            work: maps the instance and a chunk to a list of JSON values; a module-level function,
                or ``partial`` of one.
            chunks: JSON values.
        """
        left = {str(index): chunk for index, chunk in enumerate(chunks)}
        while left:
            before = len(left)
            ray = _connect(self.workers, self.address, is_retry=before < len(chunks))
            try:
                dataset = self._dataset(ray, (kind, config, folder, work), left)
                # No prefetching: it would hold back each chunk until the next one is ready.
                for batch in dataset.iter_batches(batch_size=None, prefetch_batches=0):
                    for chunk_id, rows, message in zip(*map(batch.get, _COLUMNS), strict=True):
                        if message:
                            raise UserError(str(message))
                        del left[chunk_id]
                        yield json.loads(rows)
            # Also raised when a machine is lost: its workers do not answer, and Ray gives up before
            # it restarts them elsewhere.
            except ray.exceptions.RayActorError as error:
                if len(left) == before:
                    raise UserError(_reason(error)) from None
            finally:
                ray.shutdown()

    def _dataset(self, ray: ModuleType, args: tuple, chunks: Mapping[str, Any]) -> Any:
        rows = [{"chunk_id": name, "chunk": json.dumps(chunk)} for name, chunk in chunks.items()]
        resources = ray.cluster_resources()
        workers = min(self.workers, len(rows), int(resources["CPU"]))
        gpus = resources.get("GPU", 0)
        with warnings.catch_warnings():
            # Ray deprecates this argument without a replacement.
            warnings.filterwarnings("ignore", "`ray_remote_args` is deprecated")
            return ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                _Worker,
                fn_constructor_args=(*args, _host(ray), os.getcwd()),
                compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1),
                num_cpus=1,
                num_gpus=1 / math.ceil(workers / gpus) if gpus else None,
                max_task_retries=_RETRIES,
            )


class _Worker:
    """An actor that holds the stages; ``host`` and ``directory`` are those of the main process."""

    def __init__(
        self,
        kind: type,
        config: dict,
        folder: Path,
        work: Callable[[Any, Any], list],
        host: str,
        directory: str,
    ):
        self._args = (kind, config, folder, host, directory)
        self._work = work

    def __call__(self, row: dict[str, str]) -> dict[str, str]:
        try:
            rows = self._work(self._root, json.loads(row["chunk"]))
        except UserError as error:
            return {"chunk_id": row["chunk_id"], "rows": "", "error": str(error)}
        return {"chunk_id": row["chunk_id"], "rows": json.dumps(rows), "error": ""}

    @cached_property
    def _root(self) -> Any:
        kind, config, folder, host, directory = self._args
        try:
            os.chdir(directory)
        except OSError:
            raise UserError(
                f"{directory}: not found on {_host(_ray())}; every machine needs the run's folder, "
                "files and checkpoints under the same path"
            ) from None
        if directory not in sys.path:  # for custom stages next to the configuration
            sys.path.insert(0, directory)
        # SQLite's write-ahead log works on one machine only, so other machines use their own files.
        suffix = "" if _host(_ray()) == host else _host(_ray())
        parser = ArgumentParser(exit_on_error=False)
        parser.add_class_arguments(kind, "root")
        options = _with_caches(config, suffix) if suffix else config
        root = parser.instantiate(parser.parse_object({"root": options})).root
        add_answer_caches(root, folder / f".{suffix}" if suffix else folder)
        return root


def _reason(error: Exception) -> str:
    absent = re.search(r"No module named '[^']*'", str(error))
    if absent:
        return (
            f"ray.workers: {absent[0]} on a worker's machine; every machine needs the code under "
            "the same path, and code outside the run's working directory in PYTHONPATH"
        )
    return (
        "ray.workers: a worker died repeatedly on the same chunk, usually for lack of memory; set "
        "fewer --ray.workers or a smaller --chunk, and run the command again: the run resumes"
    )


def _with_caches(value: Any, host: str) -> Any:
    if isinstance(value, list):
        return [_with_caches(item, host) for item in value]
    if not isinstance(value, dict):
        return value
    config = {key: _with_caches(item, host) for key, item in value.items()}
    if isinstance(config.get("cache"), str):
        path = Path(config["cache"])
        config["cache"] = str(path.with_name(f"{path.stem}.{host}{path.suffix}"))
    return config


def _connect(workers: int, address: str | None, is_retry: bool) -> ModuleType:
    """Connect to a Ray cluster, or start one on loopback.

    A retry accepts a cluster with fewer processors, since it may have lost a machine.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"  # the run has its own progress bar
    if address is None:
        # Otherwise Ray replaces 127.0.0.1 by this machine's address and accepts connections from
        # other machines. Despite its name the variable is also read on Linux.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # A token for this run only; otherwise Ray stores one in the home directory.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray = _ray()
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        local = {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
        try:
            # Without an address, Ray would join another user's cluster on this machine.
            ray.init("local", num_cpus=workers, **local, **quiet)
        except Exception as error:  # Ray raises no specific class
            reason = " ".join(str(error).split())[:200]
            raise UserError(
                f"ray.workers: Ray did not start, usually because the machine is busy; run the "
                f"command again, or without this option ({reason})"
            ) from None
    else:
        try:
            host, colon, port = address.rpartition(":")
            if colon:  # fails faster than Ray
                socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
            ray.init(address=address, **quiet)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"ray.address: {address}: no Ray cluster answers ({reason})") from None
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if cpus < (1 if is_retry else workers):
        ray.shutdown()
        raise UserError(f"ray.workers: {workers}, but the cluster has only {cpus} processors")
    return ray


def _ray() -> ModuleType:
    try:
        __import__("ray.data")
    except ImportError as error:
        raise UserError(
            f"ray.workers: {error}; `pip install -r requirements-ray.txt`, or remove the option"
        ) from None
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    return sys.modules["ray"]


def _host(ray: ModuleType) -> str:
    return ray.util.get_node_ip_address()
