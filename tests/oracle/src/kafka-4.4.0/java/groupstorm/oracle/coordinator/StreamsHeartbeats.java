package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.CopartitionGroup;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Endpoint;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.KeyValue;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Subtopology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TaskIds;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TaskOffset;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TopicInfo;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Topology;
import org.apache.kafka.common.protocol.ApiKeys;

/** `streams` steps become StreamsGroupHeartbeat requests, filled in from what their clients remember. */
record StreamsHeartbeats(Clients clients, JsonNode topologies) {

    private static final JsonNode OWN = TextNode.valueOf("$");

    Call build(Step step, String label) {
        JsonNode epoch = step.has("epoch") ? step.value("epoch") : OWN;
        JsonNode endpointEpoch = step.has("endpoint_epoch") ? step.value("endpoint_epoch") : OWN;
        Client client = clients.get(label);
        var request = new StreamsGroupHeartbeatRequestData()
            .setGroupId(step.text("group", "g"))
            .setMemberId(clients.member(label, step.has("member") ? step.value("member") : OWN))
            .setMemberEpoch(clients.number("epoch", label, epoch, one -> one.epoch))
            .setEndpointInformationEpoch(
                clients.number("endpoint_epoch", label, endpointEpoch, one -> one.endpointEpoch))
            .setInstanceId(step.optionalText("instance", null))
            .setRackId(step.optionalText("rack", null))
            .setRebalanceTimeoutMs(step.int32("rebalance", -1))
            .setProcessId(step.optionalText("process", null))
            .setUserEndpoint(endpoint(step.value("endpoint")))
            .setClientTags(isNone(step.value("tags")) ? null : texts(step.value("tags")))
            .setTopology(topology(step.value("topology")))
            .setActiveTasks(tasks(step.value("active"), client, 0))
            .setStandbyTasks(tasks(step.value("standby"), client, 1))
            .setWarmupTasks(tasks(step.value("warmup"), client, 2))
            .setTaskOffsets(offsets(step.value("task_offsets")))
            .setTaskEndOffsets(offsets(step.value("task_end_offsets")))
            .setShutdownApplication(step.value("shutdown").asBoolean(false));
        Context context = Requests.context(ApiKeys.STREAMS_GROUP_HEARTBEAT, step, step.version(0, 0, 1));
        return new Call("streams", request.memberId(), false,
            coordinator -> coordinator.streamsGroupHeartbeat(context, request));
    }

    private static boolean isNone(JsonNode value) {
        return value.isMissingNode() || value.isNull();
    }

    private static List<TaskIds> tasks(JsonNode value, Client client, int kind) {
        if (isNone(value)) {
            return null;
        }
        if (value.isTextual()) {
            return listed(switch (value.textValue()) {
                case "$" -> client.tasks.get(kind);
                case "$prev" -> client.tasksBefore.get(kind);
                case "$common" -> common(client.tasks.get(kind), client.tasksBefore.get(kind));
                default -> throw new InvalidStep("tasks: " + value + " does not give tasks by subtopology");
            });
        }
        Map<String, List<Integer>> tasks = new TreeMap<>();
        Step.entries("tasks", value).forEach(entry -> tasks.put(entry.getKey(),
            elements(entry.getValue(), number -> Step.int32("tasks", number))));
        return listed(tasks);
    }

    private static Map<String, List<Integer>> common(Map<String, List<Integer>> one, Map<String, List<Integer>> other) {
        Map<String, List<Integer>> common = new TreeMap<>();
        one.forEach((subtopology, numbers) -> {
            List<Integer> both = numbers.stream().filter(other.getOrDefault(subtopology, List.of())::contains).toList();
            if (!both.isEmpty()) {
                common.put(subtopology, both);
            }
        });
        return common;
    }

    private static List<TaskIds> listed(Map<String, List<Integer>> tasks) {
        List<TaskIds> listed = new ArrayList<>();
        tasks.forEach((subtopology, numbers) ->
            listed.add(new TaskIds().setSubtopologyId(subtopology).setPartitions(numbers)));
        return listed;
    }

