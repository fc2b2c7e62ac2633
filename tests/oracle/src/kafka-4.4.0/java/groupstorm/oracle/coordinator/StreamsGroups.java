package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData.DescribedGroup;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData.TopicInfo;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData.EndpointToPartitions;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData.TaskIds;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData.TopicPartition;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse.Status;
import org.apache.kafka.coordinator.group.Group;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupHeartbeatResult;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;

/** Steps about streams groups (KIP-1071) become requests, and answers and groups become the script's events. */
record StreamsGroups(Clients clients, Names names, JsonNode topologies) {

    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    /** TopologyDescriptionStatus as StreamsGroupDescribeResponse.json numbers it. */
    private static final List<String> DESCRIPTION_STATUSES =
        List.of("NOT_REQUESTED", "NOT_STORED", "ERROR", "AVAILABLE");

    Call build(Step step, String label) {
        if (step.op().equals("streams")) {
            return new StreamsHeartbeats(clients, topologies).build(step, label);
        }
        String group = step.text("group", "g");
        boolean described = step.value("description").asBoolean(false);
        Context context = Requests.context(ApiKeys.STREAMS_GROUP_DESCRIBE, step, 1);
        return new Call("describe_streams", null, false, coordinator -> coordinator
            .streamsGroupDescribe(context, List.of(group), described).thenApply(groups -> groups.get(0)));
    }

    /** Adds the fields of an answer to its event; whether it is one of these requests'. */
    boolean print(Object response, ObjectNode event) {
        if (response instanceof StreamsGroupHeartbeatResult beat) {
            print(beat, event);
        } else if (response instanceof DescribedGroup group) {
            print(group, event);
        } else {
            return false;
        }
        return true;
    }

    private void print(StreamsGroupHeartbeatResult result, ObjectNode event) {
        StreamsGroupHeartbeatResponseData beat = result.data();
        Printing.error(beat.errorCode(), event)
            .put("member", names.name(beat.memberId()))
            .put("epoch", beat.memberEpoch())
            .put("heartbeat_ms", beat.heartbeatIntervalMs());
        ArrayNode statuses = event.putArray("statuses");
        if (beat.status() != null) {
            beat.status().forEach(status -> statuses.addArray()
                .add(Status.fromCode(status.statusCode()).name()).add(status.statusDetail()));
        }
        event.set("active", tasks(beat.activeTasks()));
        event.set("standby", tasks(beat.standbyTasks()));
        event.set("warmup", tasks(beat.warmupTasks()));
        event.put("endpoint_epoch", beat.endpointInformationEpoch());
        event.set("endpoints", endpoints(beat.partitionsByUserEndpoint()));
        ObjectNode created = event.putObject("create");
        new TreeMap<>(result.creatableTopics()).forEach((name, topic) -> {
            ObjectNode configs = NODES.objectNode();
            topic.configs().forEach(config -> configs.put(config.name(), config.value()));
            created.putArray(name).add(topic.numPartitions()).add(topic.replicationFactor()).add(configs);
        });
        event.put("recovery_lag", beat.acceptableRecoveryLag())
            .put("task_offset_ms", beat.taskOffsetIntervalMs())
            .put("topology_required", beat.topologyDescriptionRequired());
    }

    private static JsonNode tasks(List<TaskIds> tasks) {
        if (tasks == null) {
            return NODES.nullNode();
        }
        Map<String, Collection<Integer>> numbers = new HashMap<>();
        tasks.forEach(one -> numbers.put(one.subtopologyId(), one.partitions()));
        return numbers(numbers);
    }

    /** Sorted by name and number; names without numbers are left out. */
    private static ObjectNode numbers(Map<String, ? extends Collection<Integer>> numbers) {
        ObjectNode printed = NODES.objectNode();
        new TreeMap<>(numbers).forEach((name, listed) -> {
            if (!listed.isEmpty()) {
                ArrayNode array = printed.putArray(name);
                listed.stream().sorted().forEach(array::add);
            }
        });
        return printed;
    }

    private static JsonNode endpoints(List<EndpointToPartitions> endpoints) {
        if (endpoints == null) {
            return NODES.nullNode();
        }
        List<ArrayNode> entries = new ArrayList<>();
        for (EndpointToPartitions one : endpoints) {
            entries.add(NODES.arrayNode().add(one.userEndpoint().host()).add(one.userEndpoint().port())
                .add(partitions(one.activePartitions())).add(partitions(one.standbyPartitions())));
        }
        entries.sort(Comparator.<ArrayNode, String>comparing(entry -> entry.get(0).textValue())
            .thenComparing(entry -> entry.get(1).intValue())
            .thenComparing(ArrayNode::toString));
        return NODES.arrayNode().addAll(entries);
    }

    private static ObjectNode partitions(List<TopicPartition> partitions) {
        Map<String, Collection<Integer>> numbers = new HashMap<>();
        partitions.forEach(one -> numbers.put(one.topic(), one.partitions()));
        return numbers(numbers);
    }

