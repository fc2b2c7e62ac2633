"""Lines on a service's standard output."""

from __future__ import annotations

import pytest

from groupstorm.chaos.host import ProcessedLine, read_line
from groupstorm.problems import InputError
from groupstorm.testing.records import Produced

PLACE = b'{"processed": {"topic": "orders", "partition": 3, "offset": 0}, "at_ms": 1767225600000.5}'


def test_a_record_by_its_number_or_its_place() -> None:
    assert read_line(b'{"processed": 7}\n') == ProcessedLine(7, None)
    assert read_line(PLACE) == ProcessedLine(Produced("orders", 3, 0), 1767225600000.5)


@pytest.mark.parametrize("line", [b"", b"started\n", b"{broken", b'{"level": "info"}', b"[1]", b"7", b"{}"])
def test_other_lines_are_not_about_records(line: bytes) -> None:
    assert read_line(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"processed": "7"}',
        b'{"processed": true}',
        b'{"processed": {"topic": "orders", "partition": 3}}',
        b'{"processed": 7, "at_ms": "now"}',
    ],
)
def test_a_line_that_is_about_a_record_has_to_be_right(line: bytes) -> None:
    with pytest.raises(InputError, match=r"the service wrote .*: expected "):
        read_line(line)
