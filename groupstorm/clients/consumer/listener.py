"""What a rebalance tells the application (ConsumerRebalanceListener), and when."""

from __future__ import annotations

from collections.abc import Awaitable, Collection

from groupstorm.assignors.userdata import TopicPartition


class RebalanceListener:
    """Override what is of interest; methods may be plain or ``async``, and the rebalance waits for them.

    Each is told only the partitions that come or go. Before partitions are revoked or lost the
    application has asked for its next record, so that none of theirs is in its hands; no record of these
    partitions is given out any more. Records of the others go on, also while a method is working.
    """

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These have come; none in a generation that has changed nothing for this consumer.

        Their records begin when this has returned; a `seek` in here says where.
        """

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These will go; still this consumer's, so that what is processed can be committed in here."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are gone and may have other owners: a commit would fail. As in Kafka: as if revoked."""
        return self.on_partitions_revoked(partitions)
