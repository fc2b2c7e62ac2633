package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import groupstorm.oracle.JsonLines;
import groupstorm.oracle.coordinator.FifoTimer;
import groupstorm.oracle.coordinator.VirtualClock;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfigProvider;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.AcquisitionLockTimerTask;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.RecordState;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;

/** Kafka's SharePartition alone: a line is a case, whose operations it is asked one after the other. */
public final class PartitionOracle {

    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final TopicIdPartition PARTITION = new TopicIdPartition(AskedPersister.TOPIC, 0, "foo");

    /** A group that has a dead letter queue, where there are any, and no other option of its own. */
    private static final ShareGroupConfigProvider ITS_OWN =
        new ShareGroupConfigProvider(new GroupConfigManager(
            GroupCoordinatorConfig.fromProps(Map.of()), ShareGroupConfig.fromProps(Map.of()))) {
            @Override
            public Optional<String> errorsDLQTopicName(String group) {
                return Optional.of("dlq.g");
            }
        };

    private final VirtualClock clock = new VirtualClock();
    private final FifoTimer timer = new FifoTimer(clock);
    private final AskedPersister persister;
    private final SharePartition partition;
    private final List<JsonNode> done = new ArrayList<>();

    private PartitionOracle(JsonNode request) {
        persister = new AskedPersister(request.get("stored"));
        partition = new SharePartition("g", PARTITION, 0, request.get("locks").intValue(), request.get("limit").intValue(),
            request.get("lock_ms").intValue(), timer, clock, persister, null, key -> { }, ITS_OWN, null,
            request.get("dead_letters")::booleanValue, persister.queue());
        partition.maybeInitialize();
    }

    public static void main(String[] arguments) throws Exception {
        JsonLines.serve(PartitionOracle::answer);
    }

    private static JsonNode answer(JsonNode request) {
        var answer = JSON.objectNode();
        var oracle = new PartitionOracle(request);
        var shown = answer.putArray("answers").add(oracle.state("loaded"));
        int index = 0;
        for (JsonNode operation : request.get("ops")) {
            shown.add(oracle.state(oracle.work(index++, operation)));
        }
        return answer;
    }

    /** What the operation gives at once; "thrown" where Kafka throws. */
    private String work(int index, JsonNode operation) {
        try {
            String member = operation.get(1).asText();
            switch (operation.get(0).textValue()) {
                case "acquire" -> {
                    return acquire(member, operation);
                }
                case "acknowledge" -> {
                    var batches = new ArrayList<ShareAcknowledgementBatch>();
                    for (JsonNode one : operation.get(2)) {
                        var types = new ArrayList<Byte>();
                        one.get(2).forEach(type -> types.add((byte) type.intValue()));
                        batches.add(new ShareAcknowledgementBatch(one.get(0).longValue(), one.get(1).longValue(), types));
                    }
                    follow(index, partition.acknowledge(member, batches));
                }
                case "release" -> follow(index, partition.releaseAcquiredRecords(member));
                case "advance" -> advance(operation.get(1).longValue());
                case "log_start" -> partition.updateCacheAndOffsets(operation.get(1).longValue());
                case "persister" -> persister.mode = member;
                case "answer" -> persister.answer(Errors.valueOf(member));
                default -> throw new IllegalArgumentException("no operation " + operation);
            }
            return "";
        } catch (RuntimeException problem) {
            return "thrown";
        }
    }

