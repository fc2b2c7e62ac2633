"""What workers of Kafka Connect log about their group, beside what every Java client logs.

``where``: DistributedHerder (DH) and WorkerCoordinator (WC) of the named release.
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template

_T = Template
#: The worker has another configuration than the leader assigned by, and joins again.
CONFIG_BEHIND: Final = "config-behind"

TEMPLATES: Final = (
    _T(
        "work-assigned",
        "Joined group at generation {generation} with protocol version {version} and got assignment: {work} "
        "with rebalance delay: {ms}",
        "4.3.1 DH:2626",
    ),
    _T("work-assigned", "Joined group at generation {generation} and got assignment: {work}", "2.2 DH"),
    _T(
        "work-lost",
        "Broker coordinator was unreachable for {ms}ms. Revoking previous assignment {rest}",
        "4.3.1 WC:147",
    ),
    _T("poll-timeout", "worker poll timeout has expired. {rest}", "4.3.1 DH:2742"),
    _T(CONFIG_BEHIND, "Current config state offset {at} does not match group assignment {rest}", "4.3.1 DH"),
    _T(CONFIG_BEHIND, "Didn't reach end of config log quickly enough{rest}", "4.3.1 DH"),
    # -- understood, and no row follows
    *(
        _T("noted", text, "4.3.1 DH, WC")
        for text in (
            "Rebalance started",
            "Herder {rest}",
            "Session key updated",
            "Starting connectors and tasks using config offset {rest}",
            "Finished starting connectors and tasks",
            "Starting connector {rest}",
            "Starting task {rest}",
            "Connector {rest} config updated",
            "Connector {rest} config removed",
            "Tasks {rest} configs updated",
            "Handling connector-only config update {rest}",
            "Handling task config update {rest}",
            "Catching up to assignment's config offset.",
            "Current config state offset {rest}",
            "Finished reading to end of log {rest}",
            "Finished stopping tasks in preparation for rebalance",
            "Finished flushing status backing store in preparation for rebalance",
            "Wasn't able to resume work after last rebalance, {rest}",
            "Stopping connectors and tasks that are still assigned to this worker.",
            "Join group completed, but assignment failed {rest}",
            "Unable to claim write privileges {rest}",
            "Failed to write to config topic as leader; {rest}",
            "Request to leader to reconfigure connector tasks failed{rest}",
            "Assigned to partition(s): {rest}",
        )
    ),
)
