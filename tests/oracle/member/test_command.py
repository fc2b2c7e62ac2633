"""`./dev oracle member`: exit status and output, with recordings in the place of a JVM."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.oracle.build import Built
from tests.oracle.command import main
from tests.oracle.member import command
from tests.oracle.member.recordings import read_golden
from tests.oracle.member.requests import Json
from tests.oracle.member.situation import Situation
from tests.oracle.member.situations import SITUATIONS


class _StandIn:
    """Records what the golden file holds, or something else."""

    def __init__(self) -> None:
        self.client_id = "c"

    async def record(self, _built: Built, situations: Iterable[Situation]) -> list[dict[str, Json]]:
        golden = read_golden()
        found = [golden[str(situation)] for situation in situations]
        for recording in found:
            for request in recording["requests"]:
                request["client_id"] = self.client_id
        return found


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> _StandIn:
    java = _StandIn()
    monkeypatch.setattr(command, "build", lambda: Built(Path("java"), ""))
    monkeypatch.setattr(command, "record", java.record)
    monkeypatch.setattr(command, "SITUATIONS", SITUATIONS[:2])
    return java


@pytest.mark.slow
def test_a_difference_that_is_not_known_ends_with_1_and_both_sides(
    stand_in: _StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.client_id = "another"
    assert main(["member"]) == 1
    out = capsys.readouterr().out
    assert "JoinGroup.client_id differs, which is not known" in out
    assert "    Kafka: another\n    ours:  c\n" in out
    assert out.endswith("situations: 2 of 1 kinds; with unknown differences: 2\n")
