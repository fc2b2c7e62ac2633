from __future__ import annotations

import pytest

from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import imported as imported_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import share as share_events
from groupstorm.trace.events import streams as streams_events
from tests.generated_pages import check_section
from tools.documentation.trace import columns_table, events_table, provenance_table

SECTIONS = {
    "columns": columns_table(),
    "coordinator": events_table(coordinator_events.Event.__args__),
    "member": events_table(member_events.Event.__args__),
    "streams": events_table(streams_events.Event.__args__),
    "share": events_table(share_events.Event.__args__),
    "world": events_table(world_events.Event.__args__),
    "provenance": provenance_table(),
    "imported": events_table(imported_events.Event.__args__),
}


@pytest.mark.parametrize("section", SECTIONS)
def test_documentation_is_made_from_the_code(section: str) -> None:
    check_section("trace.md", section, SECTIONS[section])


def test_every_event_says_what_happened() -> None:
    for section in ("coordinator", "member", "streams", "share", "world", "imported"):
        assert "|  |" not in SECTIONS[section]
