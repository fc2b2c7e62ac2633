package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.share.dlq.ShareGroupDLQManager;
import org.apache.kafka.server.share.dlq.ShareGroupDLQRecordParameter;
import org.apache.kafka.server.share.fetch.RecordState;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;

/** The share coordinator and the dead letter queue of a case: they keep nothing, and remember what they were asked. */
final class AskedPersister extends NoOpStatePersister {

    static final Uuid TOPIC = new Uuid(1, 1);
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    /** "hold": writes wait for `answer`; otherwise the error with which they are answered at once, or "ok". */
    String mode = "ok";
    private final JsonNode stored;
    private final Deque<CompletableFuture<WriteShareGroupStateResult>> held = new ArrayDeque<>();
    private final List<JsonNode> asked = new ArrayList<>();

    AskedPersister(JsonNode stored) {
        this.stored = stored;
    }

    ArrayNode takeAsked() {
        var taken = JSON.arrayNode().addAll(asked);
        asked.clear();
        return taken;
    }

    @Override
    public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
        var batches = new ArrayList<PersisterStateBatch>();
        for (JsonNode one : stored.get("batches")) {
            batches.add(new PersisterStateBatch(one.get(0).longValue(), one.get(1).longValue(),
                RecordState.valueOf(one.get(2).textValue()).id(), one.get(3).shortValue()));
        }
        var found = PartitionFactory.newPartitionAllData(0, 0, stored.get("start").longValue(), (short) 0, "", batches);
        var data = List.of(new TopicData<>(TOPIC, List.of(found)));
        return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder().setTopicsData(data).build());
    }

    @Override
    public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
        var written = request.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
        var shown = JSON.arrayNode().add("write").add(written.startOffset()).add(written.deliveryCompleteCount());
        written.stateBatches().forEach(one -> shown.add(JSON.arrayNode().add(one.firstOffset()).add(one.lastOffset())
            .add(RecordState.forId(one.deliveryState()).name()).add(one.deliveryCount())));
        asked.add(shown);
        if (mode.equals("hold")) {
            held.add(new CompletableFuture<>());
            return held.getLast();
        }
        return CompletableFuture.completedFuture(result(mode.equals("ok") ? Errors.NONE : Errors.valueOf(mode)));
    }

    /** Answer the write that has waited for the longest time, if there is one. */
    void answer(Errors error) {
        if (!held.isEmpty()) {
            held.remove().complete(result(error));
        }
    }

    private static WriteShareGroupStateResult result(Errors error) {
        var answer = PartitionFactory.newPartitionErrorData(0, error.code(), error.message());
        var data = List.of(new TopicData<>(TOPIC, List.of(answer)));
        return new WriteShareGroupStateResult.Builder().setTopicsData(data).build();
    }

    /** A queue that takes every record. */
    ShareGroupDLQManager queue() {
        return new ShareGroupDLQManager() {
            @Override
            public CompletableFuture<Void> enqueue(ShareGroupDLQRecordParameter letter) {
                boolean isRejected = letter.cause().orElseThrow() == CLIENT_REJECT;
                asked.add(JSON.arrayNode().add("dlq").add(letter.firstOffset()).add(letter.lastOffset())
                    .add(letter.deliveryCount().orElseThrow())
                    .add(isRejected ? "CLIENT_REJECT" : "DELIVERY_COUNT_EXCEEDED"));
                return CompletableFuture.completedFuture(null);
            }

            @Override
            public void stop() {
            }
        };
    }
}
