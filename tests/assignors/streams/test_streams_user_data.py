"""SubscriptionInfo and AssignmentInfo: there and back in every version, and bytes that are none."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors.userdata import TopicPartition, UserDataError
from groupstorm.assignors.userdata.streams import (
    NO_REBALANCE_MS,
    AssignmentInfo,
    AssignorError,
    HostInfo,
    SubscriptionInfo,
    TaskId,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
    encode_subscription_info,
    utf,
)

PROCESS = UUID("01020304-0506-4708-890a-0b0c0d0e0f10")
FULL = SubscriptionInfo(
    11,
    11,
    PROCESS,
    "host:8080",
    {TaskId("", 0, 1): -2, TaskId("", 1, 0): 77, TaskId("", 1, 3): -3},
    5,
    0,
    {"zone": "é", "cluster": "c1"},
)


@pytest.mark.parametrize("version", range(1, 12))
def test_a_subscription_in_each_version(version: int) -> None:
    """A value for which a version has no field is gone; before version 7 only running or not is left of
    offsets."""
    info = FULL._replace(version=version)
    found = decode_subscription_info(encode_subscription_info(info))
    assert (found.version, found.process) == (version, PROCESS)
    assert found.latest_supported_version == (11 if version >= 3 else -1)
    assert found.endpoint == ("host:8080" if version >= 2 else None)
    sums = (
        info.offset_sums
        if version >= 7
        else {TaskId("", 0, 1): -2, TaskId("", 1, 0): -3, TaskId("", 1, 3): -3}
    )
    assert found.offset_sums == sums
    assert found.unique_field == (5 if version >= 8 else 0)
    assert found.client_tags == (FULL.client_tags if version >= 11 else {})


def test_the_bytes_of_version_eleven() -> None:
    info = SubscriptionInfo(11, 11, PROCESS, None, {TaskId("t", 1, 2): 3}, -1, 4, {"k": "v"})
    assert encode_subscription_info(info).hex() == (
        "0000000b" + "0000000b" + PROCESS.hex + "00000000"
        "00000001" + "00000001" + "00000002" + "0000000000000003" + "000174"
        "ff" + "00000004" + "00000001" + "000000016b" + "0000000176"
    )


def test_a_version_that_is_too_new_is_read_as_far_as_it_can_be() -> None:
    data = (12).to_bytes(4, "big") + (13).to_bytes(4, "big") + b"whatever"
    assert decode_subscription_info(data) == SubscriptionInfo(12, 13)


def test_named_topologies_need_version_ten() -> None:
    info = FULL._replace(offset_sums={TaskId("name", 0, 0): 1})
    assert decode_subscription_info(encode_subscription_info(info)) == info
    for version in (6, 9):
        with pytest.raises(UserDataError, match="Named topologies"):
            encode_subscription_info(info._replace(version=version))
        with pytest.raises(UserDataError, match="Named topologies"):
            encode_assignment_info(ASSIGNED._replace(version=version, active=[TaskId("name", 0, 0)]))


PARTS = [TopicPartition("in", 0), TopicPartition("other", 3)]
ASSIGNED = AssignmentInfo(
    11,
    11,
    [TaskId("", 0, 1), TaskId("", 0, 1), TaskId("", 1, 0)],
    {TaskId("", 2, 0): PARTS},
    {HostInfo("a", 1): PARTS, HostInfo("b", 2): []},
    {HostInfo("b", 2): PARTS[:1]},
    AssignorError.NONE,
    1_234,
)


@pytest.mark.parametrize("version", range(1, 13))
def test_an_assignment_in_each_version(version: int) -> None:
    found = decode_assignment_info(encode_assignment_info(ASSIGNED._replace(version=version)))
    assert (found.version, found.active, found.standby) == (version, ASSIGNED.active, ASSIGNED.standby)
    assert found.commonly_supported_version == (11 if version >= 3 else -1)
    assert found.hosts == (ASSIGNED.hosts if version >= 2 else {})
    assert found.standby_hosts == (ASSIGNED.standby_hosts if version >= 6 else {})
    assert found.next_rebalance_ms == (1_234 if version >= 7 else NO_REBALANCE_MS)


def test_version_twelve_is_ours_and_carries_the_imbalance() -> None:
    info = ASSIGNED._replace(
        version=12, error_code=AssignorError.IMBALANCED_ASSIGNMENT, watch=[TaskId("", 2, 0)]
    )
    assert decode_assignment_info(encode_assignment_info(info)) == info


@pytest.mark.parametrize("text", ["plain", "nul\0inside", "\U0001f600", "é漢", "\ud83d"])
def test_javas_modified_utf8(text: str) -> None:
    assert b"\0" not in utf(text)[2:]
    info = ASSIGNED._replace(hosts={HostInfo(text, 1): []}, standby_hosts={})
    assert decode_assignment_info(encode_assignment_info(info)).hosts == {HostInfo(text, 1): []}


@pytest.mark.parametrize("version", [0, -1, 13])
def test_versions_that_do_not_exist(version: int) -> None:
    with pytest.raises(UserDataError):
        encode_assignment_info(ASSIGNED._replace(version=version))
    with pytest.raises(UserDataError):
        decode_assignment_info(version.to_bytes(4, "big", signed=True) + bytes(40))


@given(st.binary(max_size=200), st.integers(1, 12))
def test_garbage_is_refused_and_nothing_else_happens(data: bytes, version: int) -> None:
    for decode in (decode_subscription_info, decode_assignment_info):
        for tried in (data, version.to_bytes(4, "big") + data):
            try:
                decode(tried)
            except UserDataError:
                continue


@pytest.mark.parametrize("version", range(1, 12))
def test_bytes_that_end_early_are_refused(version: int) -> None:
    whole = encode_subscription_info(FULL._replace(version=version))
    for end in range(len(whole)):
        with pytest.raises(UserDataError):
            decode_subscription_info(whole[:end])
    whole = encode_assignment_info(ASSIGNED._replace(version=version))
    for end in range(len(whole)):
        with pytest.raises(UserDataError):
            decode_assignment_info(whole[:end])


def test_a_length_that_is_not_there_is_not_believed() -> None:
    with pytest.raises(UserDataError, match="2147483647 elements"):
        decode_assignment_info((1).to_bytes(4, "big") + b"\x7f\xff\xff\xff" + bytes(16))
