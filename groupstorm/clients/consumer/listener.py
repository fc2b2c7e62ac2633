"""The application's rebalance listener (ConsumerRebalanceListener)."""

from __future__ import annotations

from collections.abc import Awaitable, Collection

from groupstorm.assignors.userdata import TopicPartition


class RebalanceListener:
    """Override the methods that you need. They may be plain or ``async``; the rebalance waits for them.

    Each gets only the partitions that come or go. A call for revoked or lost partitions begins when the
    application asks for its next record, so that it has processed all of theirs; the consumer gives out no
    more records of these partitions. Records of the other partitions go on during the call.
    """

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are new; none in a generation that changes nothing for this consumer.

        Their records begin when this method has returned; a `seek` in it sets the first offset.
        """

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These will go. The consumer still owns them: this method may commit their offsets."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are gone and may have other owners: a commit fails. By default as revoked, like Kafka."""
        return self.on_partitions_revoked(partitions)
