package org.apache.kafka.coordinator.group;

import groupstorm.oracle.coordinator.FifoTimer;
import groupstorm.oracle.coordinator.MemoryLog;
import groupstorm.oracle.coordinator.SerialEvents;
import groupstorm.oracle.coordinator.VirtualClock;
import java.lang.reflect.Field;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetricsImpl;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup.ShareGroupStatePartitionMetadataInfo;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.server.share.persister.Persister;

/**
 * Kafka's GroupCoordinatorService on its CoordinatorRuntime, both as they are, on one thread, in virtual time
 * and over a log in memory. It stands in Kafka's package since the service's constructor is visible only here.
 */
public final class VirtualCoordinator {

    /** One partition of the offsets topic: all groups share one shard, and one timeline of snapshots. */
    private static final int PARTITION = 0;

    private static final GroupCoordinatorMetrics METRICS = new GroupCoordinatorMetrics();

    private final GroupCoordinatorService service;
    private final Background background = new Background();
    private int epoch = 0;
    private boolean isLoaded = true;
    private GroupCoordinatorShard shard;

    public VirtualCoordinator(
        GroupCoordinatorConfig config,
        GroupConfigManager groupConfigs,
        VirtualClock clock,
        FifoTimer timer,
        MemoryLog log,
        Persister persister
    ) {
        var runtime = new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>()
            .withLogContext(Release.LOG_CONTEXT)
            .withTime(clock)
            .withTimer(timer)
            .withEventProcessor(new SerialEvents())
            .withPartitionWriter(log)
            .withLoader(new LogLoader(log))
            .withCoordinatorShardBuilderSupplier(() -> shardBuilder(config, groupConfigs))
            .withWriteTimeout(Duration.ofMillis(config.offsetCommitTimeoutMs()))
            .withCoordinatorRuntimeMetrics(new CoordinatorRuntimeMetricsImpl(new Metrics(), "oracle", false))
            .withCoordinatorMetrics(METRICS)
            .withSerializer(new GroupCoordinatorRecordSerde())
            .withCompression(Compression.NONE)
            // records are appended at once, whatever the scenario says about lingering
            .withAppendLingerMs(OptionalInt.empty())
            .withExecutorService(background)
            .withCachedBufferMaxBytesSupplier(config::cachedBufferMaxBytes)
            .build();
        service = Release.service(config, runtime, METRICS, groupConfigs, persister, timer, clock);
        service.startup(() -> PARTITION + 1);
        service.onElection(PARTITION, epoch);
    }

    private GroupCoordinatorShard.Builder shardBuilder(GroupCoordinatorConfig config, GroupConfigManager groupConfigs) {
        var builder = new GroupCoordinatorShard.Builder(config, groupConfigs) {
            @Override
            public GroupCoordinatorShard build() {
                shard = super.build();
                return shard;
            }
        };
        builder.withAuthorizerPlugin(Optional.empty());
        return builder;
    }

    /** Another coordinator takes over: it has what the records say; false where it cannot load them. */
    public boolean reload() {
        service.onResignation(PARTITION, OptionalInt.of(++epoch));
        service.onElection(PARTITION, ++epoch);
        return isLoaded;
    }

    /** What the last request left to another thread. An append error of the request is over then. */
    public void runBackground() {
        background.runAll();
    }

    public GroupCoordinator service() {
        return service;
    }

    public void onMetadataUpdate(MetadataDelta delta, MetadataImage image) {
        service.onMetadataUpdate(delta, image);
    }

    /** The groups as they are now. */
    public Collection<? extends Group> groups() {
        GroupMetadataManager manager = manager();
        return manager.groupIds().stream().map(manager::group).toList();
    }

    /** The partitions of a share group whose state is being initialized. */
    public Map<Uuid, Set<Integer>> initializing(String group) {
        var found = sharePartitions(group);
        return found == null ? Map.of() : GroupMetadataManager.stripInitValue(found.initializingTopics());
    }

    /** The partitions of a share group that have a state. */
    public Map<Uuid, Set<Integer>> initialized(String group) {
        var found = sharePartitions(group);
        return found == null ? Map.of() : GroupMetadataManager.stripInitValue(found.initializedTopics());
    }

    @SuppressWarnings("unchecked")
    private ShareGroupStatePartitionMetadataInfo sharePartitions(String group) {
        return ((Map<String, ShareGroupStatePartitionMetadataInfo>) read(
            GroupMetadataManager.class, "shareGroupStatePartitionMetadata", manager())).get(group);
    }

    private GroupMetadataManager manager() {
        return (GroupMetadataManager) read(GroupCoordinatorShard.class, "groupMetadataManager", shard);
    }

    private static Object read(Class<?> kind, String name, Object owner) {
        try {
            Field field = kind.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(owner);
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException("Kafka's " + kind.getSimpleName() + " has no " + name + " any more", changed);
        }
    }

    private final class LogLoader implements CoordinatorLoader<CoordinatorRecord> {
        private final MemoryLog log;

        private LogLoader(MemoryLog log) {
            this.log = log;
        }

        @Override
        public CompletableFuture<LoadSummary> load(TopicPartition tp, CoordinatorPlayback<CoordinatorRecord> playback) {
            try {
                log.replay(playback);
            } catch (RuntimeException refused) {
                isLoaded = false;
                return CompletableFuture.failedFuture(refused);
            }
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public void close() {
            // nothing was opened
        }
    }

    /** Background work (regular expressions) waits until the request that asks for it is done. */
    private static final class Background extends AbstractExecutorService implements ExecutorService {
        private final Deque<Runnable> tasks = new ArrayDeque<>();

        void runAll() {
            for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
                task.run();
            }
        }

        @Override
        public void execute(Runnable task) {
            tasks.add(task);
        }

        @Override
        public void shutdown() {
            // no thread to end
        }

        @Override
        public List<Runnable> shutdownNow() {
            return List.of();
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return false;
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return true;
        }
    }
}
