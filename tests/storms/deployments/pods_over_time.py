"""Who runs when in a storm's trace: pods that have started, that terminate, that are available."""

from __future__ import annotations

from dataclasses import dataclass

from tests.storms.storms_in_memory import Storm


@dataclass(frozen=True)
class Pods:
    """Numbers of pods after one row of the trace; ``running`` includes pods that terminate."""

    time_us: int
    running: int
    terminating: int


def pods_over_time(result: Storm, from_us: int) -> list[Pods]:
    """The numbers from ``from_us`` on, one entry for each row that changes them."""
    running, terminating = set[str](), set[str]()
    found = []
    for time_us, _, event in result.rows:
        kind = type(event).__name__
        if kind == "MemberStarted":
            running.add(event.member)
            terminating.discard(event.member)
        elif kind in ("MemberClosed", "MemberCrashed"):
            running.discard(event.member)
            terminating.discard(event.member)
        elif kind == "StepTaken" and event.detail == "SIGTERM":
            terminating.add(event.member)
        else:
            continue
        if time_us >= from_us:
            found.append(Pods(time_us, len(running), len(terminating)))
    return found


def starts_and_stops(result: Storm, from_us: int) -> list[tuple[int, str, str]]:
    """(milliseconds since ``from_us``, what, pod) of every first poll and every SIGTERM."""
    found = []
    for time_us, _, event in result.rows:
        kind = type(event).__name__
        what = "polls" if kind == "MemberStarted" else "SIGTERM"
        if time_us >= from_us and (
            kind == "MemberStarted" or (kind == "StepTaken" and event.detail == "SIGTERM")
        ):
            found.append(((time_us - from_us) // 1000, what, event.member))
    return found
