"""A real MediaWiki for as long as a test session: SQLite, PHP's own web server, loopback only.

Debian's packages ``mediawiki``, ``php-cli``, ``php-sqlite3``, ``php-mbstring``, ``php-xml`` and
``php-intl`` give the program. Nothing outside the temporary folder is written, and no web server of
the system is needed.

Four things differ from Wikipedia. Two of its extensions are in no package, so a few lines of
settings do what the API shows of them: ``__DISAMBIG__`` sets the page property ``disambiguation``,
and ``{{#wikibaseitem:KEY}}`` sets ``wikibase_item`` (the last part of the person's IRI in the
snapshot). The database's lag is what the request header ``X-Simulated-Lag`` says, so that the
wiki's own ``maxlag`` answer can be had. And the **page views**: Wikimedia serves them from a REST
service of its own, which nobody can install, so ``router.php`` answers that one path from files, in
the documented shape. That endpoint alone is a stand-in of ours.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.pages import Pages

MEDIAWIKI = Path("/usr/share/mediawiki")
WORKERS = 4
READY_S = 20.0
# What URLs in answers begin with, so that no answer holds a port.
SERVER = "https://wiki.factfoundry.example"

SETTINGS = r"""
wfLoadExtensions( [ 'TextExtracts', 'Cite', 'ParserFunctions', 'PageImages' ] );
$wgArticlePath = '/wiki/$1';
$wgJobRunRate = 0;
$wgEnableEmail = false;
$wgCacheDirectory = "$wgSQLiteDataDir/cache";
$wgShowHostnames = true;
$wgOverrideHostname = 'mw-test';
$wgHooks['GetDoubleUnderscoreIDs'][] = static function ( &$ids ) {
    $ids[] = 'disambiguation';
};
$wgHooks['ParserFirstCallInit'][] = static function ( $parser ) {
    $parser->setFunctionHook( 'wikibaseitem', static function ( $parser, $key = '' ) {
        $parser->getOutput()->setPageProperty( 'wikibase_item', trim( $key ) );
        return '';
    } );
};
$wgHooks['ApiMaxLagInfo'][] = static function ( &$lag ) {
    $said = RequestContext::getMain()->getRequest()->getHeader( 'X-Simulated-Lag' );
    $lag['host'] = 'db-test';
    $lag['lag'] = $said === false ? 0 : (int)$said;
};
$wgExtensionMessagesFiles['TestWords'] = __DIR__ . '/words.php';
"""

WORDS = r"""<?php
$magicWords = [ 'en' => [
    'wikibaseitem' => [ 0, 'wikibaseitem' ],
    'disambiguation' => [ 0, '__DISAMBIG__' ],
] ];
"""

ROUTER = r"""<?php
// Page views as Wikimedia's REST service gives them; everything else is MediaWiki's.
$path = explode( '?', $_SERVER['REQUEST_URI'] )[0];
$begin = '/api/rest_v1/metrics/pageviews/per-article/';
if ( strncmp( $path, $begin, strlen( $begin ) ) !== 0 ) {
    return false;
}
$parts = explode( '/', substr( $path, strlen( $begin ) ) );
$items = [];
$asked = array_slice( $parts, 0, 3 ) === [ 'en.wikipedia', 'all-access', 'user' ];
if ( $asked && count( $parts ) === 7 && $parts[4] === 'monthly' ) {
    $title = str_replace( ' ', '_', rawurldecode( $parts[3] ) );
    $file = __DIR__ . '/views/' . hash( 'sha256', $title ) . '.json';
    $months = is_file( $file ) ? json_decode( file_get_contents( $file ), true ) : [];
    foreach ( $months as $month => $views ) {
        $day = $month . '01';
        if ( substr( $parts[5], 0, 8 ) <= $day && $day <= substr( $parts[6], 0, 8 ) ) {
            $items[] = [ 'project' => 'en.wikipedia', 'article' => $title,
                'granularity' => 'monthly', 'timestamp' => $day . '00',
                'access' => 'all-access', 'agent' => 'user', 'views' => $views ];
        }
    }
}
if ( $items ) {
    header( 'Content-Type: application/json' );
    echo json_encode( [ 'items' => $items ], JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES );
} else {
    http_response_code( 404 );
    header( 'Content-Type: application/problem+json' );
    echo json_encode( [ 'type' => 'about:blank', 'title' => 'Not Found', 'method' => 'get',
        'status' => 404, 'detail' => 'no data for this page and time', 'uri' => $path ] );
}
return true;
"""


# Where the tests are killed themselves, their end of the pipe closes, and all goes with them.
GUARDED = """
exec 3<&0
(cat <&3; rm -rf -- "$0"; kill -KILL 0) >/dev/null &
exec php "$@" </dev/null
"""


@dataclass(frozen=True)
class Wiki:
    """A running wiki.

    Attributes:
        url: ``http://127.0.0.1:PORT``.
        pages: what stands in it.
    """

    url: str
    pages: Pages

    @property
    def api(self) -> str:
        """URL of the Action API, with Wikipedia's path."""
        return f"{self.url}/w/api.php"

    @property
    def rest(self) -> str:
        """URL of the REST service, of which only the page views are there."""
        return f"{self.url}/api/rest_v1"


