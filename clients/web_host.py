"""One host of the web, of which nothing is trusted: what a page there says, or where it moved to.

Its address is looked at once the connection is there and before anything is sent, so that a name
cannot lead to a public address when it is checked and to a private one when it is asked. Bytes are
counted unpacked. The time of an attempt ends with its connection, also where a server drips headers
that would outlive every time-out of a socket.
"""

import codecs
import ipaddress
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, MutableSet
from contextlib import contextmanager, suppress

import urllib3
from requests.certs import where
from urllib3.connection import HTTPConnection, HTTPSConnection

from clients.asking import MAX_FAILURES_IN_A_ROW
from clients.markup import page_text
from clients.polite import (
    CONNECT_S,
    TRANSIENT_STATUS,
    EndpointError,
    PoliteClient,
    RefusedError,
    Transient,
    read_until,
    retry_after,
)

# A host that asks for a longer wait gives no answer.
MAX_WAIT_S = 60.0
# Of a page, unpacked; what follows is not read. The beginning is what is wanted.
MAX_BYTES = 1 << 20

# Addresses that a gateway takes for the IPv4 address in their last four bytes (RFC 6052).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Private networks that Python 3.11 takes for public ones (RFC 8215, RFC 3879).
_PRIVATE = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "fec0::/10")))
_MOVED = {301, 302, 303, 307, 308}
_MARKUP = {"text/html", "application/xhtml+xml"}
_ACCEPT = {"Accept": "text/html, text/plain;q=0.9", "Accept-Encoding": "gzip"}
# Encodings that pages have; Python knows others, some of which take minutes for a page.
_ENCODING = re.compile(
    r"utf-?8|iso-?8859-\d+|windows-\d+|cp\d+|koi8-[ru]|gbk|gb2312|gb18030|big5|euc-(jp|kr)|"
    r"shift[_-]jis|(us-)?ascii|latin-?1",
    re.IGNORECASE,
)
_CHARSET = re.compile(r"charset\s*=\s*(?:[\"']\s*)?([\w-]+)", re.IGNORECASE)
_HEAD = 2048  # bytes in which a page says its encoding
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")

Answer = dict[str, str]


class WebHost(PoliteClient):
    """Reads pages of one host.

    Args:
        endpoint: scheme, host and port.
        alone: held while the host is asked; all that ask the same host share it.
        silent: hosts without an answer; one that answers takes out all of them.
        private: whether the host may have an address that is not public.
        options: those of ``PoliteClient``.

    Attributes:
        lost: pages in a row to which it gave no answer; after ``MAX_FAILURES_IN_A_ROW`` no more.
    """

    def __init__(
        self,
        endpoint: str,
        user_agent: str,
        *,
        alone: threading.Lock,
        silent: MutableSet[str],
        private: bool,
        **options: object,
    ):
        super().__init__(endpoint, user_agent, **options)
        # It warns of headers that no user can mend.
        logging.getLogger("urllib3.connection").setLevel(logging.ERROR)
        self.alone = alone
        self.silent = silent
        self.private = private
        self.lost = 0

    def page(self, target: str) -> Answer:
        """A page of the host, as it is kept or as it is now.

        Args:
            target: path and query.

        Returns:
            One of ``text``, ``to`` (where it moved) and ``unread`` (why it says nothing).

        Raises:
            RefusedError: the host's address is not public.
            EndpointError: no whole answer after all retries, or to several pages before.
        """
        with self.alone:
            try:
                return self._answer(target, "pages", lambda: self._attempt(target), len)
            except EndpointError:
                self.lost += 1
                self.silent.add(self.endpoint)
                raise

    def _attempt(self, target: str) -> Answer:
        if self.lost >= MAX_FAILURES_IN_A_ROW:
            raise EndpointError(f"{self.endpoint} gave no answer", reason="none from its host")
        deadline = time.monotonic() + self.timeout_s
        with self._connected(deadline) as pool:
            response = pool.urlopen(
                "GET",
                target,
                headers={**_ACCEPT, "User-Agent": self.user_agent},
                retries=False,
                redirect=False,
                preload_content=False,
            )
            self.silent.clear()
            try:
                said = _said(response, deadline)
            finally:
                response.close()
        self.lost = 0
        return said

    @contextmanager
    def _connected(self, deadline: float) -> Iterator[urllib3.HTTPConnectionPool]:
        wires: list[socket.socket] = []
        late = threading.Event()

        def met(wire: socket.socket) -> None:
            if late.is_set():
                raise TimeoutError
            if not self.private and not is_public(wire.getpeername()[0]):
                raise RefusedError("an address of a private network")
            wires.append(wire.dup())  # encryption takes the first one over

        clock = threading.Timer(deadline - time.monotonic(), _hang_up, [wires, late])
        clock.daemon = True
        clock.start()
        try:
            with self._pool(met) as pool:
                yield pool
            if late.is_set():  # what came may have been cut
                raise TimeoutError
        except urllib3.exceptions.NewConnectionError:
            raise Transient("no connection") from None
        except urllib3.exceptions.SSLError:
            raise Transient("no valid certificate") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            slow = isinstance(error, TimeoutError | urllib3.exceptions.TimeoutError)
            raise Transient("time-out" if slow or late.is_set() else "broken off") from None
        finally:
            clock.cancel()
            for wire in wires:
                wire.close()

    def _pool(self, met: Callable[[socket.socket], None]) -> urllib3.HTTPConnectionPool:
        parts = urllib3.util.parse_url(self.endpoint)
        waits = urllib3.Timeout(connect=min(CONNECT_S, self.timeout_s), read=self.timeout_s)
        if parts.scheme == "http":
            return _Pool(parts.host, parts.port, timeout=waits, met=met)
        return _TlsPool(parts.host, parts.port, timeout=waits, ca_certs=where(), met=met)


