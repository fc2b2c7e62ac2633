"""The advice of explain says how the members' library spells a setting, or that it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explain.explaining import explained
from tests.imports.importing import broker_line, import_texts, preparing, received, stabilized

SARAMA = "sarama-{0}1111111-2222-3333-4444-555555555555"
NOT_JOINED = f"Group g removed dynamic members who haven't joined: Set({SARAMA.format(2)})"
#: A round that waits a minute for a member that is busy.
HELD = (
    preparing("10:00:00,000", 0, f"Adding new member {SARAMA.format(1)} with group instance id None")
    + stabilized("10:00:03,000", 1, 2)
    + received("10:00:03,100", 1, 2)
    + preparing("10:05:00,000", 1, f"Adding new member {SARAMA.format(3)} with group instance id None")
    + broker_line("10:06:00,000", NOT_JOINED)
    + stabilized("10:06:00,001", 2, 2)
    + received("10:06:00,100", 2, 2)
)
TOO_SLOW = (
    "%4|1795424442.113|MAXPOLL|mail-1#consumer-1| [thrd:main]: Application maximum poll interval (300000ms) "
    "exceeded by 89ms (adjust max.poll.interval.ms for long-running message processing): leaving group\n"
)


def of_franz_go(second: int, message: str) -> str:
    return f"2026-11-20T10:00:{second:02}Z [INFO] {message}\n"


OUT = of_franz_go(
    1, "heartbeat errored; group: g, err: UNKNOWN_MEMBER_ID: The coordinator is not aware of this member."
) + of_franz_go(2, "joining group; group: g")


@pytest.mark.parametrize(
    ("log", "pattern", "said"),
    [
        (
            HELD,
            "held-join-phase",
            "In sarama max.poll.interval.ms is Consumer.Group.Rebalance.Timeout, there is no "
            "max.poll.records and there is no group.protocol.",
        ),
        (TOO_SLOW, "max-poll-interval", "In librdkafka there is no max.poll.records."),
        (OUT, "out-of-group", "In franz-go max.poll.interval.ms is RebalanceTimeout."),
    ],
)
def test_settings_as_the_library_spells_them(tmp_path: Path, log: str, pattern: str, said: str) -> None:
    import_texts(tmp_path, {"all.log": log})
    found = {one.pattern.name: one.pattern.advice for one in explained(tmp_path / "out").findings}
    assert found[pattern].endswith(said)
