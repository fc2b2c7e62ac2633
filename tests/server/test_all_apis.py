"""Every API in every version: each is answered, and nothing that a handler says gets lost."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis import APIS
from groupstorm.coordinator.server.apis.key_12_heartbeat import heartbeat_response
from groupstorm.coordinator.server.codec import ResponseTypes, request_type, response_types
from groupstorm.coordinator.server.codec.schemas import field_names
from groupstorm.coordinator.server.config import OPTIONS
from tests.server import wire
from tests.server.asking import versions
from tests.server.asking_all import ASKING
from tests.server.desk import Desk
from tests.server.random_messages import random_message


def test_handlers_name_no_field_that_no_version_has(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields that a version lacks are dropped, so that a misspelt one would be lost in silence."""
    named: dict[int, set[tuple[str, str]]] = {}
    make = ResponseTypes.make

    def noting(self: ResponseTypes, structure: str, /, **values: Any) -> Any:
        pairs = {(structure, field) for field in values}
        named.setdefault(self.root.__api_key__, set()).update(pairs)
        return make(self, structure, **values)

    monkeypatch.setattr(ResponseTypes, "make", noting)
    heartbeat_response.cache_clear()  # else those that were made before are given again
    for api_key, ask in ASKING.items():
        for version in versions(api_key):
            ask(desk, version)
            desk.advance(0)
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


def test_random_requests_of_every_version_are_answered_or_close_the_connection(desk: Desk) -> None:
    draw = random.Random(4)
    answered = 0
    for api in APIS.values():
        for version in range(api.min_version, api.max_version + 1):
            for _ in range(5):
                message = random_message(request_type(api.key, version), draw)
                fields = {name: getattr(message, name) for name in field_names(message.__class__)}
                connection = desk.send(api.key, version, **fields)
                answered += connection in desk.answers
        desk.advance(60_000)
    assert answered > 300
    assert desk.ask(wire.API_VERSIONS, 0).error_code == Error.NONE


def test_the_documents_table_says_what_is_served() -> None:
    document = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+)-(\d+) \|$", document, re.MULTILINE)
    served = {(api.name, str(api.key), str(api.min_version), str(api.max_version)) for api in APIS.values()}
    assert set(rows) == served
    settings = document.partition("## Settings")[2].partition("## APIs")[0]
    documented = set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)`", settings))
    assert set(OPTIONS) <= documented
