"""Chromium for a test, driven through its own driver."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from groupstorm.clients.brokers.jvm import held_ports
from tests.processes import last_lines

#: For a page, a script, or a condition of a page.
PATIENCE_S = 120


@contextmanager
def browser(log: Path, *arguments: str) -> Iterator[Any]:
    """``log``: receives what the driver says."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: ./dev test installs it")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs Chromium and its driver (Debian: apt install chromium chromium-driver)")
    from selenium.common.exceptions import WebDriverException

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900", *arguments):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with held_ports(1) as (port,):
        service = webdriver.ChromeService(driver, port=port, log_output=str(log))
        try:
            chrome = webdriver.Chrome(options=options, service=service)
        except WebDriverException as problem:
            pytest.fail(f"{problem}{last_lines(log.read_bytes())}")
        try:
            chrome.set_page_load_timeout(PATIENCE_S)
            chrome.set_script_timeout(PATIENCE_S)
            yield chrome
        finally:
            chrome.quit()


def problems(chrome: Any) -> list[str]:
    """Failures of scripts, and what the page's policy refused. `COLOURS` itself causes a warning."""
    return [entry["message"] for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]
