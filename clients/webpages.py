"""A client of web pages on any host: what they say, as far as it is safe and polite to read them.

A page's address comes from a search engine or from another page, so none is trusted. Read are http
and https alone, of addresses that are public, every redirect checked anew, in bounds of time and
bytes (``clients/web_host.py``). Nothing goes along but the User-Agent: no cookies, no ``~/.netrc``,
and no proxy of the environment, which might reach what is private. Scripts are not run. A host is
asked one thing at a time, hosts side by side.
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
# So many hosts in a row without an answer: it is this machine that reaches nobody.
MAX_SILENT_HOSTS = 10


class Page(NamedTuple):
    """What a page says.

    Attributes:
        text: of its paragraphs; empty where it could not be read.
        unread: why it could not be read.
    """

    text: str = ""
    unread: str | None = None


class WebPages:
    """Reads pages of any host.

    Args:
        user_agent: who asks, with an address (``my-lab/1.0 (me@my-lab.example)``).
        cache_dir: folder of kept pages. What will not mend itself (no such page, no text) is kept
            as well; a host that gave no answer is asked again by the next run.
        private_hosts: names or addresses of hosts in a private network, or on this machine, that
            may be read all the same.
        timeout_s: seconds until an attempt is given up.
        retries: how often a failed attempt is repeated.
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
                "user_agent: web pages need one that says who asks, "
                "e.g. 'my-lab-facts/1.0 (https://my-lab.example; me@my-lab.example)'"
            )
        self.user_agent = user_agent
        self.cache_dir = cache_dir
        self.private_hosts = {host.lower() for host in private_hosts}
        self.options = {"timeout_s": timeout_s, "retries": retries}
        self._hosts: dict[str, WebHost] = {}
        self._alone: dict[str, threading.Lock] = {}
        self._silent: set[str] = set()

    def read_all(self, addresses: Sequence[str], at_a_time: int = 8) -> Iterator[tuple[str, Page]]:
        """Pages with their addresses, as they come.

        Args:
            addresses: each is read once.
            at_a_time: pages under way.
        """
        self._silent.clear()
        for host in self._hosts.values():
            host.lost = 0
        for address, page in ask_each(list(dict.fromkeys(addresses)), self.read, at_a_time):
            if page is not None:
                yield address, page

    def read(self, address: str) -> Page:
        """One page."""
        try:
            return self._follow(address)
        except RefusedError as error:
            return Page(unread=str(error))
        except EndpointError as error:
            if len(self._silent) >= MAX_SILENT_HOSTS:
                raise UserError(
                    f"no answer from {MAX_SILENT_HOSTS} hosts in a row ({error.reason}); check "
                    "that this machine reaches the web, then start again"
                ) from None
            return Page(unread=f"no answer: {error.reason}")

    def _follow(self, address: str) -> Page:
        base = ""
        for _ in range(REDIRECTS + 1):
            parts = _checked(base, address)
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
            alone=self._alone.setdefault(name, threading.Lock()),
            silent=self._silent,
            private=name in self.private_hosts,
            **self.options,
        )
        return self._hosts.setdefault(origin, host)


def _checked(base: str, address: str) -> SplitResult:
    """An address that may be asked, in one form, without what stands behind ``#``.

    Args:
        base: what the address may be relative to.
        address: as a stranger gave it.
    """
    try:
        parts = urlsplit(urljoin(base, address.strip()))
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except (ValueError, UnicodeError):
        parts, host, port = urlsplit(""), "", None
    if not host or parts.scheme not in {"http", "https"}:
        raise RefusedError("not an address of the web")
    if "@" in parts.netloc:
        raise RefusedError("an address with a user or a password")
    shown = f"[{host}]" if ":" in host else host
    return parts._replace(netloc=shown if port is None else f"{shown}:{port}", fragment="")
