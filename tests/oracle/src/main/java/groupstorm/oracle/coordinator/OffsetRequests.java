package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.ToIntFunction;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.coordinator.group.Release;

/** Requests about offsets, and the look at a group. */
final class OffsetRequests {

    private static final JsonNode OWN = TextNode.valueOf("$");
    private static final JsonNode NO_GENERATION = IntNode.valueOf(-1);

    private final Clients clients;
    private final Topics topics;

    OffsetRequests(Clients clients, Topics topics) {
        this.clients = clients;
        this.topics = topics;
    }

    Call commit(Step step, String label) {
        ToIntFunction<Client> read = step.value("epoch").asBoolean(false) && step.has("generation") ? client -> client.epoch : client -> client.generation;
        JsonNode generation = step.has("generation") ? step.value("generation") : OWN;
        var request = new OffsetCommitRequestData()
            .setGroupId(step.text("group", "g"))
            .setMemberId(clients.member(label, step.has("member") ? step.value("member") : OWN))
            .setGroupInstanceId(step.optionalText("instance", null))
            .setGenerationIdOrMemberEpoch(clients.number("generation", label, generation, read));
        for (Map.Entry<String, JsonNode> topic : step.entries("offsets")) {
            request.topics().add(committed(topic.getKey(), topic.getValue()));
        }
        Context context = Requests.context(ApiKeys.OFFSET_COMMIT, step, step.version(9, 2, 10));
        return new Call("commit", request.memberId(), false,
            coordinator -> coordinator.commitOffsets(context, request, Release.NO_CACHING));
    }

    /** As KafkaApis does, it looks the topic's id up. */
    private OffsetCommitRequestTopic committed(String name, JsonNode partitions) {
        var topic = new OffsetCommitRequestTopic().setName(name).setTopicId(topics.idOf(name));
        for (Map.Entry<String, JsonNode> partition : Step.entries("offsets", partitions)) {
            topic.partitions().add(new OffsetCommitRequestPartition()
                .setPartitionIndex(Step.partition("offsets", partition.getKey()))
                .setCommittedOffset(Step.int64("offsets", partition.getValue()))
                .setCommittedMetadata(""));
        }
        return topic;
    }

    /** Without topics: everything that is committed. */
    Call fetch(Step step, String label) {
        int version = step.version(9, 1, 10);
        JsonNode generation = step.has("generation") ? step.value("generation") : NO_GENERATION;
        var request = new OffsetFetchRequestGroup()
            .setGroupId(step.text("group", "g"))
            .setMemberId(step.value("member").isTextual() ? clients.member(label, step.value("member")) : null)
            .setMemberEpoch(clients.number("generation", label, generation, client -> client.epoch))
            .setTopics(step.value("topics").isObject() ? fetched(step) : null);
        Context context = Requests.context(ApiKeys.OFFSET_FETCH, step, version);
        // KafkaApis answers for a read that throws
        return new Call("fetch_offsets", request.memberId(), false, coordinator ->
            coordinator.fetchOffsets(context, request, false).exceptionally(thrown ->
                OffsetFetchResponse.groupError(request, Errors.forException(thrown), version)));
    }

    private static List<OffsetFetchRequestTopics> fetched(Step step) {
        List<OffsetFetchRequestTopics> topics = new ArrayList<>();
        for (Map.Entry<String, JsonNode> topic : step.entries("topics")) {
            List<Integer> numbers = new ArrayList<>();
            Step.elements("topics", topic.getValue())
                .forEachRemaining(number -> numbers.add(Step.int32("topics", number)));
            topics.add(new OffsetFetchRequestTopics().setName(topic.getKey()).setPartitionIndexes(numbers));
        }
        return topics;
    }

    Call describe(Step step) {
        Context context = Requests.context(ApiKeys.DESCRIBE_GROUPS, step, step.version(6, 0, 6));
        String group = step.text("group", "g");
        return new Call("describe", null, false, coordinator ->
            coordinator.describeGroups(context, List.of(group)).thenApply(groups -> groups.get(0)));
    }
}
