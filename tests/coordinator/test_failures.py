"""An operation breaks off: its group fails alone, loudly, and its members come back. Error codes have Kafka's
names and numbers, and stand in the fields of responses that carry them.

A member that lists a protocol twice breaks the vote of its group, as in Kafka. A driver whose clock
raises stands for a defect, which no rule expects.
"""

from __future__ import annotations

import logging

import pytest
from kio.schema.errors import ErrorCode

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import error_response
from groupstorm.coordinator.messages import (
    CommittedOffset,
    GroupRequest,
    Heartbeat,
    HeartbeatResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    OffsetFetchResponse,
    Response,
)
from groupstorm.coordinator.records import AppendCause, GroupMetadataRecord
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay

TWICE = (("range", b""), ("range", b""))


def _failed(world: World) -> list[tuple[str, str]]:
    return [(event.group, event.detail) for event in world.of(events.OperationFailed)]


def test_a_defect_in_a_timer_answers_the_parked_and_empties_the_group(
    caplog: pytest.LogCaptureFixture,
) -> None:
    defects: list[Exception] = []

    def moment() -> int:
        """The driver's clock, of which the coordinator asks when it begins a session."""
        if defects:
            raise defects[0]
        return 0

    world = World(no_delay(), moment=moment)
    world.stable(3)
    answered, parked = world.join("m1"), world.join("m2")
    defects.append(ArithmeticError("out of order"))
    with caplog.at_level(logging.ERROR):
        world.advance(10_000)
    assert world.error(answered) is Error.NONE, "the defect comes when its session is to begin"
    assert world.error(parked) is Error.COORDINATOR_NOT_AVAILABLE
    assert (world.state, list(world.group.members)) == ("Empty", [])
    assert _failed(world) == [("g", "ArithmeticError: out of order")]
    assert "ArithmeticError: out of order" in caplog.text, "the traceback is logged"
    assert {(event.member_id, event.cause) for event in world.of(events.MemberRemoved)} == {
        ("m1", "failed"),
        ("m2", "failed"),
        ("m3", "session-expired"),
    }
    assert world.of(events.GroupStateChanged)[-1][1:5] == ("CompletingRebalance", "Empty", 2, "failed")
    assert world.coordinator.next_deadline() is None, "no timer of the group is left"


def test_a_request_that_breaks_its_group_gets_an_error_the_parked_retry_and_all_come_back() -> None:
    """The failed group is written empty: a restart must not bring the cause back."""
    world = World(no_delay())
    world.stable()
    world.commit("m1", generation=1, offset=7)
    parked = world.join("m1")
    culprit = world.join("m2", protocols=TWICE)
    assert world.error(culprit) is Error.UNKNOWN_SERVER_ERROR
    assert world.error(parked) is Error.COORDINATOR_NOT_AVAILABLE
    assert (world.state, world.committed()) == ("Empty", 7)
    records, cause = world.appended[-1]
    assert cause is AppendCause.EMPTY_GROUP
    [record] = records
    assert isinstance(record, GroupMetadataRecord)
    assert (record.members, record.leader) == (0, None)
    assert world.successor().state == "Empty"
    assert world.heartbeat("m1") is Error.UNKNOWN_MEMBER_ID
    assert world.error(world.join("m1")) is Error.UNKNOWN_MEMBER_ID
    joined = world.join()
    world.advance(0)
    assert world.joined(joined).error is Error.NONE
    world.complete()


@pytest.mark.parametrize("compatibility", Compatibility)
def test_a_fault_of_kafkas_fails_a_group_that_would_wait_for_ever(compatibility: Compatibility) -> None:
    """Kafka leaves the group in its round for ever."""
    world = World(no_delay(compatibility=compatibility))
    token = world.join(protocols=TWICE)
    world.advance(0)
    assert "supports none" in _failed(world)[0][1]
    if compatibility.is_to_the_letter:
        assert (world.error(token), world.state) == (None, "PreparingRebalance")
    else:
        assert (world.error(token), world.state) == (Error.COORDINATOR_NOT_AVAILABLE, "Empty")


@pytest.mark.parametrize("state", ["CompletingRebalance", "Stable"])
def test_a_fault_of_kafkas_that_harms_nobody_fails_only_its_request(state: str) -> None:
    """A pending id comes back as a static member. A timer ends the wait for SyncGroups."""
    world = World(no_delay())
    world.stable()
    if state == "CompletingRebalance":
        world.join("m1")
        world.join("m2")
    world.join(version=4)
    assert world.error(world.join("m3", "i", version=5)) is Error.UNKNOWN_SERVER_ERROR
    assert len(_failed(world)) == 1
    assert world.state == state
    token = world.send(Heartbeat("g", "m1", None, world.group.generation, 4))
    assert world.replies[token] == HeartbeatResponse(Error.NONE)


_BUSY, _UNKNOWN = Error.COORDINATOR_NOT_AVAILABLE, Error.UNKNOWN_MEMBER_ID
_OFFSETS = {"t": {0: CommittedOffset(5), 3: CommittedOffset(6)}, "u": {1: CommittedOffset(7)}}
_NOTHING = CommittedOffset(-1)


def test_names_and_numbers_are_those_of_kafkas_protocol() -> None:
    known = {code.name.upper(): code.value for code in ErrorCode}
    since_4_4 = {
        "GROUP_DELETION_FAILED": 134,
        "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED": 135,
        "CONTROLLER_ID_NOT_REGISTERED": 136,
    }
    assert {error.name: error.value for error in Error} == known | since_4_4


@pytest.mark.parametrize(
    ("request_", "error", "response"),
    [
        (OffsetCommit("g", "m", None, 1, _OFFSETS, 9), _BUSY,
         OffsetCommitResponse((("t", 0, _BUSY), ("t", 3, _BUSY), ("u", 1, _BUSY)))),
        # before version 2 the response has no error of the group
        (OffsetFetch("g", {"t": (0, 3)}, 1), _BUSY,
         OffsetFetchResponse(_BUSY, (("t", 0, _NOTHING, _BUSY), ("t", 3, _NOTHING, _BUSY)))),
        (OffsetFetch("g", {"t": (0, 3)}, 2), _BUSY, OffsetFetchResponse(_BUSY, ())),
        (OffsetFetch("g", None, 1), _BUSY, OffsetFetchResponse(_BUSY, ())),
        (LeaveGroup("g", (LeavingMember("m", "i"),), 5), _BUSY, LeaveGroupResponse(_BUSY, ())),
        # nobody is a member of a group that does not exist
        (LeaveGroup("g", (LeavingMember("m", "i"),), 5), _UNKNOWN,
         LeaveGroupResponse(Error.NONE, (LeftMember("m", "i", _UNKNOWN),))),
    ],
)  # fmt: skip
def test_an_error_stands_where_the_api_has_a_field_for_it(
    request_: GroupRequest, error: Error, response: Response
) -> None:
    assert error_response(request_, error) == response
