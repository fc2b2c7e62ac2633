"""The site: every page is built without a warning, and a search finds what people look for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "words",
    [
        "hpa",
        "hot partition",
        "UNKNOWN_MEMBER_ID",
        "session.timeout.ms",
        "scale_up_behavior",  # of the page of settings
        "join_parked waits for the round",  # of the page of events
        "poison-record crashed dead-letter",  # of the page of patterns
        "group.share.max.share.sessions",  # of the broker reference
        "generation in it (kip-792)",  # of the client profiles
    ],
)
def test_a_search_finds(site: Path, words: str) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    sections = [f"{entry['title']} {entry['text']}".lower() for entry in index["docs"]]
    assert any(all(word.lower() in section for word in words.split()) for section in sections)


def test_every_preset_has_a_page_that_leads_to_the_playground(site: Path) -> None:
    page = (site / "presets" / "rolling-deploy" / "index.html").read_text("utf-8")
    assert 'href="../../playground/#rolling-deploy"' in page
    assert "What does a rolling deploy cost" in page


def test_no_page_names_another_place_to_load_from(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert 'src="http' not in text, page
        assert 'rel="stylesheet" href="http' not in text, page


def test_a_presets_page_has_the_answer_of_the_command_and_its_picture(site: Path) -> None:
    page = (site / "presets" / "rolling-deploy" / "index.html").read_text("utf-8")
    assert "Recommendation: " in page
    assert 'src="../rolling-deploy.svg"' in page
    picture = (site / "presets" / "rolling-deploy.svg").read_text("utf-8")
    assert picture.startswith("<svg")
