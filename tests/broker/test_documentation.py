"""docs/serve.md and the broker reference are made from the code, or compared with it."""

from __future__ import annotations

import re

from groupstorm.broker.settings import SETTINGS
from groupstorm.cli.commands import as_command
from groupstorm.cli.serve import serve
from tests.generated_pages import DOCS, check_section
from tools.documentation.broker import LIMITS, REMARKS, reference_page, settings_table


def test_the_settings_are_those_of_the_code() -> None:
    check_section("serve.md", "settings", settings_table(REMARKS))


def test_the_reference_has_every_setting_limit_and_api() -> None:
    page = reference_page()
    for row in (
        "| `group.initial.rebalance.delay.ms` | `3000` |  |",
        "| `max.connections` | of each broker | `2147483647` | further connections are closed at once",
        "| `segment.bytes` | `1073741824` |",
        "| ShareFetch | 78 | 1-2 |",
    ):
        assert row in page
    assert all(f"| `{name}` | " in page for name in SETTINGS)


def test_every_setting_that_has_a_remark_can_be_set() -> None:
    assert set(SETTINGS) >= REMARKS.keys()


def test_every_setting_that_kafka_lacks_has_a_remark() -> None:
    assert {name for name in SETTINGS if name.startswith("groupstorm.")} <= REMARKS.keys()


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


def test_every_setting_that_limits_clients_is_in_the_table_of_limits() -> None:
    """A new one is found by its name."""
    limiting = {name for name in SETTINGS if name.startswith("groupstorm.max.") or name.endswith(".max.size")}
    assert limiting <= {limit for limit, _, _ in LIMITS}
