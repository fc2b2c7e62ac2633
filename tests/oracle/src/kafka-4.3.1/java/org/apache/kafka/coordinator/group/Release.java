package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.util.timer.Timer;

/** The places where Kafka 4.3.1 spells differently from other releases what the oracle calls. */
public final class Release {

    static final LogContext LOG_CONTEXT = new LogContext();
    public static final BufferSupplier NO_CACHING = BufferSupplier.NO_CACHING;

    private Release() {
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
            LOG_CONTEXT, config, runtime, metrics, groupConfigs, persister, timer, null);
    }

    public static GroupConfigManager groupConfigs(GroupCoordinatorConfig broker, ShareGroupConfig share) {
        return new GroupConfigManager(broker.extractGroupConfigMap(share), broker, share);
    }
}