class _Met:
    """A connection that is shown to ``met`` before anything is sent."""

    def __init__(self, *arguments: object, met: Callable[[socket.socket], None], **more: object):
        super().__init__(*arguments, **more)
        self.met = met

    def _new_conn(self) -> socket.socket:
        wire = super()._new_conn()
        try:
            self.met(wire)
        except BaseException:
            wire.close()
            raise
        return wire


class _Connection(_Met, HTTPConnection):
    pass


class _TlsConnection(_Met, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet, and of one machine."""
    one = ipaddress.ip_address(address)
    inner = getattr(one, "ipv4_mapped", None) or getattr(one, "sixtofour", None)
    if one in _NAT64:
        inner = ipaddress.IPv4Address(one.packed[-4:])
    private = one.is_multicast or any(one in network for network in _PRIVATE)
    return one.is_global and not private and (inner is None or inner.is_global)


def _hang_up(wires: list[socket.socket], late: threading.Event) -> None:
    late.set()
    for wire in wires:
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)


def _said(response: urllib3.BaseHTTPResponse, deadline: float) -> Answer:
    status, headers = response.status, response.headers
    if status in TRANSIENT_STATUS:
        why, asked = f"HTTP {status}", headers.get("Retry-After")
        wait = retry_after(asked) if asked else None
        if wait is not None and wait > MAX_WAIT_S:
            raise EndpointError(f"{why}, and a wait of {wait:.0f} s", reason=why)
        raise Transient(why, wait)
    if status in _MOVED and headers.get("Location"):
        return {"to": headers["Location"]}
    if status != 200:
        return {"unread": f"HTTP {status}"}
    kind, _, more = headers.get("Content-Type", "").partition(";")
    kind = kind.strip().lower()
    if kind not in _MARKUP | {"text/plain"}:
        return {"unread": f"no text but {re.sub(r'[^a-z0-9/+.-]', '', kind)[:60] or 'unnamed'}"}
    body = read_until(lambda: response.read1(1 << 16, decode_content=True), deadline, MAX_BYTES)
    written = decode_page(body, more)
    text = page_text(written) if kind in _MARKUP else " ".join(written.split())
    text = _CONTROL.sub("\ufffd", text)
    if not text or text.count("\ufffd") > len(text) / 10:
        return {"unread": "no readable text"}
    return {"text": text}


def decode_page(body: bytes, parameters: str = "") -> str:
    """A page's characters, by its mark of order, its header, itself, or as they are readable.

    Args:
        body: the page, perhaps cut within a character.
        parameters: of the header ``Content-Type``.
    """
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    names = [name for mark, name in marks.items() if body.startswith(mark)]
    for place in (parameters, body[:_HEAD].decode("ascii", errors="ignore")):
        names += [name for name in _CHARSET.findall(place)[:1] if _ENCODING.fullmatch(name)]
    for name in names:
        with suppress(LookupError):
            return body.decode(name, errors="replace")
    with suppress(UnicodeDecodeError):
        return codecs.getincrementaldecoder("utf-8")().decode(body)
    return body.decode("windows-1252", errors="replace")
