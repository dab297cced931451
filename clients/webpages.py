"""Client of web pages on any host.

Addresses come from search engines and other pages, so none is trusted. Only http and https on
public addresses are read, every redirect is checked, and time and bytes are limited
(``clients/web_host.py``). Only the user agent is sent: no cookies, ``~/.netrc`` or environment
proxy. Scripts are not run. Each host gets one request at a time; hosts are read in parallel.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from clients.asking import ask_each
from clients.polite import EndpointError, RefusedError
from clients.web_host import WebHost
from records import UserError

REDIRECTS = 5
# Hosts without an answer in a row, after which this machine counts as offline.
MAX_SILENT_HOSTS = 10


class Page(NamedTuple):
    """The text of a page, or why it could not be read."""

    text: str = ""
    unread: str | None = None


class WebPages:
    """Reads pages of any host.

    Args:
        user_agent: with a contact (``my-lab/1.0 (me@my-lab.example)``).
        cache_dir: folder of cached pages. Permanent failures (no such page, no text) are cached
            too; hosts without an answer are retried by the next run.
        private_hosts: names or addresses in a private network, or on this machine, that may be
            read.
        timeout_s: seconds per attempt.
        retries: retries of a failed attempt.
    """

    def __init__(
        self,
        user_agent: str | None,
        cache_dir: Path | None = None,
        private_hosts: Collection[str] = (),
        timeout_s: float = 20.0,
        retries: int = 1,
    ):
        if not user_agent:
            raise UserError(
                "user_agent: web pages require a user agent with a contact, "
                "e.g. 'my-lab-facts/1.0 (https://my-lab.example; me@my-lab.example)'"
            )
        self.user_agent = user_agent
        self.cache_dir = cache_dir
        self.private_hosts = {host.lower() for host in private_hosts}
        self.options = {"timeout_s": timeout_s, "retries": retries}
        self._hosts: dict[str, WebHost] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._silent: set[str] = set()

    def read_all(self, addresses: Sequence[str], at_a_time: int = 8) -> Iterator[tuple[str, Page]]:
        """Yield pages with their addresses, as they complete; duplicates are read once."""
        self._silent.clear()
        for host in self._hosts.values():
            host.failures = 0
        for address, page in ask_each(list(dict.fromkeys(addresses)), self.read, at_a_time):
            if page is not None:
                yield address, page

    def read(self, address: str) -> Page:
        """Read one page."""
        try:
            return self._follow(address)
        except RefusedError as error:
            return Page(unread=str(error))
        except EndpointError as error:
            if len(self._silent) >= MAX_SILENT_HOSTS:
                raise UserError(
                    f"no answer from {MAX_SILENT_HOSTS} hosts in a row ({error.reason}); check "
                    "the network connection, then resume"
                ) from None
            return Page(unread=f"no answer: {error.reason}")

    def _follow(self, address: str) -> Page:
        base = ""
        for _ in range(REDIRECTS + 1):
            parts = _normalise_address(base, address)
            target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            answer = self._host(parts).page(target)
            if "to" not in answer:
                return Page(answer.get("text", ""), answer.get("unread"))
            base, address = parts.geturl(), answer["to"]
        return Page(unread="redirected too often")

    def _host(self, parts: SplitResult) -> WebHost:
        name, origin = parts.hostname or "", f"{parts.scheme}://{parts.netloc}"
        host = self._hosts.get(origin) or WebHost(
            origin,
            self.user_agent,
            cache_dir=self.cache_dir,
            lock=self._locks.setdefault(name, threading.Lock()),
            silent=self._silent,
            private=name in self.private_hosts,
            **self.options,
        )
        return self._hosts.setdefault(origin, host)


def _normalise_address(base: str, address: str) -> SplitResult:
    """Return an untrusted address in normal form, without fragment, if it may be requested."""
    try:
        parts = urlsplit(urljoin(base, address.strip()))
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except (ValueError, UnicodeError):
        parts, host, port = urlsplit(""), "", None
    if not host or parts.scheme not in {"http", "https"}:
        raise RefusedError("not an address of the web")
    if "@" in parts.netloc:
        raise RefusedError("an address with a user or a password")
    bracketed = f"[{host}]" if ":" in host else host
    return parts._replace(netloc=bracketed if port is None else f"{bracketed}:{port}", fragment="")
