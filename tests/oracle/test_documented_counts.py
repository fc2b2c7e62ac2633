"""The counts of `docs/oracle.md` are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.oracle import coordinator, golden
from tests.oracle.assignors import running
from tests.oracle.group_member import situations as of_consumer_groups
from tests.oracle.member.known_differences import KNOWN
from tests.oracle.member.situations import SITUATIONS
from tests.oracle.scripts.workloads import WORKLOADS
from tests.oracle.test_live import SCRIPTS

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "oracle.md").read_text("utf-8").split())


@pytest.mark.parametrize(
    "sentence",
    [
        f"how many scripts ({coordinator.COUNT:,})",
        f"choose {golden.SCRIPTS} short scripts",
        f"holds {golden.SCRIPTS} short scripts",
        f"runs {SCRIPTS} scripts against Kafka itself",
        f"Each of {len(WORKLOADS)} workloads",
        f"(`--count` is {running.COUNT} for each assignor)",
        f"{len({one.name for one in SITUATIONS})} kinds of situation in {len(SITUATIONS)} variants",
        f"A table holds {len(of_consumer_groups.SITUATIONS)} situations",
    ],
)
def test_the_page_has(sentence: str) -> None:
    assert sentence in PAGE


def test_the_page_says_how_many_differences_of_the_member_are_known() -> None:
    words = {1: "One difference is", 2: "Two differences are", 3: "Three differences are"}
    assert f"{words[len({one.situation for one in KNOWN})]} left" in PAGE


def test_as_many_golden_scripts_are_kept() -> None:
    assert len(list(golden.read())) == golden.SCRIPTS


def test_no_other_number_of_scripts_is_named() -> None:
    named = set(re.findall(r"([\d,]+) (?:short )?scripts", PAGE))
    assert named == {str(golden.SCRIPTS), str(SCRIPTS), "1,000"}, "1,000: seconds per 1,000 scripts"
