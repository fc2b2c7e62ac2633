package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData.TopicPartitions;
import org.apache.kafka.common.protocol.ApiKeys;

/** `chb` steps become ConsumerGroupHeartbeat requests, filled in from what their clients remember. */
record ConsumerHeartbeats(Clients clients) {

    private static final JsonNode OWN = TextNode.valueOf("$");

    Call build(Step step, String label) {
        int version = step.version(1, 0, 1);
        JsonNode epoch = step.has("epoch") ? step.value("epoch") : OWN;
        var request = new ConsumerGroupHeartbeatRequestData()
            .setGroupId(step.text("group", "g"))
            .setMemberId(clients.member(label, step.has("member") ? step.value("member") : OWN))
            .setMemberEpoch(clients.number("epoch", label, epoch, client -> client.epoch))
            .setInstanceId(step.optionalText("instance", null))
            .setRackId(step.optionalText("rack", null))
            .setRebalanceTimeoutMs(step.int32("rebalance", -1))
            .setSubscribedTopicNames(topics(step.value("topics")))
            .setSubscribedTopicRegex(step.optionalText("regex", null))
            .setServerAssignor(step.optionalText("assignor", null))
            .setTopicPartitions(owned(step.value("owned"), clients.get(label)));
        Context context = Requests.context(ApiKeys.CONSUMER_GROUP_HEARTBEAT, step, version);
        return new Call("chb", request.memberId(), false,
            coordinator -> coordinator.consumerGroupHeartbeat(context, request));
    }

    /** The names, null where there are none. */
    static List<String> topics(JsonNode value) {
        if (value.isMissingNode() || value.isNull()) {
            return null;
        }
        List<String> topics = new ArrayList<>();
        Step.elements("topics", value).forEachRemaining(topic -> topics.add(Step.text("topics", topic)));
        return topics;
    }

    private static List<TopicPartitions> owned(JsonNode value, Client client) {
        if (value.isMissingNode() || value.isNull()) {
            return null;
        }
        if (value.isTextual()) {
            return listed(switch (value.textValue()) {
                case "$" -> client.owned;
                case "$prev" -> client.ownedBefore;
                case "$common" -> common(client.owned, client.ownedBefore);
                default -> throw new InvalidStep("owned: " + value + " does not give partitions by topic");
            });
        }
        Map<Uuid, List<Integer>> owned = new TreeMap<>();
        for (Map.Entry<String, JsonNode> topic : Step.entries("owned", value)) {
            List<Integer> numbers = new ArrayList<>();
            Step.elements("owned", topic.getValue())
                .forEachRemaining(number -> numbers.add(Step.int32("owned", number)));
            owned.put(Topics.id(topic.getKey()), numbers);
        }
        return listed(owned);
    }

    private static Map<Uuid, List<Integer>> common(Map<Uuid, List<Integer>> one, Map<Uuid, List<Integer>> other) {
        Map<Uuid, List<Integer>> common = new TreeMap<>();
        one.forEach((topic, numbers) -> {
            List<Integer> both = numbers.stream().filter(other.getOrDefault(topic, List.of())::contains).toList();
            if (!both.isEmpty()) {
                common.put(topic, both);
            }
        });
        return common;
    }

    private static List<TopicPartitions> listed(Map<Uuid, List<Integer>> owned) {
        List<TopicPartitions> listed = new ArrayList<>();
        owned.forEach((topic, numbers) ->
            listed.add(new TopicPartitions().setTopicId(topic).setPartitions(numbers)));
        return listed;
    }
}
