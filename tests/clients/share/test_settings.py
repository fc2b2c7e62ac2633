"""A share consumer's options as users write them."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.clients.share.sessions import ShareFetchOptions
from groupstorm.clients.share.settings import ShareSettings, read_share_settings
from groupstorm.problems import InputError

pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")


def read(**options: Any) -> ShareSettings:
    return read_share_settings(("t", "t"), "localhost:9092", "g", options)  # type: ignore[arg-type]  # bad ones


def test_the_defaults_are_kafkas() -> None:
    settings = read()
    assert settings.fetch == ShareFetchOptions(1, 52_428_800, 500, 500, False)
    assert (settings.explicit, settings.default_api_timeout_ms) == (False, 60_000)
    assert (settings.config.topics, settings.config.max_poll_interval_ms) == (("t",), 300_000)
    assert read(share_acquire_mode="record_limit", max_poll_records=7).fetch[-2:] == (7, True)
    assert read(share_acknowledgement_mode="explicit").explicit


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"auto_offset_reset": "earliest"}, "auto_offset_reset: no such option"),
        ({"group_instance_id": "a"}, "group_instance_id: no such option"),
        ({"share_acquire_mode": "strict"}, "'strict', expected one of batch_optimized, record_limit"),
        ({"max_poll_records": 0}, "max_poll_records: 0, expected a whole number, 1 or more"),
        ({"security_protocol": "SSL"}, "ssl_context: security_protocol asks for TLS"),
    ],
)
def test_invalid_options_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(**options)
    with pytest.raises(InputError, match="group_id: a group is needed"):
        read_share_settings(("t",), "localhost:9092", "", {})
