"""Every API in every version: each is answered, and no field of a handler gets lost."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from groupstorm.broker.apis import APIS, apis_of
from groupstorm.broker.apis.members import heartbeat_response
from groupstorm.protocol.codec import ResponseTypes, response_types
from groupstorm.protocol.codec.schemas import field_names
from tests.broker import wire
from tests.broker.asking import versions
from tests.broker.asking_all import ask_everything


@pytest.mark.slow
def test_handlers_name_no_field_that_no_version_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields that a version lacks are dropped: a misspelt field would be dropped silently."""
    named: dict[int, set[tuple[str, str]]] = {}
    make = ResponseTypes.make

    def noting(self: ResponseTypes, structure: str, /, **values: Any) -> Any:
        pairs = {(structure, field) for field in values}
        named.setdefault(self.root.__api_key__, set()).update(pairs)
        return make(self, structure, **values)

    monkeypatch.setattr(ResponseTypes, "make", noting)
    heartbeat_response.cache_clear()  # else those that were made before are given again
    ask_everything()
    assert set(named) == set(APIS)
    for api_key, pairs in named.items():
        modules = [
            sys.modules[response_types(api_key, version).root.__module__] for version in versions(api_key)
        ]
        known: set[str] = set()
        for structure in {structure for structure, _ in pairs}:
            for module in modules:
                known |= field_names(vars(module)[structure]) if structure in vars(module) else set()
        assert {field for _, field in pairs} <= known, api_key


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({wire.CONSUMER_GROUP_HEARTBEAT, wire.CONSUMER_GROUP_DESCRIBE}, id="consumer groups"),
        pytest.param({*range(wire.SHARE_GROUP_HEARTBEAT, wire.SHARE_ACKNOWLEDGE + 1),
                      wire.DESCRIBE_SHARE_OFFSETS, wire.ALTER_SHARE_OFFSETS, wire.DELETE_SHARE_OFFSETS},
                     id="share groups"),
        pytest.param({wire.STREAMS_GROUP_HEARTBEAT, wire.STREAMS_GROUP_DESCRIBE,
                      wire.TOPOLOGY_DESCRIPTION_UPDATE}, id="streams groups"),
    ],
)  # fmt: skip
def test_older_releases_hide_newer_protocols(keys: set[int]) -> None:
    assert keys <= apis_of("4.x").keys()
    for release in ("2.8", "3.9"):
        assert not keys & apis_of(release).keys()
