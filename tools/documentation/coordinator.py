"""The diagram of docs/coordinator.md that is made from the code."""

from __future__ import annotations

from groupstorm.coordinator.classic.states import TRANSITIONS
from groupstorm.trace.events.group_states import GroupState


def state_diagram() -> str:
    """The transitions of classic groups as a Mermaid state diagram."""
    causes: dict[tuple[GroupState, GroupState], list[str]] = {}
    for before, row in TRANSITIONS.items():
        for cause, after in row.items():
            causes.setdefault((before, after), []).append(cause)
    arrows = [f"    {before} --> {after}: {'<br/>'.join(names)}" for (before, after), names in causes.items()]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {GroupState.EMPTY}", *arrows]) + "\n"
