"""Kafka's answers to a few hundred short random scripts (`./dev oracle coordinator --write-golden`)."""

from __future__ import annotations

import pytest

from tests.oracle import golden
from tests.oracle.comparison import changes_only, difference
from tests.oracle.coverage import Coverage
from tests.oracle.differential import our_answer
from tests.oracle.tables import ALL_TRANSITIONS, UNREACHABLE_TRANSITIONS
from tests.oracle.transcripts import transcript

_GOLDEN = list(golden.read())


@pytest.mark.parametrize("one", _GOLDEN, ids=lambda one: one.script["id"])
def test_answers_are_kafkas(one: golden.Golden) -> None:
    ours = changes_only(our_answer(one.script))
    found = difference(one.answer, ours)
    assert found is None, transcript(one.script, one.answer, ours)


@pytest.mark.slow
def test_the_golden_scripts_take_every_transition() -> None:
    coverage = Coverage()
    for one in _GOLDEN:
        our_answer(one.script, coverage.watch)
    assert set(ALL_TRANSITIONS) - set(coverage.transitions) == set(UNREACHABLE_TRANSITIONS)