    private void print(DescribedGroup group, ObjectNode event) {
        Printing.error(group.errorCode(), event)
            .put("state", group.groupState())
            .put("epoch", group.groupEpoch())
            .put("assignment_epoch", group.assignmentEpoch());
        event.set("topology", topology(group.topology()));
        Map<String, ObjectNode> sorted = new TreeMap<>(names.order);
        group.members().forEach(member -> sorted.put(names.name(member.memberId()), described(member)));
        event.putArray("members").addAll(sorted.values());
        event.put("assignor", group.assignorName())
            .put("description_status", DESCRIPTION_STATUSES.get(group.topologyDescriptionStatus()))
            .putNull("description");
    }

    private static JsonNode topology(StreamsGroupDescribeResponseData.Topology topology) {
        if (topology == null) {
            return NODES.nullNode();
        }
        ObjectNode printed = NODES.objectNode().put("epoch", topology.epoch());
        ArrayNode subtopologies = printed.putArray("subtopologies");
        topology.subtopologies().forEach(one -> {
            ObjectNode subtopology = subtopologies.addObject().put("id", one.subtopologyId());
            sorted(one.sourceTopics(), subtopology.putArray("sources"));
            sorted(one.repartitionSinkTopics(), subtopology.putArray("sinks"));
            subtopology.set("repartition", topics(one.repartitionSourceTopics()));
            subtopology.set("changelogs", topics(one.stateChangelogTopics()));
        });
        return printed;
    }

    private static void sorted(List<String> names, ArrayNode printed) {
        names.stream().sorted().forEach(printed::add);
    }

    private static ArrayNode topics(List<TopicInfo> topics) {
        ArrayNode printed = NODES.arrayNode();
        topics.stream().sorted(Comparator.comparing(TopicInfo::name)).forEach(topic -> {
            ObjectNode configs = NODES.objectNode();
            topic.topicConfigs().forEach(config -> configs.put(config.key(), config.value()));
            printed.addArray()
                .add(topic.name()).add(topic.partitions()).add(topic.replicationFactor()).add(configs);
        });
        return printed;
    }

    private ObjectNode described(StreamsGroupDescribeResponseData.Member member) {
        ObjectNode printed = NODES.objectNode()
            .put("member", names.name(member.memberId()))
            .put("epoch", member.memberEpoch())
            .put("instance", member.instanceId())
            .put("rack", member.rackId())
            .put("client_id", member.clientId())
            .put("topology_epoch", member.topologyEpoch())
            .put("process", member.processId());
        var endpoint = member.userEndpoint();
        printed.set("endpoint", endpoint == null ? null : NODES.arrayNode().add(endpoint.host()).add(endpoint.port()));
        ObjectNode tags = printed.putObject("tags");
        member.clientTags().forEach(tag -> tags.put(tag.key(), tag.value()));
        printed.set("assigned", described(member.assignment()));
        printed.set("target", described(member.targetAssignment()));
        printed.set("task_offsets", described(member.taskOffsets()));
        printed.set("task_end_offsets", described(member.taskEndOffsets()));
        return printed;
    }

    private static ObjectNode described(StreamsGroupDescribeResponseData.Assignment assignment) {
        ObjectNode printed = NODES.objectNode();
        put("active", ids(assignment.activeTasks()), printed);
        put("standby", ids(assignment.standbyTasks()), printed);
        put("warmup", ids(assignment.warmupTasks()), printed);
        return printed;
    }

    private static Map<String, Collection<Integer>> ids(List<StreamsGroupDescribeResponseData.TaskIds> tasks) {
        Map<String, Collection<Integer>> numbers = new HashMap<>();
        tasks.forEach(one -> numbers.put(one.subtopologyId(), one.partitions()));
        return numbers;
    }

    private static ObjectNode described(List<StreamsGroupDescribeResponseData.TaskOffset> offsets) {
        Map<String, Map<Integer, Long>> numbers = new TreeMap<>();
        offsets.forEach(one -> numbers.computeIfAbsent(one.subtopologyId(), __ -> new TreeMap<>())
            .put(one.partition(), one.offset()));
        return nested(numbers);
    }

