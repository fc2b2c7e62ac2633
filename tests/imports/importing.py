"""Helpers of the tests of imports: write logs, import them, read what came."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from groupstorm.figures.table import Figures
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.imports.output import Imported
from groupstorm.trace.reader import read_rows
from tests.figures.tracing import figures_by_group

LOGS = Path(__file__).parent / "logs"
BROKER: Final = "kafka.coordinator.group.GroupCoordinator"
CONSUMER: Final = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"


def import_texts(folder: Path, logs: Mapping[str, str], options: Options | None = None) -> Imported:
    """Import logs with these names and texts into ``folder``/out."""
    for name, text in logs.items():
        (folder / name).write_text(text, "utf-8")
    found = find_logs([str(folder / name) for name in logs])
    return import_logs(found, folder / "out", options or Options())


def rows(folder: Path, event: str = "") -> list[Mapping[str, Any]]:
    """The rows of the trace in ``folder``/out, or those of one event."""
    return [row for row in read_rows(folder / "out") if event in ("", row["event"])]


def figures(folder: Path) -> Mapping[str, Figures]:
    """The figures of every group."""
    return figures_by_group(read_rows(folder / "out"))


def states(folder: Path) -> list[tuple[str, str, str, int | None]]:
    """(previous state, state, cause, generation) of every row of a state."""
    return [
        (row["previous_state"], row["state"], row["cause"], row.get("generation"))
        for row in rows(folder, "group_state_changed")
    ]


def broker_line(time: str, message: str) -> str:
    """A line of a broker with log4j's default pattern."""
    return f"[2024-11-18 {time}] INFO [GroupCoordinator 1]: {message} ({BROKER})\n"


def java_line(time: str, message: str, client: str = "app-a", instance: str = "", group: str = "g") -> str:
    """A line of the classic consumer. ``time``: with its date, if it is another day."""
    who = f"instanceId={instance}, " if instance else ""
    at = time if " " in time else f"2024-11-18 {time}"
    return f"[{at}] INFO [Consumer {who}clientId={client}, groupId={group}] {message} ({CONSUMER})\n"


def client_line(second: float, message: str, client: str = "c-1") -> str:
    """A line of a client so many seconds after ten o'clock."""
    clock = f"10:{int(second) // 60:02}:{second % 60:06.3f}".replace(".", ",")
    return java_line(f"2026-03-04 {clock}", message, client)


def generation(number: int, member_id: str, protocol: str = "range") -> str:
    """A generation as the classic consumer prints it."""
    return f"Generation{{generationId={number}, memberId='{member_id}', protocol='{protocol}'}}"


#: The group's partition of the offsets topic in the lines of a broker.
OFFSETS = "__consumer_offsets-1"


def preparing(time: str, old: int, reason: str, group: str = "g") -> str:
    """A broker's line on a round that begins. ``old``: the generation before it."""
    begun = f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {old}"
    return broker_line(time, f"{begun} ({OFFSETS}) (reason: {reason})")


def joins(time: str, old: int, member_id: str, group: str = "g") -> str:
    """A round that begins because a new member comes."""
    return preparing(time, old, f"Adding new member {member_id} with group instance id None", group)


def stabilized(time: str, generation: int, members: int, group: str = "g") -> str:
    """A join phase that ends."""
    text = f"Stabilized group {group} generation {generation} ({OFFSETS}) with {members} members"
    return broker_line(time, text)


def received(
    time: str, generation: int, members: int | None = None, leader: str = "", group: str = "g"
) -> str:
    """A round that ends. Kafka 2.8 added how many ``members`` there are to the line, 3.4 the ``leader``."""
    text = f"{f'leader {leader}'.strip()} for group {group} for generation {generation}"
    count = f". The group has {members} members, 0 of which are static."
    return broker_line(time, f"Assignment received from {text}" + ("" if members is None else count))


def emptied(time: str, generation: int, group: str = "g") -> str:
    return broker_line(time, f"Group {group} with generation {generation} is now empty ({OFFSETS})")


def failed(time: str, member_id: str, group: str = "g") -> str:
    """A member whose session has expired."""
    return broker_line(time, f"Member {member_id} in group {group} has failed, removing it from the group")
