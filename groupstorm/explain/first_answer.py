"""The answer for a group without a pattern: it was quiet, somebody was refused, or there is too little."""

from __future__ import annotations

from typing import Final

from groupstorm.explain.findings import culprits
from groupstorm.explain.history import History
from groupstorm.wording import counted, listed, seconds

_NAMED_MAX: Final = 4
#: The logs that would say more, by whose lines are there.
_ADD_BROKER: Final = (
    "add the log of the group's coordinator (kafka.coordinator.group at INFO), and this client's log from "
    "its start on"
)
_ADD_CLIENTS: Final = "add the coordinator's log from before and after it, and the logs of the consumers"


def first_answer(history: History) -> str:
    """A sentence or more; "" if rebalances say enough. A group is only called quiet if its rows show it."""
    said = [one.sentence for one in history.refusals if not one.is_over or not history.rebalances]
    more = [f"And {len(said) - _NAMED_MAX:,} more like it."] if len(said) > _NAMED_MAX else []
    sentences = [*said[:_NAMED_MAX], *more]
    lost = [*history.of_kind("lost")]
    if lost and not history.rebalances:
        members = listed([*dict.fromkeys(one.member for one in lost)][:_NAMED_MAX])
        sentences.append(
            f"Partitions were lost {counted(len(lost), 'time')}, without onPartitionsRevoked: {members}."
        )
    if history.attempts and not sentences and not history.rebalances:
        member, times = max(history.attempts.items(), key=lambda pair: pair[1])
        sentences.append(f"{member} said {counted(times, 'time')} that it has to join.")
    given = history.rebalances_at_least
    if given and not history.rebalances:
        member = max(history.assignments, key=lambda name: history.assignments[name])
        sentences.append(
            f"{member} was given partitions {counted(given, 'time')}, each time by a rebalance of which no "
            "line says who began it, or why."
        )
    unsaid = sum(len(one.rebalances) for one in culprits(history.rebalances, ()) if not one.is_known)
    if unsaid and history.is_imported:
        which = "them" if unsaid == len(history.rebalances) else f"{unsaid:,} of them"
        sentences.append(f"No line says who began {which}, or why: {_ADD_BROKER}.")
    if history.rebalances or history.rebalances_are_least:
        return " ".join(sentences)
    if history.is_shown_quiet:
        return "The group was quiet."
    add = _ADD_BROKER if history.has_member_rows else _ADD_CLIENTS
    lasted = seconds(history.shown_us / 1_000_000)
    return " ".join(
        [*sentences, f"Too little to say more: {counted(history.lines, 'line')} over {lasted}; {add}."]
    )
