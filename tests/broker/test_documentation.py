"""docs/serve.md says what the code does: its tables are made from the code, or compared with it."""

from __future__ import annotations

import re

from groupstorm.broker.settings import SETTINGS
from groupstorm.cli.commands import as_command
from groupstorm.cli.serve import serve
from tests.generated_pages import DOCS, check_section
from tools.documentation.broker import (
    LIMITS,
    REMARKS,
    limits_table,
    served_apis,
    settings_table,
    topic_configs_table,
)


def test_the_settings_are_those_of_the_code() -> None:
    check_section("serve.md", "settings", settings_table())


def test_every_setting_that_has_a_remark_can_be_set() -> None:
    assert set(SETTINGS) >= REMARKS.keys()


def test_every_setting_that_kafka_lacks_has_a_remark() -> None:
    assert {name for name in SETTINGS if name.startswith("groupstorm.")} <= REMARKS.keys()


def test_the_configurations_of_topics_are_those_of_the_code() -> None:
    check_section("serve.md", "topic-configs", topic_configs_table())


def test_the_apis_are_those_of_the_code() -> None:
    check_section("serve.md", "apis", served_apis())


def test_the_options_are_those_of_the_command() -> None:
    options = {
        name for parameter in as_command("serve", serve).params for name in parameter.opts if name != "--help"
    }
    page = (DOCS / "serve.md").read_text("utf-8")
    table = page.partition("| option | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"(?<=`)--[a-z-]+", table)) == options - {
        "--install-completion",
        "--show-completion",
    }


def test_the_limits_are_those_of_the_code() -> None:
    check_section("serve.md", "limits", limits_table())


def test_every_setting_that_limits_clients_is_in_the_table_of_limits() -> None:
    """A new one is found by its name."""
    limiting = {name for name in SETTINGS if name.startswith("groupstorm.max.") or name.endswith(".max.size")}
    assert limiting <= {limit for limit, _, _ in LIMITS}
