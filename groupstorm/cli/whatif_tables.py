"""A run beside its replays: the tables that `groupstorm whatif` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupstorm.report.grid import Grid, Row
from groupstorm.whatif.agreement import Agreement, Line, RoundLine
from groupstorm.wording import number

#: So many rounds are shown without --all: those whose replays differ most.
ROUNDS_SHOWN = 8


def agreement_grid(found: Agreement) -> Grid:
    """What is compared, with its tolerance."""
    rows = [
        Row(
            line.what,
            [
                _shown(line, line.observed),
                _shown(line, line.replayed.median),
                f"{_shown(line, line.replayed.least)} to {_shown(line, line.replayed.most)}",
                line.tolerance,
            ],
            mark="" if line.agrees else " !",
        )
        for line in found.lines
    ]
    headings = ("", "run", "replay", "range", "tolerance")
    apart = "! further apart than the tolerance, and outside the range of the seeds"
    notes = () if found.agrees else (apart,)
    return Grid(headings, rows, "The run, and its replays (median and range of the seeds)", notes)


def agreement_content(found: Agreement, scenario: Path) -> dict[str, Any]:
    """The same as the content of --json. Times in seconds."""
    return {
        "scenario": str(scenario),
        "agrees": found.agrees,
        "compared": [
            {
                "what": line.what,
                "run": line.observed,
                "replay_least_median_most": list(line.replayed),
                "tolerance": line.tolerance,
                "agrees": line.agrees,
            }
            for line in found.lines
        ],
        "not_compared": list(found.not_compared),
        "rounds": [
            {
                "began_s": line.seen.began_us / 1e6,
                "took_s": line.seen.duration_us / 1e6,
                "cause": line.seen.cause,
                "replay_began_s": None if line.began_us is None else line.began_us / 1e6,
                "replay_took_s": None if line.duration_us is None else line.duration_us / 1e6,
                "replay_causes": list(line.causes),
            }
            for line in found.rounds
        ],
    }


def rounds_grid(found: Agreement, everything: bool) -> Grid:
    """The rounds of the run beside their partners in the replays."""
    shown = list(found.rounds)
    notes = []
    if not everything and len(shown) > ROUNDS_SHOWN:
        kept = sorted(shown, key=_difference, reverse=True)[:ROUNDS_SHOWN]
        shown = [line for line in shown if line in kept]
        notes = [f"{ROUNDS_SHOWN} of {len(found.rounds)} rounds, those that differ most; --all has all"]
    rows = [
        Row(
            f"{line.seen.began_us / 1e6:,.1f} s",
            [
                line.seen.cause,
                "-" if line.began_us is None else f"{(line.began_us - line.seen.began_us) / 1e6:+.1f} s",
                f"{line.seen.duration_us / 1e6:,.1f} s",
                "-" if line.duration_us is None else f"{line.duration_us / 1e6:,.1f} s",
                _cause(line),
            ],
        )
        for line in shown
    ]
    headings = ("began", "because", "replay began", "took", "replay took", "replay's cause")
    return Grid(headings, rows, "Rounds", notes, frozenset({0, 4}))


def _cause(line: RoundLine) -> str:
    if not line.causes:
        return "no such round"
    return "the same" if line.causes == (line.seen.cause,) else " or ".join(line.causes)


def _difference(line: RoundLine) -> float:
    """How far a replay is from a round, in microseconds."""
    if line.began_us is None or line.duration_us is None:
        return float("inf")
    return abs(line.began_us - line.seen.began_us) + abs(line.duration_us - line.seen.duration_us)


def _shown(line: Line, value: float) -> str:
    if line.unit == "s":
        return f"{value:,.1f} s"
    return f"{value:.0f} %" if line.unit == "%" else number(value)
