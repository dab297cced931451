"""Client of one untrusted web host: the text or redirect target of a page.

The host's address is checked after connecting and before sending, so that DNS cannot switch to a
private address in between. Limits apply to decompressed bytes. An attempt is aborted at its
deadline, even if the server drips headers that would outlive socket time-outs.
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

# Longer waits count as no answer.
MAX_WAIT_S = 60.0
# Decompressed bytes that are read of a page.
MAX_BYTES = 1 << 20

# Gateways map these to the IPv4 address in the last four bytes (RFC 6052).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Private networks that Python 3.11 considers public (RFC 8215, RFC 3879).
_PRIVATE = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "fec0::/10")))
_MOVED = {301, 302, 303, 307, 308}
_MARKUP = {"text/html", "application/xhtml+xml"}
_ACCEPT = {"Accept": "text/html, text/plain;q=0.9", "Accept-Encoding": "gzip"}
# Allowed encodings; some others of Python take minutes for a page.
_ENCODING = re.compile(
    r"utf-?8|iso-?8859-\d+|windows-\d+|cp\d+|koi8-[ru]|gbk|gb2312|gb18030|big5|euc-(jp|kr)|"
    r"shift[_-]jis|(us-)?ascii|latin-?1",
    re.IGNORECASE,
)
_CHARSET = re.compile(r"charset\s*=\s*(?:[\"']\s*)?([\w-]+)", re.IGNORECASE)
_HEAD = 2048  # bytes searched for the declared encoding
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")

Answer = dict[str, str]


class WebHost(PoliteClient):
    """Reads pages of one host; requests stop after ``MAX_FAILURES_IN_A_ROW`` failures.

    Args:
        endpoint: scheme, host and port.
        lock: held during requests; shared by all clients of the host.
        silent: hosts without an answer; cleared when any host answers.
        private: allow addresses that are not public.
    """

    def __init__(
        self,
        endpoint: str,
        user_agent: str,
        *,
        lock: threading.Lock,
        silent: MutableSet[str],
        private: bool,
        **options: object,
    ):
        super().__init__(endpoint, user_agent, **options)
        # Its warnings about headers are not actionable.
        logging.getLogger("urllib3.connection").setLevel(logging.ERROR)
        self.lock = lock
        self.silent = silent
        self.private = private
        self.failures = 0

    def page(self, target: str) -> Answer:
        """Return a page by path and query, from the cache or the host.

        The answer has one of ``text``, ``to`` (redirect target) and ``unread`` (reason for no
        text).

        Raises:
            RefusedError: the host's address is not public.
            EndpointError: no complete answer after all retries, or too many failures before.
        """
        with self.lock:
            try:
                return self._answer(target, "pages", lambda: self._attempt(target), len)
            except EndpointError:
                self.failures += 1
                self.silent.add(self.endpoint)
                raise

    def _attempt(self, target: str) -> Answer:
        if self.failures >= MAX_FAILURES_IN_A_ROW:
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
                answer = _read_response(response, deadline)
            finally:
                response.close()
        self.failures = 0
        return answer

    @contextmanager
    def _connected(self, deadline: float) -> Iterator[urllib3.HTTPConnectionPool]:
        sockets: list[socket.socket] = []
        expired = threading.Event()

        def check(sock: socket.socket) -> None:
            if expired.is_set():
                raise TimeoutError
            if not self.private and not is_public(sock.getpeername()[0]):
                raise RefusedError("an address of a private network")
            sockets.append(sock.dup())  # TLS takes over the original

        timer = threading.Timer(deadline - time.monotonic(), _hang_up, [sockets, expired])
        timer.daemon = True
        timer.start()
        try:
            with self._pool(check) as pool:
                yield pool
            if expired.is_set():  # the answer may be truncated
                raise TimeoutError
        except urllib3.exceptions.NewConnectionError:
            raise Transient("no connection") from None
        except urllib3.exceptions.SSLError:
            raise Transient("no valid certificate") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            timed_out = isinstance(error, TimeoutError | urllib3.exceptions.TimeoutError)
            raise Transient("time-out" if timed_out or expired.is_set() else "broken off") from None
        finally:
            timer.cancel()
            for sock in sockets:
                sock.close()

    def _pool(self, on_connect: Callable[[socket.socket], None]) -> urllib3.HTTPConnectionPool:
        parts = urllib3.util.parse_url(self.endpoint)
        waits = urllib3.Timeout(connect=min(CONNECT_S, self.timeout_s), read=self.timeout_s)
        if parts.scheme == "http":
            return _Pool(parts.host, parts.port, timeout=waits, on_connect=on_connect)
        return _TlsPool(
            parts.host, parts.port, timeout=waits, ca_certs=where(), on_connect=on_connect
        )


class _CheckedConnection:
    """Mixin that calls ``on_connect`` before anything is sent."""

    def __init__(
        self, *arguments: object, on_connect: Callable[[socket.socket], None], **more: object
    ):
        super().__init__(*arguments, **more)
        self.on_connect = on_connect

    def _new_conn(self) -> socket.socket:
        sock = super()._new_conn()
        try:
            self.on_connect(sock)
        except BaseException:
            sock.close()
            raise
        return sock


class _Connection(_CheckedConnection, HTTPConnection):
    pass


class _TlsConnection(_CheckedConnection, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def is_public(address: str) -> bool:
    """Whether an IP address is a public unicast address."""
    ip = ipaddress.ip_address(address)
    embedded = getattr(ip, "ipv4_mapped", None) or getattr(ip, "sixtofour", None)
    if ip in _NAT64:
        embedded = ipaddress.IPv4Address(ip.packed[-4:])
    is_private = ip.is_multicast or any(ip in network for network in _PRIVATE)
    return ip.is_global and not is_private and (embedded is None or embedded.is_global)


def _hang_up(sockets: list[socket.socket], expired: threading.Event) -> None:
    expired.set()
    for sock in sockets:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _read_response(response: urllib3.BaseHTTPResponse, deadline: float) -> Answer:
    status, headers = response.status, response.headers
    if status in TRANSIENT_STATUS:
        reason, header = f"HTTP {status}", headers.get("Retry-After")
        wait = retry_after(header) if header else None
        if wait is not None and wait > MAX_WAIT_S:
            raise EndpointError(f"{reason}, and a wait of {wait:.0f} s", reason=reason)
        raise Transient(reason, wait)
    if status in _MOVED and headers.get("Location"):
        return {"to": headers["Location"]}
    if status != 200:
        return {"unread": f"HTTP {status}"}
    media_type, _, parameters = headers.get("Content-Type", "").partition(";")
    media_type = media_type.strip().lower()
    if media_type not in _MARKUP | {"text/plain"}:
        return {
            "unread": f"no text but {re.sub(r'[^a-z0-9/+.-]', '', media_type)[:60] or 'unnamed'}"
        }
    body = read_until(lambda: response.read1(1 << 16, decode_content=True), deadline, MAX_BYTES)
    markup = decode_page(body, parameters)
    text = page_text(markup) if media_type in _MARKUP else " ".join(markup.split())
    text = _CONTROL.sub("\ufffd", text)
    if not text or text.count("\ufffd") > len(text) / 10:
        return {"unread": "no readable text"}
    return {"text": text}


def decode_page(body: bytes, parameters: str = "") -> str:
    """Decode a page by its byte order mark, header, declared encoding, or as UTF-8 or CP1252.

    ``parameters`` are those of ``Content-Type``. The page may be truncated within a character.
    """
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    names = [name for mark, name in marks.items() if body.startswith(mark)]
    for declaration in (parameters, body[:_HEAD].decode("ascii", errors="ignore")):
        names += [name for name in _CHARSET.findall(declaration)[:1] if _ENCODING.fullmatch(name)]
    for name in names:
        with suppress(LookupError):
            return body.decode(name, errors="replace")
    with suppress(UnicodeDecodeError):
        return codecs.getincrementaldecoder("utf-8")().decode(body)
    return body.decode("windows-1252", errors="replace")