    private static Endpoint endpoint(JsonNode value) {
        if (isNone(value)) {
            return null;
        }
        if (!value.isArray() || value.size() != 2) {
            throw new InvalidStep("endpoint: " + value + " is no pair of host and port");
        }
        return new Endpoint()
            .setHost(Step.text("endpoint", value.get(0)))
            .setPort(Step.int32("endpoint", value.get(1)));
    }

    private static List<KeyValue> texts(JsonNode value) {
        List<KeyValue> texts = new ArrayList<>();
        Step.entries("texts", value).forEach(entry -> texts.add(
            new KeyValue().setKey(entry.getKey()).setValue(Step.text("texts", entry.getValue()))));
        return texts;
    }

    /** Offsets by subtopology and task, or a list of all three, which may name a task twice. */
    private static List<TaskOffset> offsets(JsonNode value) {
        if (isNone(value)) {
            return null;
        }
        if (value.isArray()) {
            return elements(value, row -> new TaskOffset()
                .setSubtopologyId(Step.text("offsets", row.path(0)))
                .setPartition(Step.int32("offsets", row.path(1)))
                .setOffset(Step.int64("offsets", row.path(2))));
        }
        List<TaskOffset> offsets = new ArrayList<>();
        Step.entries("offsets", value).forEach(subtopology ->
            Step.entries("offsets", subtopology.getValue()).forEach(task -> offsets.add(new TaskOffset()
                .setSubtopologyId(subtopology.getKey())
                .setPartition(Step.partition("offsets", task.getKey()))
                .setOffset(Step.int64("offsets", task.getValue())))));
        return offsets;
    }

    /** A topology, or the name of one of the scenario's, with another epoch if "@3" follows. */
    private Topology topology(JsonNode value) {
        if (isNone(value)) {
            return null;
        }
        if (!value.isTextual()) {
            return read(value);
        }
        String[] parts = value.textValue().split("@", 2);
        JsonNode known = topologies.path(parts[0]);
        if (known.isMissingNode()) {
            throw new InvalidStep("topology: " + value + " is none of the scenario's");
        }
        Topology topology = read(known);
        return parts.length == 1 ? topology : topology.setEpoch(Integer.parseInt(parts[1]));
    }

    private static Topology read(JsonNode value) {
        return new Topology()
            .setEpoch(value.path("epoch").asInt(0))
            .setSubtopologies(elements(value.path("subtopologies"), StreamsHeartbeats::subtopology));
    }

    private static Subtopology subtopology(JsonNode value) {
        return new Subtopology()
            .setSubtopologyId(value.path("id").asText(""))
            .setSourceTopics(elements(value.path("sources"), JsonNode::asText))
            .setSourceTopicRegex(elements(value.path("regex"), JsonNode::asText))
            .setRepartitionSinkTopics(elements(value.path("sinks"), JsonNode::asText))
            .setRepartitionSourceTopics(elements(value.path("repartition"), StreamsHeartbeats::topic))
            .setStateChangelogTopics(elements(value.path("changelogs"), StreamsHeartbeats::topic))
            .setCopartitionGroups(elements(value.path("copartition"), one -> new CopartitionGroup()
                .setSourceTopics(elements(one.path("sources"), StreamsHeartbeats::int16))
                .setSourceTopicRegex(elements(one.path("regex"), StreamsHeartbeats::int16))
                .setRepartitionSourceTopics(elements(one.path("repartition"), StreamsHeartbeats::int16))));
    }

    private static TopicInfo topic(JsonNode value) {
        if (value.isTextual()) {
            return new TopicInfo().setName(value.textValue());
        }
        return new TopicInfo()
            .setName(value.path("name").asText(""))
            .setPartitions(value.path("partitions").asInt(0))
            .setReplicationFactor(int16(value.path("replication")))
            .setTopicConfigs(texts(value.path("configs")));
    }

    private static short int16(JsonNode value) {
        return (short) value.asInt(0);
    }

    private static <T> List<T> elements(JsonNode value, Function<JsonNode, T> read) {
        List<T> elements = new ArrayList<>();
        if (!value.isMissingNode()) {
            Iterator<JsonNode> nodes = Step.elements("list", value);
            nodes.forEachRemaining(node -> elements.add(read.apply(node)));
        }
        return elements;
    }
}
