from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from groupstorm.clients import events as member_events
from groupstorm.clients.streams import events as streams_events
from groupstorm.coordinator import events as coordinator_events
from groupstorm.storms import events as world_events
from groupstorm.trace.documentation import columns_table, events_table

PAGE = Path(__file__).parents[2] / "docs" / "trace.md"

SECTIONS = {
    "columns": columns_table(),
    "coordinator": events_table(coordinator_events.Event.__args__),
    "member": events_table(member_events.Event.__args__),
    "streams": events_table(streams_events.Event.__args__),
    "world": events_table(world_events.Event.__args__),
}


@pytest.mark.parametrize("section", SECTIONS)
def test_documentation_is_made_from_the_code(section: str) -> None:
    """GROUPSTORM_REWRITE=1 writes the page anew; look at the difference before it is committed."""
    pattern = re.compile(rf"(<!-- {section} -->\n)(.*?)(<!-- /{section} -->)", re.DOTALL)
    page = PAGE.read_text("utf-8")
    wanted = pattern.sub(lambda match: match[1] + SECTIONS[section] + "\n" + match[3], page)
    if os.environ.get("GROUPSTORM_REWRITE"):
        PAGE.write_text(wanted, "utf-8")
    assert page == wanted, "docs/trace.md is out of date: GROUPSTORM_REWRITE=1 pytest tests/trace"


def test_every_event_says_what_happened() -> None:
    for section in ("coordinator", "member", "streams", "world"):
        assert "|  |" not in SECTIONS[section]
