"""Which request a fault takes, and what the effect is."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.broker.apis import APIS
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import request_type
from groupstorm.testing.faults import GROUPS_OF, Delay, Disconnect, Fail, Fault, Faults, Seen
from tests.broker import wire

FAIL = Fail(Error.COORDINATOR_NOT_AVAILABLE)


def test_the_first_one_asked_for_comes_first_and_only_one_takes_a_request() -> None:
    faults = Faults()
    faults.add(Fault("Fetch", Delay(5), 1))
    faults.add(Fault("Fetch", Disconnect(), 1))
    effects = [faults.decide(Seen("Fetch", "a")) for _ in range(3)]
    assert effects == [Delay(5), Disconnect(), None]


def test_a_fault_that_lasts_takes_what_no_other_takes_until_it_is_cancelled() -> None:
    faults = Faults()
    slow = Fault(None, Delay(5), None)
    faults.add(slow)
    faults.add(Fault("Fetch", FAIL, 1))
    effects = [faults.decide(Seen(api, "a")) for api in ("Fetch", "Fetch", "Heartbeat", "ApiVersions")]
    assert effects == [FAIL, Delay(5), Delay(5), Delay(5)]
    assert (slow.hits, slow.left, faults.waiting) == (3, None, (slow,))
    faults.cancel(slow)
    assert (faults.decide(Seen("Fetch", "a")), faults.waiting) == (None, ())
    faults.cancel(slow)  # cancelled already


def test_a_fault_on_every_api_looks_at_the_groups_of_those_that_name_some() -> None:
    faults = Faults()
    faults.add(Fault(None, FAIL, None, group="g"))
    assert (faults.ask_for_groups("Heartbeat"), faults.ask_for_groups("Fetch")) == (True, False)
    assert faults.decide(Seen("Fetch", "a")) is None
    assert faults.decide(Seen("Heartbeat", "a", ("h",))) is None
    assert faults.decide(Seen("Heartbeat", "a", ("g",))) == FAIL


@given(
    counts=st.lists(st.integers(1, 4), max_size=4),
    requests=st.lists(st.sampled_from(["Fetch", "Heartbeat"]), max_size=30),
)
def test_as_many_requests_are_taken_as_were_asked_for(counts: list[int], requests: list[str]) -> None:
    faults = Faults()
    for count in counts:
        faults.add(Fault("Fetch", FAIL, count))
    taken = [faults.decide(Seen(api, "a")) for api in requests]
    fetches = [effect for api, effect in zip(requests, taken, strict=True) if api == "Fetch"]
    expected = min(sum(counts), len(fetches))
    assert fetches == [FAIL] * expected + [None] * (len(fetches) - expected)
    assert all(effect is None for api, effect in zip(requests, taken, strict=True) if api != "Fetch")


def message(api: str, version: int, **values: object) -> object:
    key = next(api_.key for api_ in APIS.values() if api_.name == api)
    return wire.message(request_type(key, version), values)


@pytest.mark.parametrize(
    ("api", "version", "values", "groups"),
    [
        ("Heartbeat", 4, {"group_id": "g"}, ("g",)),
        ("OffsetFetch", 5, {"group_id": "g"}, ("g",)),
        ("FindCoordinator", 2, {"key": "g", "key_type": 0}, ("g",)),
        ("FindCoordinator", 2, {"key": "t", "key_type": 1}, ()),
        ("FindCoordinator", 5, {"coordinator_keys": ("g", "h")}, ("g", "h")),
        ("DescribeGroups", 5, {"groups": ("g", "h")}, ("g", "h")),
        ("DeleteGroups", 2, {"groups_names": ("g", "h")}, ("g", "h")),
    ],
)
def test_the_groups_of_a_request(
    api: str, version: int, values: dict[str, object], groups: tuple[str, ...]
) -> None:
    assert GROUPS_OF[api](message(api, version, **values)) == groups


def test_the_apis_whose_requests_name_groups_are_known() -> None:
    """All whose requests have a field for them; the keys of FindCoordinator are groups, too."""
    names = {"group_id", "group_ids", "groups", "groups_names"}
    found = {
        api.name
        for key, api in APIS.items()
        if names & {field.name for field in fields(request_type(key, api.max_version))}
    }
    assert {*GROUPS_OF} == found | {"FindCoordinator"}


@pytest.mark.parametrize("api", sorted(GROUPS_OF))
def test_the_groups_of_every_version_of_an_api_are_found(api: str) -> None:
    served = next(one for one in APIS.values() if one.name == api)
    for version in range(served.min_version, served.max_version + 1):
        groups = GROUPS_OF[api](message(api, version))
        assert groups in ((), ("",)), version
