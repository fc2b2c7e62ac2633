package org.apache.kafka.coordinator.group;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.DeleteGroupsResponseData.DeletableGroupResultCollection;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.util.timer.Timer;

/** The places where Kafka 4.4.0 spells differently from other releases what the oracle calls. */
public final class Release {

    private static final LogContext LOG_CONTEXT = new LogContext();

    private Release() {
    }

    static CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord> runtime() {
        return new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>().withLogContext(LOG_CONTEXT);
    }

    static GroupCoordinatorService service(
        GroupCoordinatorConfig config,
        CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime,
        GroupCoordinatorMetrics metrics,
        GroupConfigManager groupConfigs,
        Persister persister,
        Timer timer,
        Time clock
    ) {
        // nobody asks here for the client of partition metadata
        return new GroupCoordinatorService(
            LOG_CONTEXT, config, runtime, metrics, groupConfigs, persister, timer, null, Optional.empty(), clock);
    }

    public static GroupConfigManager groupConfigs(GroupCoordinatorConfig broker, ShareGroupConfig share) {
        return new GroupConfigManager(broker, share);
    }

    public static CompletableFuture<JoinGroupResponseData> joinGroup(
        GroupCoordinator coordinator, AuthorizableRequestContext context, JoinGroupRequestData request
    ) {
        return coordinator.joinGroup(context, request, BufferSupplier.NO_CACHING);
    }

    public static CompletableFuture<SyncGroupResponseData> syncGroup(
        GroupCoordinator coordinator, AuthorizableRequestContext context, SyncGroupRequestData request
    ) {
        return coordinator.syncGroup(context, request, BufferSupplier.NO_CACHING);
    }

    public static CompletableFuture<OffsetCommitResponseData> commitOffsets(
        GroupCoordinator coordinator, AuthorizableRequestContext context, OffsetCommitRequestData request
    ) {
        return coordinator.commitOffsets(context, request, BufferSupplier.NO_CACHING);
    }

    public static CompletableFuture<DeletableGroupResultCollection> deleteGroups(
        GroupCoordinator coordinator, AuthorizableRequestContext context, List<String> groups
    ) {
        return coordinator.deleteGroups(context, groups, BufferSupplier.NO_CACHING);
    }
}
