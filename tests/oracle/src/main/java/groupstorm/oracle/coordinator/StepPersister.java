package groupstorm.oracle.coordinator;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.kafka.common.message.DeleteShareGroupStateResponseData;
import org.apache.kafka.common.message.InitializeShareGroupStateResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.NoOpStatePersister;

/** Answers the group coordinator as the step says: with success, with an error, or ("lost") never. */
final class StepPersister extends NoOpStatePersister {

    /** What was asked to be initialized since this list was emptied. */
    final List<InitializeShareGroupStateParameters> asked = new ArrayList<>();
    private String way;

    /** The step's `persister`; null for success. */
    void answerWith(String way) {
        this.way = way;
    }

    @Override
    public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) {
        asked.add(request);
        return answer(error -> {
            var data = new InitializeShareGroupStateResponseData();
            request.groupTopicPartitionData().topicsData().forEach(topic -> data.results().add(
                new InitializeShareGroupStateResponseData.InitializeStateResult()
                    .setTopicId(topic.topicId())
                    .setPartitions(topic.partitions().stream()
                        .map(one -> new InitializeShareGroupStateResponseData.PartitionResult()
                            .setPartition(one.partition())
                            .setErrorCode(error.code())
                            .setErrorMessage(error.message()))
                        .toList())));
            return InitializeShareGroupStateResult.from(data);
        });
    }

    @Override
    public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
        return answer(error -> {
            var data = new DeleteShareGroupStateResponseData();
            request.groupTopicPartitionData().topicsData().forEach(topic -> data.results().add(
                new DeleteShareGroupStateResponseData.DeleteStateResult()
                    .setTopicId(topic.topicId())
                    .setPartitions(topic.partitions().stream()
                        .map(one -> new DeleteShareGroupStateResponseData.PartitionResult()
                            .setPartition(one.partition())
                            .setErrorCode(error.code())
                            .setErrorMessage(error.message()))
                        .toList())));
            return DeleteShareGroupStateResult.from(data);
        });
    }

    private <T> CompletableFuture<T> answer(Function<Errors, T> result) {
        if ("lost".equals(way)) {
            return new CompletableFuture<>();
        }
        return CompletableFuture.completedFuture(result.apply(way == null ? Errors.NONE : Errors.valueOf(way)));
    }
}
