"""What Kafka Streams logs of its rebalances.

``where``: a line of `StreamsPartitionAssignor` (SPA), `StreamThread` (ST), `StreamTask` (T),
`ProcessorStateManager` (PSM) or `KafkaStreams` (KS) of Kafka 4.3.1 and 4.4.0.
The prefix names the thread, or the thread's consumer.
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template

_T = Template

SCHEDULED: Final = "follow-up-scheduled"
DUE: Final = "follow-up-due"
DIED: Final = "thread-died"
FENCED: Final = "thread-fenced"
RUNS: Final = "task-runs"
STOPS: Final = "task-stops"
FROM_NOTHING: Final = "task-from-nothing"
FROM_CHECKPOINT: Final = "task-from-checkpoint"
INSTANCE_ENDED: Final = "instance-ended"

TEMPLATES: Final = (
    _T(SCHEDULED, "Requested to schedule immediate rebalance {why}.", "4.3.1 SPA:1563 to 1569"),
    _T(SCHEDULED, "Requested to schedule next probing rebalance at {when} to try for {rest}", "4.3.1 SPA"),
    _T(DUE, "Triggering the followup rebalance scheduled for {when}.", "4.3.1 ST:963"),
    _T(DIED, "Encountered the following {what}exception during processing{said}", "4.3.1 ST"),
    _T(DIED, "Encountered the following unexpected {what} during processing{said}", "2.8 ST"),
    _T(FENCED, "Detected that the thread is being fenced. {rest}", "4.3.1 ST:1126"),
    _T(FENCED, "Detected task {task} that got migrated to another thread. {rest}", "2.0 ST"),
    _T(RUNS, "task [{task}] Restored and ready to run", "2.6 to 4.4.0 T"),
    _T(STOPS, "task [{task}] Suspended {rest}", "2.6 to 4.4.0 T"),
    *(
        _T(
            kind,
            f"{prefix}task [{{task}}] State store {{store}} {text} at changelog {{changelog}}",
            "4.4.0 PSM",
        )
        for prefix in ("stream-", "")
        for kind, text in (
            (FROM_NOTHING, "did not find checkpoint offset, hence would default to the starting offset"),
            (FROM_CHECKPOINT, "initialized from checkpoint with offset {at}"),
        )
    ),
    _T(INSTANCE_ENDED, "State transition from {before} to NOT_RUNNING", "4.3.1 KS"),
    # -- understood, and no row follows
    *(
        _T("noted", text, "4.3.1 SPA, ST")
        for text in (
            "State transition from {rest}",
            "No followup rebalance was requested, resetting the rebalance schedule.",
            "Requesting followup rebalance be scheduled {rest}",
            "Finished unstable assignment of tasks, a followup rebalance will be scheduled.",
            "Finished stable assignment of tasks, no followup rebalances required.",
            "Assigned {count} total tasks including {rest}",
            "Assignment of tasks to nodes: {rest}",
            "Assigning stateful tasks: {rest}",
            "{count} client nodes and {rest}",
            "Client {client} per-consumer assignment:{rest}",
            "Removing task {rest}",
            "task [{task}] Initialized",
            "task [{task}] Closed {rest}",
            "stream-task [{task}] Closing record collector {rest}",
            "Revoking active tasks {rest}",
            "partition revocation took {ms} ms.",
            "Processing new assignment {rest}",
            "Processed {count} total records, {rest}",
            "Kafka Streams {rest}",
            "Streams rebalance protocol enabled",
            "Started {count} stream threads",
            "Shutdown {count} stream threads complete",
            "Streams client stopped {rest}",
            "Skipping shutdown {rest}",
            "Adding removed stateful active task {rest}",
            "Active task(s) got corrupted. Triggering a rebalance.",
            "Handle new assignment with:{rest}",
            "All stream threads have died. {rest}",
            "Shutdown complete",
            "Shutting down{rest}",
            "Informed to shut down",
            "Starting{rest}",
            "State store {store} did not find checkpoint offset, {rest}",
            "State store {store} initialized from checkpoint {rest}",
            "Found no valid offset for {count} partitions, resetting.",
            "Failed to fetch end offsets for changelogs, {rest}",
            "Failed to retrieve all end offsets for changelogs, {rest}",
            "Downgrade metadata to version {rest}",
            "Downgrade latest supported metadata to version {rest}",
            "Received a future (version probing) subscription {rest}",
            "Sent a version {rest}",
            "Rebalance failed due to task assignor {rest}",
            "Caught an error in the task assignment. {rest}",
            "No partitions found for topic {rest}",
            "Partition {rest}",
            "The previous assignment contains a partition more than once. {rest}",
        )
    ),
)
