"""Every row of the transition table is taken by the requests and timers that it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.coordinator.classic.states import TRANSITIONS, next_state
from groupstorm.coordinator.errors import IllegalTransition
from groupstorm.trace.events.group_states import Cause, GroupState
from tools.documentation.reference import state_diagram

_ROWS = [(before, cause, after) for before, row in TRANSITIONS.items() for cause, after in row.items()]


@pytest.mark.parametrize("state", GroupState)
@pytest.mark.parametrize("cause", Cause)
def test_what_is_not_in_the_table_raises_a_sentence(state: GroupState, cause: Cause) -> None:
    if cause in TRANSITIONS[state]:
        assert next_state("g", state, cause) is TRANSITIONS[state][cause]
        return
    with pytest.raises(IllegalTransition, match=f"group 'g' cannot leave {state} because of '{cause}'"):
        next_state("g", state, cause)


def test_kafkas_pairs_of_states_and_no_others() -> None:
    """ClassicGroupState.validPreviousStates, without Dead and without groups that fail."""
    assert {(before, after) for before, cause, after in _ROWS if cause is not Cause.FAILED} == {
        (GroupState.EMPTY, GroupState.PREPARING_REBALANCE),
        (GroupState.PREPARING_REBALANCE, GroupState.EMPTY),
        (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE),
        (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE),
        (GroupState.COMPLETING_REBALANCE, GroupState.STABLE),
        (GroupState.STABLE, GroupState.PREPARING_REBALANCE),
    }


def test_the_documents_diagram_is_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "coordinator.md").read_text(encoding="utf-8")
    assert f"```mermaid\n{state_diagram()}```" in text