    /** The group as the script's state; false where it is of another type. */
    boolean print(Group some, ObjectNode state) {
        if (!(some instanceof StreamsGroup group)) {
            return false;
        }
        state.put("type", "streams")
            .put("state", group.stateAsString())
            .put("epoch", group.groupEpoch())
            .put("assignment_epoch", group.assignmentEpoch())
            .put("topology_epoch", group.topology().map(topology -> topology.topologyEpoch()).orElse(null))
            .put("validated_epoch", group.validatedTopologyEpoch());
        state.set("configured", group.configuredTopology().map(StreamsGroups::configured).orElse(null));
        state.put("endpoint_epoch", group.endpointInformationEpoch())
            .put("shutdown", group.getShutdownRequestMemberId().map(names::name).orElse(null));
        ObjectNode configs = state.putObject("configs");
        group.lastAssignmentConfigs().forEach(configs::put);
        Map<String, StreamsGroupMember> sorted = new TreeMap<>(names.order);
        group.members().forEach((id, member) -> sorted.put(names.name(id), member));
        ArrayNode members = state.putArray("members");
        sorted.forEach((name, member) -> print(group, name, member, members.addObject()));
        int stored = group.storedDescriptionTopologyEpoch();
        int failed = group.failedDescriptionTopologyEpoch();
        if (stored != -1 || failed != -1) {
            state.putArray("description_epochs").add(stored).add(failed);
        }
        return true;
    }

    private static JsonNode configured(ConfiguredTopology configured) {
        ObjectNode printed = NODES.objectNode()
            .put("problem", configured.topicConfigurationException().map(one -> one.status().name()).orElse(null))
            .putNull("tasks");
        configured.subtopologies().ifPresent(subtopologies -> {
            ObjectNode tasks = printed.putObject("tasks");
            subtopologies.forEach((id, one) -> tasks.put(id, one.numberOfTasks()));
        });
        ArrayNode missing = printed.putArray("missing");
        configured.internalTopicsToBeCreated().keySet().stream().sorted().forEach(missing::add);
        return printed;
    }

    private static void print(StreamsGroup group, String name, StreamsGroupMember member, ObjectNode printed) {
        printed.put("member", name)
            .put("epoch", member.memberEpoch())
            .put("previous_epoch", member.previousMemberEpoch())
            .put("state", member.state().name())
            .put("process", member.processId())
            .put("topology_epoch", member.topologyEpoch());
        printed.set("assigned", kinds(member.assignedTasks()));
        printed.set("revoking", kinds(member.tasksPendingRevocation()));
        TasksTuple target = group.targetAssignment(member.memberId(), member.instanceId());
        ObjectNode kinds = printed.putObject("target");
        put("active", target.activeTasks(), kinds);
        put("standby", target.standbyTasks(), kinds);
        put("warmup", target.warmupTasks(), kinds);
        printed.set("task_epochs", taskEpochs(member));
        member.instanceId().ifPresent(instance -> printed.put("instance", instance));
        member.rackId().ifPresent(rack -> printed.put("rack", rack));
        member.userEndpoint().ifPresent(
            endpoint -> printed.putArray("endpoint").add(endpoint.host()).add(endpoint.port()));
        if (!member.clientTags().isEmpty()) {
            ObjectNode tags = printed.putObject("tags");
            member.clientTags().forEach(tags::put);
        }
        var offsets = group.taskOffsets(member.memberId());
        putOffsets("task_offsets", offsets.taskOffsets(), printed);
        putOffsets("task_end_offsets", offsets.taskEndOffsets(), printed);
    }

    private static void putOffsets(String name, Map<String, Map<Integer, Long>> offsets, ObjectNode printed) {
        ObjectNode nested = nested(offsets);
        if (!nested.isEmpty()) {
            printed.set(name, nested);
        }
    }

    private static ObjectNode kinds(TasksTupleWithEpochs tasks) {
        ObjectNode printed = NODES.objectNode();
        Map<String, Collection<Integer>> active = new HashMap<>();
        tasks.activeTasksWithEpochs().forEach((subtopology, epochs) -> active.put(subtopology, epochs.keySet()));
        put("active", active, printed);
        put("standby", tasks.standbyTasks(), printed);
        put("warmup", tasks.warmupTasks(), printed);
        return printed;
    }

    private static void put(String kind, Map<String, ? extends Collection<Integer>> tasks, ObjectNode printed) {
        ObjectNode numbers = numbers(tasks);
        if (!numbers.isEmpty()) {
            printed.set(kind, numbers);
        }
    }

    /** The epochs of active tasks, assigned and being revoked. */
    private static ObjectNode taskEpochs(StreamsGroupMember member) {
        Map<String, Map<Integer, Integer>> epochs = new TreeMap<>();
        for (TasksTupleWithEpochs tasks : List.of(member.assignedTasks(), member.tasksPendingRevocation())) {
            tasks.activeTasksWithEpochs().forEach((subtopology, numbers) ->
                epochs.computeIfAbsent(subtopology, __ -> new TreeMap<>()).putAll(numbers));
        }
        return nested(epochs);
    }

    private static ObjectNode nested(Map<String, ? extends Map<Integer, ? extends Number>> values) {
        ObjectNode printed = NODES.objectNode();
        new TreeMap<>(values).forEach((subtopology, numbers) -> {
            if (!numbers.isEmpty()) {
                ObjectNode tasks = printed.putObject(subtopology);
                new TreeMap<>(numbers).forEach((task, value) -> tasks.put(Integer.toString(task), value.longValue()));
            }
        });
        return printed;
    }
}
