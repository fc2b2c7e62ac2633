"""The broker reference has every setting, limit and API of the code."""

from __future__ import annotations

from groupstorm.broker.config import SETTINGS
from tools.documentation.broker import LIMITS, REMARKS, reference_page


def test_the_reference_has_every_setting_limit_and_api() -> None:
    page = reference_page()
    for row in (
        "| `group.initial.rebalance.delay.ms` | `3000` |  |",
        "| `max.connections` | of each broker | `2147483647` | further connections are closed at once",
        "| `segment.bytes` | `1073741824` |",
        "| ShareFetch | 78 | 1-2 |",
    ):
        assert row in page
    assert all(f"| `{name}` | " in page for name in SETTINGS)


def test_every_setting_that_has_a_remark_can_be_set() -> None:
    assert set(SETTINGS) >= REMARKS.keys()


def test_every_setting_that_kafka_lacks_has_a_remark() -> None:
    assert {name for name in SETTINGS if name.startswith("groupstorm.")} <= REMARKS.keys()


def test_every_setting_that_limits_clients_is_in_the_table_of_limits() -> None:
    """A new one is found by its name."""
    limiting = {name for name in SETTINGS if name.startswith("groupstorm.max.") or name.endswith(".max.size")}
    assert limiting <= {limit for limit, _, _ in LIMITS}
