"""Real servers on loopback that the integration tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from data_builders.kb.server import open_client
from tests.integration.pages import Pages, make_pages
from tests.integration.wiki import Wiki, missing, serve_wiki
from tests.kb_people import load_people


@pytest.fixture(scope="session", autouse=True)
def _loopback_without_proxy() -> Iterator[None]:
    """A proxy that the environment names is none for this machine."""
    with pytest.MonkeyPatch.context() as patch:
        unproxied_hosts = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        patch.setenv("no_proxy", f"{unproxied_hosts},127.0.0.1" if unproxied_hosts else "127.0.0.1")
        yield


@pytest.fixture(scope="session")
def pages() -> Pages:
    """What stands in the wiki."""
    with open_client() as client:
        return make_pages(load_people(client))


@pytest.fixture(scope="session")
def wiki(pages: Pages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    """A real MediaWiki with the pages of some sixty people; each test worker has its own."""
    if reason := missing():
        pytest.skip(reason)
    shared = "PYTEST_XDIST_WORKER" in os.environ  # then the workers' folders lie in one
    master = tmp_path_factory.getbasetemp().parent / "wiki" if shared else None
    with serve_wiki(pages, master) as running:
        yield running