    private String acquire(String member, JsonNode operation) {
        var mode = operation.get(2).booleanValue() ? ShareAcquireMode.RECORD_LIMIT : ShareAcquireMode.BATCH_OPTIMIZED;
        var log = ByteBuffer.allocate(1 << 16);
        for (JsonNode batch : operation.get(5)) {
            long first = batch.get(0).longValue();
            long producer = batch.has(2) ? batch.get(2).longValue() : RecordBatch.NO_PRODUCER_ID;
            if (batch.has(3)) {
                var type = ControlRecordType.valueOf(batch.get(3).textValue());
                MemoryRecords.writeEndTransactionalMarker(log, first, 0L, 0, producer, (short) 0,
                    new EndTransactionMarker(type, 0));
                continue;
            }
            try (var builder = MemoryRecords.builder(log, RecordBatch.MAGIC_VALUE_V2, Compression.NONE,
                    TimestampType.CREATE_TIME, first, 0, producer, (short) (producer < 0 ? -1 : 0), producer < 0 ? -1 : 0,
                    producer >= 0, 0)) {
                for (long offset = first; offset <= batch.get(1).longValue(); offset++) {
                    builder.appendWithOffset(offset, 0L, null, new byte[0]);
                }
            }
        }
        log.flip();
        var aborted = new ArrayList<AbortedTransaction>();
        operation.get(6).forEach(one -> aborted.add(new AbortedTransaction()
            .setProducerId(one.get(0).longValue()).setFirstOffset(one.get(1).longValue())));
        var data = new FetchPartitionData(Errors.NONE, 1 << 20, 0, MemoryRecords.readableRecords(log), Optional.empty(),
            OptionalLong.empty(), Optional.of(aborted), OptionalInt.empty(), false);
        var got = partition.acquire(member, mode, operation.get(3).intValue(), operation.get(4).intValue(),
            partition.nextFetchOffset(), data, FetchIsolation.TXN_COMMITTED);
        var ranges = JSON.arrayNode();
        got.acquiredRecords().forEach(one ->
            ranges.add(JSON.arrayNode().add(one.firstOffset()).add(one.lastOffset()).add(one.deliveryCount())));
        return ranges + " " + got.count();
    }

    private void follow(int index, CompletableFuture<Void> future) {
        future.whenComplete((nothing, problem) ->
            done.add(JSON.arrayNode().add(index)
                .add((problem == null ? Errors.NONE : Errors.forException(problem)).name())));
    }

    private void advance(long ms) {
        long until = clock.milliseconds() + ms;
        while (timer.nextDeadlineMs() != null && timer.nextDeadlineMs() <= until) {
            clock.moveTo(timer.nextDeadlineMs());
            timer.fireOne();
        }
        clock.moveTo(until);
    }

    private ObjectNode state(String result) {
        var state = JSON.objectNode().put("result", result);
        state.putArray("done").addAll(done);
        done.clear();
        state.set("asked", persister.takeAsked());
        try {
            state.put("next", partition.nextFetchOffset()).put("can", partition.canAcquireRecords());
        } catch (RuntimeException problem) {
            state.put("next", "thrown");
        }
        var gap = partition.persisterReadResultGapWindow();
        state.put("start", partition.startOffset()).put("end", partition.endOffset())
            .put("complete", partition.deliveryCompleteCount())
            .put("gap", gap == null ? "" : gap.gapStartOffset() + "-" + gap.endOffset());
        var batches = state.putArray("batches");
        partition.cachedState().values().forEach(batch -> batches.add(print(batch)));
        return state;
    }

    private ArrayNode print(InFlightBatch batch) {
        var shown = JSON.arrayNode().add(batch.firstOffset()).add(batch.lastOffset());
        if (batch.offsetState() == null) {
            return shown.add(print(batch.batchState(), batch.batchDeliveryCount(), batch.batchMemberId(),
                batch.batchAcquisitionLockTimeoutTask(), batch.batchHasOngoingStateTransition()));
        }
        batch.offsetState().values().forEach(one -> shown.add(print(one.state(), one.deliveryCount(), one.memberId(),
            one.acquisitionLockTimeoutTask(), one.hasOngoingStateTransition())));
        return shown;
    }

    private String print(RecordState state, int count, String member, AcquisitionLockTimerTask lock, boolean changing) {
        long endsMs = lock == null ? -1 : lock.expirationMs() - clock.milliseconds() + clock.elapsedMs();
        return String.join(" ", state.name(), "" + count, member, "" + endsMs, "" + changing);
    }

}
