package groupstorm.oracle.coordinator;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/** The offsets topic's only partition: what is appended is committed at once, or refused as the script says. */
public final class MemoryLog implements PartitionWriter {

    private static final LogConfig CONFIG = new LogConfig(Map.of());

    private record Entry(byte[] key, byte[] value) {
    }

    private final List<Entry> entries = new ArrayList<>();
    private Listener listener;
    private Errors appendError = Errors.NONE;
    private long endOffset = 0;

    /** From now on appends fail for this reason; NONE: they succeed. */
    void refuseWith(Errors error) {
        appendError = error;
    }

    @Override
    public long append(TopicPartition tp, VerificationGuard guard, MemoryRecords records, short transactionVersion) {
        if (appendError != Errors.NONE) {
            throw appendError.exception();
        }
        for (RecordBatch batch : records.batches()) {
            endOffset += batch.countOrNull();
            for (Record record : batch) {
                entries.add(new Entry(Utils.toNullableArray(record.key()), Utils.toNullableArray(record.value())));
            }
        }
        listener.onHighWatermarkUpdated(tp, endOffset);
        return endOffset;
    }

    /** All records, in their order. */
    public void replay(CoordinatorPlayback<CoordinatorRecord> playback) {
        var serde = new GroupCoordinatorRecordSerde();
        long offset = 0;
        for (Entry entry : entries) {
            ByteBuffer value = entry.value() == null ? null : ByteBuffer.wrap(entry.value());
            playback.replay(offset++, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
                serde.deserialize(ByteBuffer.wrap(entry.key()), value));
        }
        if (offset > 0) {
            playback.updateLastWrittenOffset(offset);
            playback.updateLastCommittedOffset(offset);
        }
    }

    @Override
    public void registerListener(TopicPartition tp, Listener added) {
        listener = added;
    }

    @Override
    public void deregisterListener(TopicPartition tp, Listener removed) {
        listener = null;
    }

    @Override
    public LogConfig config(TopicPartition tp) {
        return CONFIG;
    }

    @Override
    public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(
        TopicPartition tp, String transactionalId, long producerId, short producerEpoch, int apiVersion
    ) {
        return CompletableFuture.completedFuture(VerificationGuard.SENTINEL);
    }

    @Override
    public CompletableFuture<Void> deleteRecords(TopicPartition tp, long deleteBeforeOffset) {
        return CompletableFuture.completedFuture(null);
    }
}
