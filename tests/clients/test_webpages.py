"""Pages of a real HTTP server, as friendly and as hostile as the web is."""

from __future__ import annotations

import gzip
import shutil
import ssl
import subprocess
import time

import pytest

from clients.web_host import MAX_BYTES, decode_page, is_public
from clients.webpages import MAX_SILENT_HOSTS, Page, WebPages
from records import UserError
from tests.web_server import WebServer

AGENT = "tests/1.0 (me@my-lab.example)"
ADA = "<html><head><title>Ada</title></head><body><nav>Menu</nav><p>Ada wrote notes.</p></body>"
BOMB = gzip.compress(b"<p>" + b"Ada " * 40_000_000, 9)


@pytest.fixture
def server():
    with WebServer({"/ada": (200, ADA)}) as running:
        yield running


def pages(**options):
    local_options = {"private_hosts": ["127.0.0.1"], "timeout_s": 5, "retries": 0}
    return WebPages(**{"user_agent": AGENT, **local_options, **options})


def test_a_page_is_its_paragraphs_and_is_asked_for_once_with_a_name(server):
    address = f"{server.url}/ada"
    assert list(pages().read_all([address, address])) == [(address, Page("Ada wrote notes."))]
    assert pages().read(f" {address}#part\n") == Page("Ada wrote notes.")
    assert server.asked == ["/ada", "/ada"]
    assert server.headers[0]["User-Agent"] == AGENT
    assert server.headers[0]["Cookie"] is server.headers[0]["Authorization"] is None
    with pytest.raises(UserError, match="user_agent"):
        pages(user_agent=None)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((404, "gone"), "HTTP 404"),
        ((403, ADA), "HTTP 403"),
        ((200, b"%PDF-1.7", "application/pdf"), "no text but application/pdf"),
        ((200, ADA, None), "no text but unnamed"),
        ((200, "<p> </p>"), "no readable text"),
        ((200, bytes(range(256)) * 9, "text/plain; charset=utf-8"), "no readable text"),
        ((302, "", "text/html"), "HTTP 302"),
    ],
    ids=["404", "403", "pdf", "no type", "empty", "binary", "302"],
)
def test_what_is_no_page_says_why_and_is_not_asked_for_again(server, tmp_path, answer, why):
    server.pages["/x"] = answer
    for _ in range(2):
        assert pages(cache_dir=tmp_path).read(f"{server.url}/x") == Page(unread=why)
    assert server.asked == ["/x"]


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "x",
        "",
        "http://[::1",
        "http://127.0.0.1:99999/",
    ],
)
def test_what_is_no_address_of_the_web_is_not_asked(address):
    assert pages().read(address) == Page(unread="not an address of the web")


def test_private_addresses_are_refused_whatever_their_name(server):
    location = f":{server.server_port}/ada"
    for host in ("127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"):
        page = pages(private_hosts=[]).read(f"http://{host}{location}")
        assert page.text == ""
        assert page.unread in {"an address of a private network", "no answer: no connection"}
    assert pages(private_hosts=[]).read(server.url).unread == "an address of a private network"
    assert (
        pages()
        .read(f"http://me:pw@127.0.0.1{location}")
        .unread.startswith("an address with a user")
    )
    assert server.asked == []


def test_addresses_that_are_public():
    private = [
        "127.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "ff02::1",
        "64:ff9b::a9fe:a9fe",
    ]
    assert [address for address in private if is_public(address)] == []
    assert is_public("93.184.216.34")
    assert is_public("64:ff9b::93.184.216.34")
    assert is_public("2606:2800:220:1:248:1893:25c8:1946")


def test_redirects_are_followed_and_each_is_checked(server, tmp_path):
    for path, to in {
        "/old": "/older?a=b c",
        "/older?a=b%20c": f"{server.url}/ada",
        "/inside": f"http://localhost:{server.server_port}/ada",
        "/file": "file:///etc/passwd",
        "/round": "/round",
    }.items():
        server.pages[path] = lambda h, to=to: h.answer(301, "", Location=to)
    web = pages(cache_dir=tmp_path)
    assert web.read(f"{server.url}/old") == Page("Ada wrote notes.")
    assert web.read(f"{server.url}/inside") == Page(unread="an address of a private network")
    assert web.read(f"{server.url}/file") == Page(unread="not an address of the web")
    assert web.read(f"{server.url}/round") == Page(unread="redirected too often")
    assert server.asked == ["/old", "/older?a=b%20c", "/ada", "/inside", "/file", "/round"]


def test_of_a_huge_page_the_beginning_is_read(server):
    server.pages["/huge"] = (200, "<p>Ada wrote.</p>" + "<p>More and more.</p>" * 500_000)
    server.pages["/bomb"] = lambda h: h.answer(200, BOMB, Content_Encoding="gzip")
    for path, start in {"/huge": "Ada wrote. More and more.", "/bomb": "Ada Ada"}.items():
        text = pages().read(f"{server.url}{path}").text
        assert text.startswith(start)
        assert MAX_BYTES / 2 < len(text) <= MAX_BYTES


