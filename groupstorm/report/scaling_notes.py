"""What an autoscaler did to a group in one run, in a person's words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from groupstorm.figures import Figures
from groupstorm.storms.deployments.autoscaler import SCALE_DOWN, SCALE_UP, SCALE_UP_GAIN
from groupstorm.storms.runs.run import Run
from groupstorm.storms.scenario.deployment_settings import NO_AUTOSCALER
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.reader import read_rows
from groupstorm.wording import counted, seconds

_CHANGE = re.compile(r"from (\d+) to (\d+) processes")
_GAIN = re.compile(r"from (\d+) to (\d+) processes: ([+-][\d,]+) records in (\d+) s")


def scaling_note(run: Run) -> str | None:
    """The sentences on the autoscaler of a run; None if there was none."""
    steps = [step for step in run.scenario.steps if step.do == "autoscale"]
    if not steps or run.scenario.settings.choice("autoscaler") == NO_AUTOSCALER:
        return None
    begin_us = steps[0].at_ms * 1000
    return _note(read_rows(run.trace), run.figures, begin_us, begin_us + steps[0].for_ms * 1000)


def _note(rows: Iterable[Any], figures: Figures, begin_us: int, end_us: int) -> str:
    ups = downs = rebalances = most = 0
    gains: list[tuple[int, str]] = []
    for row in rows:
        if not begin_us <= row["time_us"] <= end_us:
            continue
        if row["event"] == "group_state_changed":
            rebalances += row["state"] == GroupState.PREPARING_REBALANCE
        elif row["event"] == "step_taken":
            change = _CHANGE.match(row["detail"])
            ups += row["cause"] == SCALE_UP and change is not None
            downs += row["cause"] == SCALE_DOWN and change is not None
            if change is not None:
                most = max(most, int(change[2]))
            if row["cause"] == SCALE_UP_GAIN and (gain := _GAIN.match(row["detail"])) is not None:
                gains.append((int(gain[3].replace(",", "")), row["detail"]))
    duration = seconds((end_us - begin_us) / 1e6)
    an_hour = rebalances * 3_600_000_000 / (end_us - begin_us)
    text = (
        f"{counted(ups, 'scale-up')} and {counted(downs, 'scale-down')} in {duration}, "
        f"{most} processes at most, {an_hour:,.0f} rebalances an hour"
    )
    if figures.idle_members_max:
        text += f", up to {figures.idle_members_max:,} processes without a partition"
    lost = [gain for gain in gains if gain[0] < 0]
    if not gains:
        return f"{text}."
    if not lost:
        return f"{text}. Every scale-up gained records over the rate before it."
    return (
        f"{text}. {len(lost)} of {len(gains)} scale-ups lost records against the rate before: the worst went "
        f"{min(lost)[1]}."
    )
