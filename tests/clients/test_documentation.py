"""The tables of the documentation that are made from the clients' code."""

from __future__ import annotations

from groupstorm.clients.consumer.settings import DEFAULTS
from groupstorm.clients.share.settings import SHARE_DEFAULTS
from tools.documentation.clients import (
    OPTION_NOTES,
    SHARE_OPTION_NOTES,
    options_page,
    profiles_page,
)


def test_the_page_of_options_has_defaults_and_words() -> None:
    page = options_page()
    assert "| `session_timeout_ms` | `45000` | not with" in page
    assert "| `isolation_level` | `read_uncommitted` | or `read_committed` |" in page
    assert "| `share_acknowledgement_mode` | `implicit` | or `explicit` |" in page


def test_the_tables_of_options_have_every_option() -> None:
    assert OPTION_NOTES.keys() == DEFAULTS.keys()
    assert SHARE_OPTION_NOTES.keys() == SHARE_DEFAULTS.keys() - DEFAULTS.keys()


def test_the_client_profiles_are_those_of_the_code() -> None:
    page = profiles_page()
    assert "| | `java` | `librdkafka` | `kafka-python` | `aiokafka` | `franz-go` |" in page
    assert "| rebalance timeout | `max.poll.interval.ms` |" in page
