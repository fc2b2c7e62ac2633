"""One member's reconciliation: its record, and the time that it has to give partitions up.

Kafka: GroupMetadataManager.maybeReconcile.
"""

from __future__ import annotations

from groupstorm.coordinator.changes import watch_revocation
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember, Owned
from groupstorm.coordinator.consumer.reconciliation import Reconciliation, reconcile
from groupstorm.coordinator.consumer.subscriptions import topics_of
from groupstorm.coordinator.consumer.targets import MemberTarget
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard


def reconcile_member(
    shard: Shard,
    group: ConsumerGroup,
    member: ConsumerMember,
    target: MemberTarget,
    has_subscription_changed: bool,
    owned: Owned | None,
    records: list[Record],
) -> ConsumerMember:
    """Bring the member towards its target, and write it if that changes the member.

    While the member has partitions to give up, its rebalance timeout runs. It starts again at each change.
    """
    if not has_subscription_changed and member.is_reconciled_to(target.epoch):
        return member
    topics = frozenset(topics_of(group, member))
    reconciled = reconcile(
        member,
        Reconciliation(
            target.partitions,
            target.epoch,
            group.partition_epochs,
            lambda topic: shard.topics.name(topic) in topics,
            not topics,
            has_subscription_changed,
            owned,
        ),
    )
    if reconciled == member:
        return reconciled
    records.append(group.current_record(reconciled))
    if reconciled.classic is None:
        watch_revocation(shard, group.name, reconciled)
    return reconciled
