"""All patterns, the specific ones first: a rebalance that several explain belongs to the first of them."""

from __future__ import annotations

from typing import Final

from groupstorm.explain.findings import Kind, Pattern
from groupstorm.explain.patterns import (
    connect,
    deployments,
    group,
    membership,
    polls,
    refused,
    sessions,
    waiting,
)

PATTERNS: Final = (
    Pattern(
        "stopped",
        "A group that was stopped",
        deployments.stopped,
        "Nothing to turn: leave the end of the trace out with --to, if its cost is not wanted.",
        (),
        Kind.STOP,
    ),
    Pattern(
        "outage",
        "An outage: the last member is gone, and nobody came back",
        sessions.outage,
        "Start the consumers. Their own logs, and what restarts them (the exit code, OOMKilled, the restarts "
        "of the pod), tell why they ended; an alert on a group without members tells it earlier.",
        (),
        Kind.DEFECT,
    ),
    Pattern(
        "mixed-assignors",
        "Members without a common assignor",
        membership.mixed_assignors,
        "Roll twice: first with both assignors in partition.assignment.strategy, then without the old one.",
        ("eager-to-cooperative",),
        Kind.DEFECT,
    ),
    Pattern(
        "migration-refused",
        "A member of the new protocol in a group that may not be upgraded",
        membership.migration_refused,
        "Set group.consumer.migration.policy to upgrade or bidirectional, and leave assignors with user "
        "data first.",
        ("migrate-to-consumer-protocol",),
        Kind.DEFECT,
    ),
    Pattern(
        "static-fenced",
        "Two processes with one group.instance.id",
        membership.fenced_instances,
        "Give every process a group.instance.id of its own: the pod's name in a StatefulSet.",
        ("static-trap",),
        Kind.DEFECT,
    ),
    Pattern(
        "static-session-too-short",
        "Static members whose restart takes longer than their session",
        sessions.static_session_too_short,
        "Raise session.timeout.ms above the time that a restart takes, or make restarts faster.",
        ("static-sizing",),
        Kind.DEFECT,
    ),
    Pattern(
        "static-orphan",
        "Static members that are gone for good",
        sessions.static_orphan,
        "Keep ids over restarts (StatefulSet), remove scaled-in members with "
        "Admin.removeMembersFromConsumerGroup, or lower session.timeout.ms.",
        ("static-trap", "static-sizing"),
        Kind.FAILURE,
    ),
    Pattern(
        "poison-record",
        "A record that nobody gets past",
        polls.poison_record,
        "Send the record to a dead-letter topic after one retry; raising max.poll.interval.ms only makes "
        "the wait longer.",
        ("poison-livelock",),
        Kind.DEFECT,
    ),
    Pattern(
        "max-poll-interval",
        "max.poll.interval.ms exceeded",
        polls.max_poll_interval,
        "Raise max.poll.interval.ms above the slowest batch, or lower max.poll.records, or process in "
        "another thread.",
        ("poison-livelock", "slow-member-hostage"),
        Kind.FAILURE,
    ),
    Pattern(
        "slow-worker",
        "A worker of Kafka Connect that exceeded rebalance.timeout.ms",
        connect.slow_worker,
        "Raise rebalance.timeout.ms above the time for which the herder is busy, or let a worker run less: "
        "for tasks that it stops it waits for task.shutdown.graceful.timeout.ms at most.",
        (),
        Kind.FAILURE,
    ),
    Pattern(
        "config-behind",
        "Workers of Kafka Connect with another configuration than the leader's",
        connect.config_behind,
        "All workers of one group.id need the same config.storage.topic, with one partition and "
        "cleanup.policy=compact, and have to read it to its end: in worker.sync.timeout.ms at most, else "
        "they try again after worker.unsync.backoff.ms.",
        (),
        Kind.DEFECT,
    ),
    Pattern(
        "failing-members",
        "Members that end with an error",
        membership.failing_members,
        "Read the error of the first one; an IllegalStateException of a sticky assignor is a defect that "
        "--set kafka_defects=true shows.",
        ("kafka-defects",),
        Kind.DEFECT,
    ),
    Pattern(
        "coordinator-moved",
        "The coordinator went away or moved",
        group.coordinator_moved,
        "Look at the brokers' log; a session.timeout.ms above the failover's time lets members ride it out.",
        ("coordinator-failover",),
        Kind.FAILURE,
    ),
    Pattern(
        "append-failed",
        "The coordinator cannot write to __consumer_offsets",
        group.append_failed,
        "Bring the replicas of the partition back, or move it to brokers that run: min.insync.replicas of "
        "__consumer_offsets has to be in sync. Until then its groups get no assignment and no commit.",
        (),
        Kind.FAILURE,
    ),
    Pattern(
        "never-rejoined",
        "A member that is told to join again, and does not",
        refused.never_rejoined,
        "Find out what the thread that calls poll() waits for (a thread dump tells): heartbeats go on "
        "without it, and only poll() joins again. max.poll.interval.ms bounds how long the group waits.",
        (),
        Kind.FAILURE,
    ),
    Pattern(
        "join-refused",
        "A member that cannot join",
        refused.join_refused,
        "Look up the error that it is answered, in the coordinator's log too: no setting of the member ends "
        "it, but for GROUP_MAX_SIZE_REACHED (group.max.size), INVALID_SESSION_TIMEOUT and authorization.",
        (),
        Kind.DEFECT,
    ),
    Pattern(
        "state-lost",
        "State that has to be restored from nothing",
        group.state_lost,
        "Raise num.standby.replicas, and place standbys in other racks (rack.aware.assignment.tags).",
        ("standby-loss", "rack-bill"),
        Kind.FAILURE,
    ),
    Pattern(
        "moved-cold",
        "Tasks that move to instances without their state",
        group.moved_cold,
        "Let state be there before the task is: num.standby.replicas, or the warm-ups of classic groups "
        "(acceptable.recovery.lag, max.warmup.replicas). Streams groups of Kafka 4.4.0 place no warm-ups.",
        ("stateful-warmup",),
        Kind.FAILURE,
    ),
    Pattern(
        "follow-up-rebalances",
        "Kafka Streams' follow-up rebalances",
        group.follow_ups,
        "Each warm-up costs one: see acceptable.recovery.lag, max.warmup.replicas and "
        "probing.rebalance.interval.ms.",
        ("stateful-warmup",),
        Kind.CHANGE,
    ),
    Pattern(
        "slow-assignor",
        "A leader that takes long to assign",
        waiting.slow_assignor,
        "Use a faster assignor, or find out why the leader's process stood still.",
        ("custom-assignor-lab",),
        Kind.FAILURE,
    ),
    Pattern(
        "held-join-phase",
        "A member that holds up the join phase",
        waiting.held_join_phase,
        "Lower max.poll.interval.ms (it is the rebalance timeout) or max.poll.records, or use "
        "group.protocol=consumer, in which nobody waits for the slow one.",
        ("slow-member-hostage",),
        Kind.FAILURE,
    ),
    Pattern(
        "slow-revocation",
        "A member that takes long to give up partitions",
        waiting.slow_revocation,
        "Poll more often (max.poll.records), or lower max.poll.interval.ms, after which it is removed.",
        ("new-protocol",),
        Kind.FAILURE,
    ),
    Pattern(
        "slow-callback",
        "Rebalance callbacks that take long",
        waiting.slow_callback,
        "Do less in onPartitionsRevoked: commit, and do not finish the work at hand.",
        ("duplicates-on-revoke",),
        Kind.FAILURE,
    ),
    Pattern(
        "livelock",
        "Rounds without progress",
        group.livelock,
        "Find the record or the member that every round begins with; more members do not help.",
        ("poison-livelock",),
        Kind.FAILURE,
    ),
    Pattern(
        "autoscaler-flapping",
        "An autoscaler that flaps",
        deployments.autoscaler,
        "Lengthen the scale-down stabilization, and leave a margin between the thresholds.",
        ("autoscaler-flap",),
        Kind.FAILURE,
    ),
    Pattern(
        "session-expired",
        "Sessions that expired",
        sessions.session_expired,
        "Find out why the process died or stood still (GC, CPU limits, network); session.timeout.ms bounds "
        "how long its partitions wait.",
        ("deploy-and-crash", "stream-join"),
        Kind.FAILURE,
    ),
    Pattern(
        "out-of-group",
        "Members that found themselves out of the group",
        sessions.out_of_group,
        "Look in the coordinator's log: a session that expired means that the process died, stood still or "
        "lost its connection; a round that a member joined too late, that it worked on records for longer "
        "than its rebalance timeout (max.poll.interval.ms; in sarama Consumer.Group.Rebalance.Timeout).",
        ("deploy-and-crash", "slow-member-hostage"),
        Kind.FAILURE,
    ),
    Pattern(
        "aligned-restart",
        "Everybody restarts at once",
        deployments.aligned_restart,
        "Restart one after the other (maxUnavailable 1), or spread configuration pushes and certificates.",
        ("aligned-restarts",),
        Kind.CHANGE,
    ),
    Pattern(
        "migration",
        "A live group that changes its protocol",
        deployments.migration,
        "Nothing to turn: it costs what a deploy costs, and one rebalance more each way.",
        ("migrate-to-consumer-protocol",),
        Kind.CHANGE,
    ),
    Pattern(
        "deploy-wave",
        "A deploy wave",
        deployments.deploy_wave,
        "Use cooperative-sticky; use static members if a process is back within session.timeout.ms.",
        ("rolling-deploy", "deploy-and-crash"),
        Kind.CHANGE,
    ),
    Pattern(
        "static-restart",
        "Static members that came back in time",
        deployments.static_restart,
        "Nothing to turn: partitions wait for as long as a restart takes, and for nothing else.",
        ("rolling-deploy",),
        Kind.CHANGE,
    ),
    Pattern(
        "gone-unsaid",
        "Members that went, and no line says how",
        membership.gone_unsaid,
        "Look at what these processes did then: a deployment, a restart (kubectl describe pod), their last "
        "lines.",
        ("rolling-deploy", "deploy-and-crash"),
        Kind.CHANGE,
    ),
    Pattern(
        "topics-changed",
        "Topics that changed",
        group.metadata_changed,
        "metadata.max.age.ms bounds how long new partitions wait for an owner.",
        ("topic-growth",),
        Kind.CHANGE,
    ),
    Pattern(
        "waiting-work",
        "Connectors and tasks without a worker",
        connect.waiting_work,
        "scheduled.rebalance.max.delay.ms (five minutes by default) is how long work waits for its worker: "
        "set it a little above the time of a restart, as a worker that is gone for good costs all of it.",
        (),
        Kind.CHANGE,
    ),
    Pattern(
        "leader-rejoined",
        "A leader that joins again",
        group.leader_rejoined,
        "Look for topics that are created, deleted or grow, and for a pattern that matches too many.",
        ("topic-growth",),
        Kind.CHANGE,
    ),
    Pattern(
        "formed-in-rounds",
        "A group that forms in several rounds",
        group.formation,
        "With a group.initial.rebalance.delay.ms above the time in which its members arrive it forms in one "
        "round; nobody consumes until then.",
        ("cold-start", "late-joiner-race"),
        Kind.CHANGE,
    ),
    Pattern(
        "waits-for-heartbeat",
        "Handovers that wait for the next heartbeat or poll",
        waiting.next_heartbeat,
        "Lower group.consumer.heartbeat.interval.ms, and poll more often.",
        ("new-protocol",),
        Kind.CHANGE,
    ),
    Pattern(
        "group-start",
        "A group that begins",
        group.start,
        "group.initial.rebalance.delay.ms is how long the coordinator waits for more members. --from, or "
        "figures_from in the scenario, leaves the start out.",
        ("cold-start",),
        Kind.CHANGE,
    ),
    Pattern(
        "zombie",
        "A zombie that works on",
        membership.zombies,
        "Stop work in onPartitionsLost, and commit before the session or the poll interval runs out.",
        ("custom-assignor-lab", "poison-livelock"),
        Kind.FAILURE,
    ),
    Pattern(
        "commit-in-rebalance",
        "Commits while the group rebalances",
        refused.commit_in_rebalance,
        "Catch RebalanceInProgressException, poll() and go on; commit in onPartitionsRevoked.",
        (),
        Kind.CHANGE,
    ),
    Pattern(
        "no-committed-offset",
        "Partitions that begin where auto.offset.reset says",
        refused.no_offset,
        "If the group is not new: look for commits that fail or never come, another group.id, and "
        "offsets.retention.minutes (a week by default, from when the group is empty). With latest, records "
        "of the meantime are skipped; with earliest, all are read again.",
        (),
        Kind.CHANGE,
    ),
    Pattern(
        "uncommitted",
        "Partitions given up without a commit",
        group.uncommitted,
        "Commit in onPartitionsRevoked (enable.auto.commit does), so that the next owner begins where the "
        "old one stopped.",
        ("duplicates-on-revoke",),
        Kind.DEFECT,
    ),
    Pattern(
        "needless-moves",
        "Partitions that move although balance does not need it",
        group.needless_moves,
        "Use an assignor that keeps what it can: cooperative-sticky, or sticky.",
        ("assignor-shootout",),
        Kind.CHANGE,
    ),
    Pattern(
        "subscriptions-differ",
        "Subscriptions that differ",
        membership.subscriptions_differ,
        "Subscribe all members of a group to the same topics, or use one group for each set of topics.",
        (),
        Kind.CHANGE,
    ),
)
