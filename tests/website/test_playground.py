"""The playground in Chromium runs the command's own storms, tells its errors, and asks no other origin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groupstorm
from tests.chromium import PATIENCE_S, browser, problems

pytestmark = pytest.mark.slow

SMALL = {"members": 4, "partitions": 8}


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("driver") / "log") as driver:
        yield driver


def shown(chrome: Any, name: str) -> str:
    return str(
        chrome.execute_script("return document.getElementById(arguments[0]).textContent", f"gs-{name}")
    )


def until(chrome: Any, condition: str) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(chrome, PATIENCE_S).until(lambda driver: driver.execute_script(f"return {condition}"))


def opened(chrome: Any, origin: str, link: str) -> None:
    """Load the page anew, also where only what follows # differs."""
    chrome.get("about:blank")
    chrome.get(f"{origin}/playground/#{link}")
    until(chrome, "!document.getElementById('gs-run').disabled")


def run(chrome: Any) -> None:
    chrome.execute_script("document.getElementById('gs-run').click()")
    until(chrome, "document.getElementById('gs-stop').hidden")


def test_the_report_of_a_link_is_the_commands_to_the_byte(chrome: Any, origin: str, tmp_path: Path) -> None:
    opened(chrome, origin, "rolling-deploy?members=4&partitions=8&seeds=2")
    run(chrome)
    expected = groupstorm.compare("rolling-deploy", seeds=2, settings=SMALL).report(tmp_path / "report.html")
    report = chrome.execute_script("return document.getElementById('gs-report').srcdoc")
    assert report == expected.read_text("utf-8")
    assert "groupstorm compare rolling-deploy --set members=4 --set partitions=8" in shown(chrome, "command")
    chrome.switch_to.frame(chrome.find_element("id", "gs-report"))
    until(chrome, "document.documentElement.dataset.ready === 'yes'")
    assert chrome.find_elements("css selector", "canvas[data-lane]")
    chrome.switch_to.default_content()
    assert problems(chrome) == []


@pytest.mark.parametrize(
    ("link", "line"),
    [
        (
            "rolling-deploy?members=abc",
            "members: 'abc' is no whole number (consumers of the group, or Streams instances)",
        ),
        ("rolling-deploy?membrs=3", "membrs: no such setting: did you mean members?"),
        (
            "rolling-deploy?partition.assignment.strategy=js:eval",
            "partition.assignment.strategy: js:eval: your own assignors run in a terminal, not here",
        ),
    ],
)
def test_a_wrong_value_is_refused_beside_its_field(chrome: Any, origin: str, link: str, line: str) -> None:
    opened(chrome, origin, link)
    run(chrome)
    (place,) = chrome.find_elements("css selector", ".gs-refused:not([hidden])")
    assert place.text == line
    assert (
        place.find_element("xpath", "..").find_element("tag name", "input").get_attribute("aria-invalid")
        == "true"
    )


def test_a_run_that_is_stopped_leaves_the_page_ready_for_another(chrome: Any, origin: str) -> None:
    opened(chrome, origin, "rolling-deploy?members=40&partitions=200&seeds=10")
    chrome.execute_script("document.getElementById('gs-run').click()")
    until(chrome, "!document.getElementById('gs-stop').hidden")
    chrome.execute_script("document.getElementById('gs-stop').click()")
    until(chrome, "!document.getElementById('gs-run').disabled")
    assert chrome.execute_script("return document.getElementById('gs-result').hidden")
    assert not chrome.find_element("id", "gs-stop").is_displayed()


@pytest.mark.parametrize(("asked", "taken"), [("999999", "10"), ("-1", "1"), ("2.5", "2"), ("many", "1")])
def test_a_link_asks_for_ten_seeds_at_most(chrome: Any, origin: str, asked: str, taken: str) -> None:
    opened(chrome, origin, f"rolling-deploy?seeds={asked}")
    assert chrome.find_element("name", "seeds").get_property("value") == taken


def test_what_is_changed_stands_in_the_link(chrome: Any, origin: str) -> None:
    opened(chrome, origin, "cold-start?members=5")
    field = chrome.find_element("css selector", "[data-setting='partitions']")
    field.clear()
    field.send_keys("abc")
    run(chrome)
    assert chrome.current_url.endswith("#cold-start?members=5&partitions=abc")