def drip(handler, head=b"HTTP/1.1 200 OK\r\n", piece=b"X: y\r\n"):
    """Something now and then, for ever: no time-out of a socket ends it."""
    handler.wfile.write(head)
    while True:
        handler.wfile.write(piece)
        time.sleep(0.05)


BODY = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (lambda handler: time.sleep(3), "time-out"),
        (lambda handler: drip(handler, piece=b"X"), "time-out"),
        (lambda handler: drip(handler, BODY), "time-out"),
        (lambda handler: handler.wfile.write(b"nonsense\r\n\r\n"), "broken off"),
        (lambda handler: handler.answer(200, "<p>cut", Content_Length="99"), "broken off"),
        (lambda handler: handler.answer(200, ADA, Content_Encoding="gzip"), "broken off"),
        ((503, "busy"), "HTTP 503"),
        (lambda handler: handler.answer(429, "", Retry_After="3600"), "HTTP 429"),
    ],
    ids=["slow", "headers", "body", "nonsense", "cut", "packed", "busy", "long"],
)
def test_what_is_no_whole_answer_is_given_up_and_not_kept(server, tmp_path, page, why):
    server.pages["/x"] = page
    web = pages(cache_dir=tmp_path, timeout_s=1.5)
    assert web.read(f"{server.url}/x") == Page(unread=f"no answer: {why}")
    server.pages["/x"] = (200, ADA)
    assert pages(cache_dir=tmp_path).read(f"{server.url}/x") == Page("Ada wrote notes.")


def test_a_host_is_asked_one_thing_at_a_time_and_soon_left(server):
    server.pages |= {f"/{n}": (200, ADA) for n in range(12)}
    page_of_address = dict(pages().read_all([f"{server.url}/{n}" for n in range(12)]))
    assert {page.text for page in page_of_address.values()} == {"Ada wrote notes."}
    assert server.most == 1
    server.asked.clear()
    server.pages |= {f"/{n}": (503, "") for n in range(12)}
    web = pages()
    page_of_address = dict(web.read_all([f"{server.url}/{n}" for n in range(12)]))
    assert {page.unread for page in page_of_address.values()} == {
        "no answer: HTTP 503",
        "no answer: none from its host",
    }
    assert len(server.asked) == 3
    server.pages["/0"] = (200, ADA)
    assert dict(web.read_all([f"{server.url}/0"])) == {f"{server.url}/0": Page("Ada wrote notes.")}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_an_encrypted_page_wants_a_certificate_that_is_known(server, tmp_path, monkeypatch):
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    files = ("-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    subprocess.run([*made, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.pages["/x"] = drip
    location = f"https://localhost:{server.server_port}"

    def read(path):
        return pages(private_hosts=["localhost"], timeout_s=2).read(f"{location}{path}")

    assert read("/ada") == Page(unread="no answer: no valid certificate")
    monkeypatch.setattr("clients.web_host.where", lambda: str(tmp_path / "cert.pem"))
    assert read("/ada") == Page("Ada wrote notes.")
    assert read("/x") == Page(unread="no answer: time-out")
    assert (
        pages(private_hosts=[]).read(f"{location}/ada").unread == "an address of a private network"
    )


def test_a_machine_that_reaches_nobody_ends_the_run(server):
    dead = [f"http://127.0.0.{n}:9/" for n in range(2, 30)]
    web = pages(private_hosts=[f"127.0.0.{n}" for n in range(1, 30)])
    with pytest.raises(UserError, match=f"no answer from {MAX_SILENT_HOSTS} hosts in a row"):
        list(web.read_all(dead, at_a_time=2))
    # One that answers now and then shows that it is not this machine.
    alive = [f"{server.url}/{n}" for n in range(3)]
    mixed = [*dead[:8], alive[0], *dead[8:16], alive[1], *dead[16:24], alive[2]]
    page_of_address = dict(web.read_all(mixed, at_a_time=1))
    assert [page_of_address[address].unread for address in alive] == ["HTTP 404"] * 3
    assert page_of_address[dead[0]].unread == "no answer: no connection"


@pytest.mark.parametrize(
    ("body", "parameters", "text"),
    [
        ("é".encode(), "", "é"),
        ("é!".encode("latin-1"), "", "é!"),
        ("é".encode("latin-1"), " charset=ISO-8859-1", "é"),
        ("<meta charset='windows-1251'>Ж".encode("cp1251"), "", "<meta charset='windows-1251'>Ж"),
        ("é".encode("utf-8-sig"), "charset=latin-1", "é"),
        ("abc é".encode()[:-1], "", "abc "),
        (b"abc", "charset=cp9999", "abc"),
        (b"", "", ""),
    ],
    ids=["utf-8", "latin-1", "header", "meta", "mark", "cut", "unknown charset", "empty"],
)
def test_characters_are_read_by_mark_header_page_or_as_they_can_be(body, parameters, text):
    assert decode_page(body, parameters) == text
