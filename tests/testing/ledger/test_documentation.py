"""docs/ledger.md: its example fails as the page says, and it names every finding, call and placeholder."""

from __future__ import annotations

import inspect
import re

import pytest

from groupstorm.chaos.service import NAMES
from groupstorm.problems import InputError
from groupstorm.simulation import ScheduleFailed
from groupstorm.storms.scenario.files import parse
from groupstorm.storms.scenario.steps import CHAOS_STEPS, SERVICE_STEPS
from groupstorm.testing import Ledger
from groupstorm.testing.ledger import Kind
from groupstorm.testing.ledger.ledger import NOTICE_S
from tests.generated_pages import DOCS

PAGE = (DOCS / "ledger.md").read_text("utf-8")


def test_the_example_fails_as_the_page_says() -> None:
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with pytest.raises(ScheduleFailed) as failed:
        exec(compile(example, "docs/ledger.md", "exec"), {"__name__": "example"})  # our own page
    story = PAGE.partition("history of each kind of fault:\n\n```\n")[2].partition("```")[0]
    assert story in str(failed.value)


def test_every_finding_is_defined() -> None:
    table = PAGE.partition("| finding | when |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w ]+)` \|", table, re.MULTILINE) == list(map(str, Kind))


def test_every_call_is_named() -> None:
    calls = {name for name, call in inspect.getmembers(Ledger, inspect.isfunction) if name[0] != "_"}
    assert set(re.findall(r"`(?:with )?ledger\.(\w+)\(", PAGE)) == calls - {"at_wall_ms"}
    arguments = [name for name in inspect.signature(Ledger).parameters if name not in ("broker", "group")]
    (shown,) = re.findall(r"`Ledger\(broker, group, (.*?)\)`", PAGE)
    assert [one.partition("=")[0] for one in shown.split(", ")] == arguments
    assert f"notice_s={NOTICE_S:g}" in shown


def test_every_placeholder_is_named() -> None:
    rows = re.findall(r"^\| `\{(\w+)\}` \| `GROUPSTORM_(\w+)` \|", PAGE, re.MULTILINE)
    assert {name for name, _ in rows} == set(NAMES)
    assert all(name.upper() == variable for name, variable in rows)


def test_the_scenario_of_the_page_can_be_read() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    try:
        steps = parse(text, "yaml", "docs/ledger.md").resolve(None, 0, {}).steps
    except InputError as problem:
        pytest.fail(str(problem))
    assert {step.do for step in steps} <= SERVICE_STEPS
    assert [step for step in CHAOS_STEPS if f"`{step}` (" not in PAGE] == []