def missing() -> str | None:
    """Why no wiki can be set up here, or ``None``."""
    if not (MEDIAWIKI / "api.php").is_file():
        return f"no {MEDIAWIKI}; install Debian's package mediawiki"
    if shutil.which("php") is None:
        return "no php; install Debian's packages php-cli php-sqlite3 php-mbstring php-xml php-intl"
    return None


@contextmanager
def serve_wiki(pages: Pages, master: Path | None = None) -> Iterator[Wiki]:
    """Install, fill and serve a wiki; all of it is gone after the block.

    Args:
        pages: its contents.
        master: a folder that test workers share: the first one leaves a copy of the filled wiki
            there, the others take theirs from it.

    Yields:
        The running wiki.

    Raises:
        RuntimeError: a step of the set-up failed, with what it said.
    """
    memory = Path("/dev/shm")  # five times faster than a disk
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="wiki_", dir=place) as made:
        folder = Path(made)
        if master is None:
            _make(folder, pages)
        else:
            _make_or_copy(folder, pages, master)
        with _served(folder) as url:
            yield Wiki(url, pages)


def _make(folder: Path, pages: Pages) -> None:
    _install(folder)
    _fill(folder, pages)


def _make_or_copy(folder: Path, pages: Pages, master: Path) -> None:
    with open(f"{master}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not master.exists():
            _make(folder, pages)
            half = Path(f"{master}.half")
            shutil.copytree(folder, half, symlinks=True)
            (half / "place").write_text(str(folder), encoding="utf-8")
            half.rename(master)
            return
    shutil.copytree(master, folder, symlinks=True, dirs_exist_ok=True)
    place = (folder / "place").read_text(encoding="utf-8")
    settings = _settings(folder).read_text(encoding="utf-8")  # it names its database by full path
    _settings(folder).write_text(settings.replace(place, str(folder)), encoding="utf-8")


def _install(folder: Path) -> None:
    for name in ("data/cache", "conf", "www", "views"):
        (folder / name).mkdir(parents=True)
    (folder / "www" / "w").symlink_to(MEDIAWIKI)
    options = {
        "dbtype": "sqlite",
        "dbpath": folder / "data",
        "dbname": "wiki",
        "server": SERVER,
        "scriptpath": "/w",
        "lang": "en",
        "confpath": folder / "conf",
        "pass": "only-for-tests-1234",
    }
    words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    _php(None, "install.php", *words, "Test wiki", "Admin")
    with _settings(folder).open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)
    (folder / "conf" / "words.php").write_text(WORDS, encoding="utf-8")
    (folder / "router.php").write_text(ROUTER, encoding="utf-8")


def _fill(folder: Path, pages: Pages) -> None:
    dump = folder / "dump.xml"
    dump.write_text(pages.dump(), encoding="utf-8")
    # Links and properties all at once at the end take half as long as page by page.
    quick = ("--quiet", "--no-updates", "--username-prefix", "test")
    _php(folder, "importDump.php", *quick, str(dump))
    _php(folder, "refreshLinks.php", "--quiet")
    _php(folder, "rebuildtextindex.php", "--quiet")
    for title, months in pages.views.items():
        key = hashlib.sha256(title.replace(" ", "_").encode()).hexdigest()
        (folder / "views" / f"{key}.json").write_text(json.dumps(months), encoding="utf-8")


def _settings(folder: Path) -> Path:
    return folder / "conf" / "LocalSettings.php"


def _environment(folder: Path | None) -> dict[str, str]:
    """The installer must find no settings, everything else must find ours."""
    environment = {name: value for name, value in os.environ.items() if name != "MW_CONFIG_FILE"}
    environment["PHP_CLI_SERVER_WORKERS"] = str(WORKERS)
    return (
        environment if folder is None else {**environment, "MW_CONFIG_FILE": str(_settings(folder))}
    )


def _php(folder: Path | None, script: str, *arguments: str) -> None:
    command = ["php", str(MEDIAWIKI / "maintenance" / script), *arguments]
    done = subprocess.run(
        command, env=_environment(folder), capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed: {(done.stdout + done.stderr)[-2000:]}")


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "php.log"
    address = f"127.0.0.1:{port}"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [
                "sh",
                "-c",
                GUARDED,
                folder,
                "-S",
                address,
                "-t",
                folder / "www",
                folder / "router.php",
            ],
            env=_environment(folder),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        _wait_until_ready(server, port, log)
        yield f"http://{address}"
    finally:
        # The workers outlive their parent, so the whole group ends.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        server.stdin.close()


def _wait_until_ready(server: subprocess.Popen, port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"php opened no port: {log.read_text(errors='replace')[-2000:]}")
