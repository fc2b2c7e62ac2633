"""Alerts: how they are written, when they begin, when they are over."""

from __future__ import annotations

import pytest

from groupstorm.problems import InputError
from groupstorm.watch.alerts import Active, compare, read_alert
from groupstorm.watch.rolling import Rolling
from tests.explain.explaining import removed
from tests.watch.rolling_rows import GROUP, SECOND, by_hand, generation_row, given

HOUR_US = 3_600 * SECOND


def test_an_alert_has_a_figure_a_limit_and_a_span() -> None:
    alert = read_alert("generations>3 per 1h")
    assert (alert.beyond.figure, alert.beyond.comparison, alert.beyond.limit) == ("generations", ">", 3)
    assert alert.span_us == HOUR_US


def test_a_figure_goes_by_its_word_too_and_a_limit_has_a_unit() -> None:
    alert = read_alert("no-progress >= 2 per 90s")
    assert alert.beyond.figure == "generations_without_progress_max"
    assert read_alert("unowned>5m per 1h").beyond.limit == 300
    assert read_alert("unowned_max_seconds>500ms per 10m").beyond.limit == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("generations>3", "expected FIGURE>NUMBER per TIME"),
        ("generations per 1h", "expected FIGURE>NUMBER per TIME"),
        ("generations>3 per 0s", "expected more than 0"),
        ("generations>3 per week", "is no duration"),
        ("generashions>3 per 1h", "did you mean generations?"),
        ("generations>3m per 1h", "is no time"),
        ("generations>3 for 99% per 1h", "expected no 'for ...%'"),
    ],
)
def test_an_alert_that_cannot_be_understood_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match="--alert ") as refused:
        read_alert(text)
    assert message in str(refused.value)


def test_an_alert_begins_once_and_is_over_once() -> None:
    alert = read_alert("generations>3 per 60s")
    rolling = Rolling(alert.span_us)
    rolling.add(generation_row(seq) for seq in range(4))
    active: Active = frozenset()
    seen = []
    for end_s in (3, 4, 60, 61, 70):
        changes, active = compare(
            [alert], {alert.span_us: rolling.pictures(alert.span_us, end_s * SECOND)}, active
        )
        seen.append([str(change) for change in changes])
    begun = "ALERT g: generations>3 per 60s: generations is 4"
    over = "ALERT over g: generations>3 per 60s: generations is 3"
    assert seen == [[begun], [], [], [over], []]


def test_a_figure_that_is_not_known_is_beyond_no_limit() -> None:
    alert = read_alert("unowned>=0 per 60s")
    rolling = Rolling(alert.span_us)
    rolling.add([generation_row(0)])
    spans = {alert.span_us: rolling.pictures(alert.span_us, SECOND)}
    assert compare([alert], spans, frozenset()) == ([], frozenset())
    (change,), active = compare([alert], spans, frozenset({(alert.text, "g")}))
    assert (change.begins, change.value, active) == (False, None, frozenset())
    assert str(change).endswith("unowned_partition_seconds is not known")


@pytest.mark.parametrize(("text", "begins"), [("unowned>15s per 60s", True), ("unowned<60s per 60s", False)])
def test_partitions_without_an_owner_begin_an_alert_though_the_sum_is_unknown(
    text: str, begins: bool
) -> None:
    """A static member came back at 40 s, nobody knows after which time; it is gone since 50 s, with both
    partitions: 20 s at least until 60 s."""
    static = {"instance": "pod-0"}
    back = {"s": 40, "event": "member_replaced", "member": "a", "member_id": "a-2", "generation": 2, **static}
    gone = {**removed(50, "a", "a-2", "session-expired"), **static}
    rows = [GROUP[0], {**GROUP[1], **static}, *GROUP[2:], back | {"previous_member_id": "a-1"}]
    rolling = Rolling(60 * SECOND)
    rolling.add(by_hand(*rows, given(41, "a-2", "t-0", "t-1"), gone))
    spans = {60 * SECOND: rolling.pictures(60 * SECOND, 60 * SECOND)}
    assert spans[60 * SECOND][0].figures.unowned_partition_seconds is None
    changes, _ = compare([read_alert(text)], spans, frozenset())
    assert [(one.begins, one.value) for one in changes] == ([(True, 20)] if begins else [])


def test_an_alert_is_json_for_a_command() -> None:
    alert = read_alert("generations>3 per 1m")
    rolling = Rolling(alert.span_us)
    rolling.add(generation_row(seq) for seq in range(5))
    (change,), _ = compare([alert], {alert.span_us: rolling.pictures(alert.span_us, 4 * SECOND)}, frozenset())
    assert change.to_json() == {
        "alert": "generations>3 per 1m",
        "state": "begun",
        "group": "g",
        "figure": "generations",
        "value": 5,
        "comparison": ">",
        "limit": 3,
        "span_seconds": 60,
    }
