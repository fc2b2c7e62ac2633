"""The tables of the documentation that are made from the clients' code."""

from __future__ import annotations

from groupstorm.clients.consumer.settings import DEFAULTS
from groupstorm.clients.share.settings import SHARE_DEFAULTS
from tests.generated_pages import check_section
from tools.documentation.clients import (
    OPTION_NOTES,
    SHARE_OPTION_NOTES,
    options_table,
    profiles_page,
    share_options_table,
)


def test_the_consumers_options_are_those_of_the_code() -> None:
    check_section("asyncio-consumer.md", "options", options_table())


def test_the_share_consumers_options_are_those_of_the_code() -> None:
    check_section("asyncio-consumer.md", "share-options", share_options_table())


def test_the_tables_of_options_have_every_option() -> None:
    assert OPTION_NOTES.keys() == DEFAULTS.keys()
    assert SHARE_OPTION_NOTES.keys() == SHARE_DEFAULTS.keys() - DEFAULTS.keys()


def test_the_client_profiles_are_those_of_the_code() -> None:
    page = profiles_page()
    assert "| | `java` | `librdkafka` | `kafka-python` | `aiokafka` | `franz-go` |" in page
    assert "| rebalance timeout | `max.poll.interval.ms` |" in page
