"""Error codes under Kafka's names and numbers, and the fields of responses that carry them."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import error_response
from groupstorm.coordinator.messages import (
    CommittedOffset,
    GroupRequest,
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
        (
            OffsetCommit("g", "m", None, 1, _OFFSETS, 9),
            _BUSY,
            OffsetCommitResponse((("t", 0, _BUSY), ("t", 3, _BUSY), ("u", 1, _BUSY))),
        ),
        # before version 2 the response has no error of the group
        (
            OffsetFetch("g", {"t": (0, 3)}, 1),
            _BUSY,
            OffsetFetchResponse(_BUSY, (("t", 0, _NOTHING, _BUSY), ("t", 3, _NOTHING, _BUSY))),
        ),
        (OffsetFetch("g", {"t": (0, 3)}, 2), _BUSY, OffsetFetchResponse(_BUSY, ())),
        (OffsetFetch("g", None, 1), _BUSY, OffsetFetchResponse(_BUSY, ())),
        (LeaveGroup("g", (LeavingMember("m", "i"),), 5), _BUSY, LeaveGroupResponse(_BUSY, ())),
        # nobody is a member of a group that does not exist
        (
            LeaveGroup("g", (LeavingMember("m", "i"),), 5),
            _UNKNOWN,
            LeaveGroupResponse(Error.NONE, (LeftMember("m", "i", _UNKNOWN),)),
        ),
    ],
)
def test_an_error_stands_where_the_api_has_a_field_for_it(
    request_: GroupRequest, error: Error, response: Response
) -> None:
    assert error_response(request_, error) == response
