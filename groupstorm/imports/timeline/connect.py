"""Workers of Kafka Connect: which connectors and tasks each one runs, by its own log."""

from __future__ import annotations

import json
from typing import Final

from groupstorm.imports.observation import Observation
from groupstorm.trace.events.imported import WorkAssigned

#: For so long the work of a worker that has gone may wait for it.
SCHEDULED_DELAY: Final = "scheduled.rebalance.max.delay.ms"
#: A setting of 32 bits.
_DELAY_MAX_MS: Final = (1 << 31) - 1
#: What the line has in the place of an error: the leader has another configuration than the worker.
_ERRORS: Final = {"0": None, "1": "CONFIG_MISMATCH"}

#: The sentence on what is missing from a trace of such a group.
NO_PARTITIONS: Final = (
    "a group of Kafka Connect has connectors and tasks, and no partitions: the workers' own logs say who "
    "runs which (work_assigned)"
)


def work_assigned(
    group: str, client: str, member_id: str, generation: int | None, line: Observation
) -> WorkAssigned:
    """The row of a line that has all connectors and tasks of a worker."""
    fields = line.fields
    error = _ERRORS.get(fields["error"], f"error {fields['error']}")
    revoked = [*fields["revokedConnectorIds"], *fields["revokedTaskIds"]]
    offset = fields["offset"]
    detail = {"revoked": revoked, "offset": int(offset) if offset else None}
    delay_ms = fields.get("ms")
    delay_us = None if delay_ms is None or delay_ms > _DELAY_MAX_MS else delay_ms * 1000
    return WorkAssigned(
        group,
        client,
        member_id,
        fields.get("generation", generation),
        fields["leader"] or None,
        error,
        (*fields["connectorIds"], *fields["taskIds"]),
        delay_us,
        json.dumps(detail),
    )


def work_lost(group: str, client: str, member_id: str, generation: int | None) -> WorkAssigned:
    """The row of a worker that stops all its work, because its coordinator is out of reach."""
    error = "COORDINATOR_NOT_AVAILABLE"
    return WorkAssigned(group, client, member_id, generation, None, error, (), None, "{}")
