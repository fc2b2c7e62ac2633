from __future__ import annotations

import re

import pytest

from groupstorm.trace.rows import event_name
from tests.generated_pages import check_section
from tools.documentation.trace import EVENTS, columns_table, events_page, provenance_table

SECTIONS = {"columns": columns_table(), "provenance": provenance_table()}


@pytest.mark.parametrize("section", SECTIONS)
def test_documentation_is_made_from_the_code(section: str) -> None:
    check_section("trace.md", section, SECTIONS[section])


def test_the_sites_page_says_of_every_event_what_happened() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?=\S+ )(?!\|)", events_page(), re.MULTILINE)
    assert rows == [event_name(one) for types in EVENTS.values() for one in types]
