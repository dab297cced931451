"""Chunks done by workers on Ray Data, on this machine or on a cluster that is running.

Each worker makes what does the work once, from the same configuration. What it gives of a chunk is
what one process would give, and the process that started it all keeps it in a journal as it comes,
in any order: a run may lose workers, be killed, and go on with another number of them.
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

# A worker that dies on the same chunk more often than this is not killed by chance.
_RETRIES = 3
# What a worker gives of a chunk.
_MADE = ("place", "rows", "refused")


@dataclass(frozen=True)
class OnRay:
    """Processes on Ray, if any; without ``workers`` the process that runs does all by itself.

    Args:
        workers: do the work with so many processes on Ray Data, each with the models in its memory;
            the outputs are those of one process (requirements-ray.txt, docs/scaling.md).
        address: of a Ray cluster that is running, e.g. ``auto`` for the one on this machine;
            without it Ray is started here, on loopback, and ended with the work.
    """

    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UserError(f"ray.workers: {self.workers}; give at least 1")
        if self.address is not None and self.workers is None:
            raise UserError("ray.address: say with --ray.workers how many processes work there")

    def rows(
        self,
        kind: type,
        config: dict,
        folder: Path,
        work: Callable[[Any, Any], list],
        chunks: Sequence[Any],
    ) -> Iterator[list]:
        """What the work returns of each chunk, as it is ready, in any order.

        Args:
            kind: the class that does the work; every worker makes one of it.
            config: its options, as the YAML has them.
            folder: where language models and searchers without a cache keep their answers.
            work: takes what was made and a chunk, and returns a list of JSON values; a function of
                a module, or ``partial`` of one.
            chunks: JSON values.
        """
        left = {str(place): chunk for place, chunk in enumerate(chunks)}
        while left:
            before = len(left)
            ray = _started(self.workers, self.address, anew=before < len(chunks))
            try:
                dataset = self._dataset(ray, (kind, config, folder, work), left)
                # Without prefetching: otherwise a chunk is given when the next one is ready.
                for batch in dataset.iter_batches(batch_size=None, prefetch_batches=0):
                    for place, rows, refused in zip(*map(batch.get, _MADE), strict=True):
                        if refused:
                            raise UserError(str(refused))
                        del left[place]
                        yield json.loads(rows)
            # So ends the loss of a machine, too: its workers do not answer, and Ray gives up before
            # it starts them elsewhere.
            except ray.exceptions.RayActorError as error:
                if len(left) == before:
                    raise UserError(_why(error)) from None
            finally:
                ray.shutdown()

    def _dataset(self, ray: ModuleType, given: tuple, chunks: Mapping[str, Any]) -> Any:
        rows = [{"place": place, "chunk": json.dumps(chunk)} for place, chunk in chunks.items()]
        there = ray.cluster_resources()
        workers, gpus = min(self.workers, len(rows), int(there["CPU"])), there.get("GPU", 0)
        with warnings.catch_warnings():
            # Ray means to take remote arguments by name, and has no other for this one yet.
            warnings.filterwarnings("ignore", "`ray_remote_args` is deprecated")
            return ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                _Worker,
                fn_constructor_args=(*given, _host(ray), os.getcwd()),
                compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1),
                num_cpus=1,
                num_gpus=1 / math.ceil(workers / gpus) if gpus else None,
                max_task_retries=_RETRIES,
            )


class _Worker:
    """An actor: holds what does the work, on whatever machine Ray puts it.

    Args:
        kind, config, folder, work: as :meth:`OnRay.rows` takes them.
        host: the machine of the process that started the run.
        place: the directory that it was started in; relative paths begin there.
    """

    def __init__(
        self,
        kind: type,
        config: dict,
        folder: Path,
        work: Callable[[Any, Any], list],
        host: str,
        place: str,
    ):
        self._given = (kind, config, folder, host, place)
        self._work = work

    def __call__(self, row: dict[str, str]) -> dict[str, str]:
        try:
            rows = self._work(self._made, json.loads(row["chunk"]))
        except UserError as error:
            return {"place": row["place"], "rows": "", "refused": str(error)}
        return {"place": row["place"], "rows": json.dumps(rows), "refused": ""}

    @cached_property
    def _made(self) -> Any:
        kind, config, folder, host, place = self._given
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
        parser = ArgumentParser(exit_on_error=False)
        parser.add_class_arguments(kind, "made")
        options = _with_caches(config, own) if own else config
        made = parser.instantiate(parser.parse_object({"made": options})).made
        add_answer_caches(made, folder / f".{own}" if own else folder)
        return made


def _why(error: Exception) -> str:
    absent = re.search(r"No module named '[^']*'", str(error))
    if absent:
        return (
            f"ray.workers: {absent[0]} where a worker is; every machine needs the code under the "
            "same path, and what is not below the folder of the run in PYTHONPATH"
        )
    return (
        "ray.workers: a worker died again and again on the same chunk, as a rule for want of "
        "memory; give fewer --ray.workers or a smaller --chunk, where there is one, and start "
        "again: what was done is kept"
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


def _started(workers: int, address: str | None, anew: bool) -> ModuleType:
    """Ray, connected to a cluster, or to one on loopback that is started here.

    Args:
        workers: who are to work there.
        address: of the cluster.
        anew: some of the work is done; then what is left of a cluster that lost a machine will do.
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
        try:
            ray.init(num_cpus=workers, **here, **quiet)
        except Exception as error:  # Ray has no other class for it
            reason = " ".join(str(error).split())[:200]
            raise UserError(
                f"ray.workers: Ray did not start here, as a rule because the machine is busy; "
                f"start again, or leave the option out ({reason})"
            ) from None
    else:
        try:
            _ask(address)
            ray.init(address=address, **quiet)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"ray.address: {address}: no Ray cluster answers ({reason})") from None
    there = int(ray.cluster_resources().get("CPU", 0))
    if there < (1 if anew else workers):
        ray.shutdown()
        raise UserError(f"ray.workers: {workers}, but the cluster has {there} processors")
    return ray


def _ask(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _ray() -> ModuleType:
    try:
        __import__("ray.data")
    except ImportError as error:
        raise UserError(
            f"ray.workers: {error}; `pip install -r requirements-ray.txt`, or leave the option out"
        ) from None
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    return sys.modules["ray"]


def _host(ray: ModuleType) -> str:
    return ray.util.get_node_ip_address()
