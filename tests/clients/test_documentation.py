"""The tables of the documentation that are made from the clients' code."""

from __future__ import annotations

from groupstorm.clients.consumer.settings import DEFAULTS
from tests.generated_pages import check_section
from tools.documentation.clients import OPTION_NOTES, options_table, profiles_table


def test_the_consumers_options_are_those_of_the_code() -> None:
    check_section("asyncio-consumer.md", "options", options_table())


def test_the_table_of_options_has_every_option() -> None:
    assert OPTION_NOTES.keys() == DEFAULTS.keys()


def test_the_client_profiles_are_those_of_the_code() -> None:
    check_section("scenarios.md", "profiles", profiles_table())
