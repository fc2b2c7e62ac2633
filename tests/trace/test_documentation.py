from __future__ import annotations

import re

from groupstorm.trace.rows import event_name
from groupstorm.trace.schema import COLUMNS, PROVENANCE_COLUMNS
from tools.documentation.reference import EVENTS, events_page

COLUMN_TABLES, _, EVENT_TABLES = events_page().partition("## Events")


def test_the_sites_page_says_of_every_column_what_it_means() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \S+ \| \w.* \|$", COLUMN_TABLES, re.MULTILINE)
    assert rows == [column.name for column in (*COLUMNS, *PROVENANCE_COLUMNS)]


def test_the_sites_page_says_of_every_event_what_happened() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?=\S+ )(?!\|)", EVENT_TABLES, re.MULTILINE)
    assert rows == [event_name(one) for types in EVENTS.values() for one in types]
