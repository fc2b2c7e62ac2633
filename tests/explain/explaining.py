"""Helpers of the tests of explain: small storms, traces of a few rows, the names of what is found."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from groupstorm.explain.explanation import Explanation, explain
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import read_rows
from tests.imports.importing import LOGS, import_texts

SECOND_US = 1_000_000


def storm(folder: Path, preset: str, variant: str, settings: Mapping[str, Any]) -> Path:
    """A run of a preset's variant in ``folder``."""
    run(load(preset).resolve(variant, 0, settings), folder)
    return folder


def scenario_storm(folder: Path, text: str) -> Path:
    """A run of a scenario of our own, which has no variants."""
    file = folder / "scenario.yaml"
    file.write_text(text, "utf-8")
    scenario = load(str(file))
    run(scenario.resolve(next(iter(scenario.variants)), 0, {}), folder / "run")
    return folder / "run"


def explained(trace: Path, window: Window = WHOLE) -> Explanation:
    """The explanation of a trace with one group."""
    (one,) = explain(trace, window=window)
    return one


def described_group(state: str, **members: str) -> str:
    """Return what kafka-consumer-groups --describe prints of a group; ``members``: the partitions of each."""
    if not members:
        return "Consumer group 'g' has no active members."
    states = "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS"
    head = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT"
    shares = {name: f"t({','.join(has)})" if has else "-" for name, has in members.items()}
    lines = [f"g {name}-x /127.0.0.1 {name} {len(members[name])} {share}" for name, share in shares.items()]
    return "\n".join([states, f"g h:1 (1) range {state} {len(members)}", "", head, *lines])


def described_all_its_life(folder: Path) -> Path:
    """a and b come at once, b goes while the group is described, then a."""
    both = described_group("Stable", a="01", b="23")
    alone = described_group("PreparingRebalance", a=""), described_group("Stable", a="0123")
    return imported_lists(folder, described_group("Empty"), both, both, *alone, described_group("Empty"))


def imported_lists(folder: Path, *lists: str) -> Path:
    """Import descriptions that are ten seconds apart."""
    texts = [f"2026-11-23T03:{41 + at // 6}:{at % 6}0+00:00\n{one}\n" for at, one in enumerate(lists)]
    import_texts(folder, {"d.txt": "".join(texts)})
    return folder / "out"


class Trace:
    """Some logs of one recording, imported and explained."""

    def __init__(self, recording: str, folder: Path, *logs: str) -> None:
        self.out = folder / "out"
        found = find_logs([str(LOGS / recording / f"{log}.log.gz") for log in logs])
        self.done = import_logs(found, self.out, Options())
        self.rows = [*read_rows(self.out)]
        self.explained = explained(self.out)

    def of(self, event: str) -> Iterator[Mapping[str, Any]]:
        return (row for row in self.rows if row["event"] == event)

    def ms(self, row: Mapping[str, Any]) -> int:
        return int(self.done.began_us + row["time_us"]) // 1000

    def us_of(self, action: Mapping[str, Any]) -> int:
        return int(action["time_ms"]) * 1000 - self.done.began_us


def recorded_of(recording: str) -> Mapping[str, Any]:
    """The facts that the harness saw while it recorded."""
    seen: Mapping[str, Any] = json.loads(
        gzip.decompress((LOGS / recording / "recorded.json.gz").read_bytes())
    )
    return seen


def names(one: Explanation) -> list[str]:
    return [finding.pattern.name for finding in one.findings]


def first(one: Explanation) -> str:
    """The pattern that is named first; "" if none is."""
    return next(iter(names(one)), "")


def trace_of(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A trace of hand-written rows. ``s``: seconds; source and group are filled in."""
    file = folder / "trace.jsonl"
    lines = []
    for seq, row in enumerate(rows):
        known = {"seq": seq, "time_us": round(row["s"] * SECOND_US), "source": "coordinator", "group": "g"}
        lines.append(json.dumps(known | {name: value for name, value in row.items() if name != "s"}))
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return file


def state(s: float, before: str, after: str, generation: int, cause: str, **more: Any) -> dict[str, Any]:
    """A `group_state_changed` row."""
    known = {"s": s, "event": "group_state_changed", "previous_state": before, "state": after}
    return known | {"generation": generation, "cause": cause, "count": 2} | more


def round_of(
    s: float, generation: int, cause: str, member_id: str, joining_s: float = 1
) -> list[dict[str, Any]]:
    """The three rows of a round: begun at ``s``, joined after ``joining_s``, assigned 10 ms later."""
    return [
        state(s, "Stable", "PreparingRebalance", generation - 1, cause, member_id=member_id),
        state(s + joining_s, "PreparingRebalance", "CompletingRebalance", generation, "all-joined"),
        state(s + joining_s + 0.01, "CompletingRebalance", "Stable", generation, "assigned"),
    ]


def added(s: float, member: str, member_id: str, instance: str | None = None) -> dict[str, Any]:
    cause = "static-member" if instance else "new-member"
    row = {"s": s, "event": "member_added", "member": member, "member_id": member_id, "generation": 1}
    return row | {"cause": cause} | ({"instance": instance} if instance else {})


def removed(s: float, member: str, member_id: str, cause: str, instance: str | None = None) -> dict[str, Any]:
    row = {"s": s, "event": "member_removed", "member": member, "member_id": member_id, "generation": 1}
    return row | {"cause": cause} | ({"instance": instance} if instance else {})


#: A group of two members that has formed, in one round.
FORMED: Final[Sequence[dict[str, Any]]] = (
    state(0, "Empty", "PreparingRebalance", 0, "new-member", member_id="a-1"),
    added(0, "a", "a-1"),
    added(0.1, "b", "b-1"),
    state(3, "PreparingRebalance", "CompletingRebalance", 1, "initial-delay"),
    state(3.1, "CompletingRebalance", "Stable", 1, "assigned"),
)
#: A last row that changes nothing: the trace goes on until then.
END_OF_FORMED: Final = {
    "s": 3_600,
    "event": "member_updated",
    "member": "a",
    "member_id": "a-1",
    "generation": 9,
}


def of_formed(folder: Path, *rows: Mapping[str, Any]) -> Explanation:
    """The explanation of a group of two that has formed, and of these rows behind it."""
    return explained(trace_of(folder, [*FORMED, *rows, END_OF_FORMED]))
