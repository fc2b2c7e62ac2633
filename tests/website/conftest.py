"""The site, built once for the tests of this folder and served on the loopback interface."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: A browser refuses whatever a page or a worker asks of another origin, and says so in its log.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:"
)


class _OwnOrigin(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing: a test shows what failed."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("material") is None:
        pytest.skip("needs mkdocs-material: ./dev site installs it")
    if shutil.which("npm") is None:
        pytest.skip("needs npm (Debian: apt install npm)")
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "tools.website", "--quick", "--out", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="session")
def origin(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_OwnOrigin, directory=str(site))) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()
