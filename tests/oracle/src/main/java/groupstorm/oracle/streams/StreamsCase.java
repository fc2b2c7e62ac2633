package groupstorm.oracle.streams;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.InternalTopicManager;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/** A case of `groupstorm assign --mode streams` as the leader of a group would see it. */
final class StreamsCase {

    /** A partition of a task; racks null where the broker of a replica has none. */
    record Part(TopicPartition partition, List<String> racks) {
    }

    final JsonNode question;
    final AssignmentConfigs configs;
    final Map<TaskId, List<Part>> inputs = new LinkedHashMap<>();
    final Map<TaskId, List<Part>> changelogs = new LinkedHashMap<>();
    final Map<TaskId, Set<TopicPartition>> partitionsForTask = new HashMap<>();
    final Map<TaskId, Set<TopicPartition>> changelogsForTask = new HashMap<>();
    final Set<TaskId> stateful = new HashSet<>();

    StreamsCase(JsonNode question) {
        this.question = question;
        this.configs = configs(question.path("config"));
        for (JsonNode task : question.get("tasks")) {
            TaskId id = TaskId.parse(task.get("id").textValue());
            inputs.put(id, parts(task.path("inputs")));
            changelogs.put(id, parts(task.path("changelogs")));
            partitionsForTask.put(id, partitions(inputs.get(id)));
            if (task.path("stateful").asBoolean()) {
                stateful.add(id);
                changelogsForTask.put(id, partitions(changelogs.get(id)));
            }
        }
    }

    /** The argument of StickyTaskAssignor's constructor: in the case or in its config. */
    boolean mustPreserveActive() {
        return question.path("must_preserve_active").asBoolean()
            || question.path("config").path("must_preserve_active").asBoolean();
    }

    Set<TaskId> all() {
        return partitionsForTask.keySet();
    }

    private static AssignmentConfigs configs(JsonNode config) {
        List<String> tags = new ArrayList<>();
        config.path("rack_aware_tags").forEach(tag -> tags.add(tag.textValue()));
        return new AssignmentConfigs(
            config.path("acceptable_recovery_lag").asLong(10_000), config.path("max_warmup_replicas").asInt(2),
            config.path("num_standby_replicas").asInt(0), config.path("probing_rebalance_interval_ms").asLong(600_000),
            tags, number(config, "traffic_cost"), number(config, "non_overlap_cost"),
            config.path("strategy").asText("none"));
    }

    private static OptionalInt number(JsonNode config, String name) {
        return config.hasNonNull(name) ? OptionalInt.of(config.get(name).intValue()) : OptionalInt.empty();
    }

    private static List<Part> parts(JsonNode list) {
        List<Part> parts = new ArrayList<>();
        for (JsonNode one : list) {
            List<String> racks = new ArrayList<>();
            one.path(2).forEach(rack -> racks.add(rack.textValue()));
            parts.add(new Part(new TopicPartition(one.get(0).textValue(), one.get(1).intValue()),
                racks.contains(null) ? null : racks));
        }
        return parts;
    }

    private static Set<TopicPartition> partitions(List<Part> parts) {
        Set<TopicPartition> partitions = new HashSet<>();
        parts.forEach(part -> partitions.add(part.partition()));
        return partitions;
    }

    /** A UUID, or a number for the UUID of that number. */
    static ProcessId process(String text) {
        return new ProcessId(text.contains("-") ? UUID.fromString(text) : new UUID(0, Long.parseLong(text)));
    }

    static String name(JsonNode client) {
        return client.get("id").asText();
    }

    private static Map<TaskId, Long> longs(JsonNode object) {
        Map<TaskId, Long> found = new HashMap<>();
        object.properties().forEach(entry -> found.put(TaskId.parse(entry.getKey()), entry.getValue().longValue()));
        return found;
    }

    static Set<TaskId> tasks(JsonNode list) {
        Set<TaskId> found = new HashSet<>();
        list.forEach(task -> found.add(TaskId.parse(task.textValue())));
        return found;
    }

    /** A HashMap, as StreamsPartitionAssignor's, filled in the order of the case. */
    Map<ProcessId, ClientState> states() {
        Map<ProcessId, ClientState> states = new HashMap<>();
        for (JsonNode client : question.get("clients")) {
            ProcessId id = process(name(client));
            states.put(id, client.has("consumers") && !client.has("lags") ? asLeader(client, id) : asSaid(client, id));
        }
        return states;
    }

    private static Map<String, String> tags(JsonNode client) {
        Map<String, String> tags = new HashMap<>();
        client.path("tags").properties().forEach(tag -> tags.put(tag.getKey(), tag.getValue().textValue()));
        return tags;
    }

    private static ClientState asSaid(JsonNode client, ProcessId id) {
        return new ClientState(tasks(client.path("prev_active")), tasks(client.path("prev_standby")),
            longs(client.path("lags")), tags(client), client.get("capacity").intValue(), id);
    }

    private ClientState asLeader(JsonNode client, ProcessId id) {
        var state = new ClientState(id, tags(client));
        Map<TopicPartition, TaskId> taskFor = new HashMap<>();
        partitionsForTask.forEach((task, parts) -> parts.forEach(part -> taskFor.put(part, task)));
        for (JsonNode consumer : client.get("consumers")) {
            String name = consumer.get("id").textValue();
            Set<TopicPartition> owned = new HashSet<>();
            tasks(consumer.path("owned_active")).forEach(
                task -> owned.addAll(partitionsForTask.getOrDefault(task, Set.of())));
            state.incrementCapacity();
            state.addOwnedPartitions(owned, name);
            state.addPreviousTasksAndOffsetSums(name, longs(consumer.path("offset_sums")));
        }
        state.initializePrevTasks(taskFor, false);
        state.computeTaskLags(id, longs(question.path("end_offset_sums")));
        return state;
    }

    /** Consumers, or one for a client that has none. */
    private Map<ProcessId, Map<String, Optional<String>>> racks() {
        Map<ProcessId, Map<String, Optional<String>>> racks = new HashMap<>();
        for (JsonNode client : question.get("clients")) {
            Map<String, Optional<String>> own = new HashMap<>();
            own.put("consumer", Optional.ofNullable(client.path("rack").textValue()));
            racks.put(process(name(client)), own);
        }
        return racks;
    }

    RackAwareTaskAssignor rackAware(AssignmentConfigs with) {
        Map<Subtopology, Set<TaskId>> groups = new HashMap<>();
        all().forEach(task -> groups.computeIfAbsent(
            new Subtopology(task.subtopology(), task.topologyName()), __ -> new HashSet<>()).add(task));
        return new RackAwareTaskAssignor(
            cluster(), partitionsForTask, changelogsForTask, groups, racks(), new Topics(), with, Time.SYSTEM);
    }

    private Cluster cluster() {
        Set<PartitionInfo> infos = new HashSet<>();
        Map<String, Node> nodes = new TreeMap<>();
        inputs.values().forEach(parts -> parts.forEach(part -> {
            Node[] replicas = replicas(part, nodes).toArray(Node[]::new);
            infos.add(new PartitionInfo(part.partition().topic(), part.partition().partition(),
                replicas.length == 0 ? null : replicas[0], replicas, replicas));
        }));
        return new Cluster("cluster", nodes.values(), infos, Set.of(), Set.of());
    }

    private static List<Node> replicas(Part part, Map<String, Node> nodes) {
        if (part.racks() == null) {
            return List.of(nodes.computeIfAbsent("", __ -> new Node(nodes.size(), "rackless", 1)));
        }
        Function<String, Node> node = rack -> nodes.computeIfAbsent(
            rack, __ -> new Node(nodes.size(), "host-" + rack, 1, rack));
        return part.racks().stream().map(node).toList();
    }

    /** Describes topics as a cluster would that has the changelogs of the case. */
    private final class Topics extends InternalTopicManager {

        Topics() {
            super(Time.SYSTEM, (Admin) null, new StreamsConfig(Map.of(
                StreamsConfig.APPLICATION_ID_CONFIG, "oracle", StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1")));
        }

        @Override
        public Map<String, List<TopicPartitionInfo>> getTopicPartitionInfo(Set<String> topics) {
            Map<String, List<TopicPartitionInfo>> found = new HashMap<>();
            Map<String, Node> nodes = new TreeMap<>();
            for (Map<TaskId, List<Part>> kind : List.of(inputs, changelogs)) {
                kind.values().forEach(parts -> parts.forEach(part -> {
                    if (topics.contains(part.partition().topic())) {
                        List<Node> replicas = replicas(part, nodes);
                        found.computeIfAbsent(part.partition().topic(), __ -> new ArrayList<>()).add(
                            new TopicPartitionInfo(part.partition().partition(),
                                replicas.isEmpty() ? null : replicas.get(0), replicas, replicas));
                    }
                }));
            }
            return found;
        }
    }

    /** The placement that the case gives, into states that have nothing yet. */
    void give(Map<ProcessId, ClientState> states) {
        question.path("given").properties().forEach(entry -> {
            ClientState state = states.get(process(entry.getKey()));
            new TreeSet<>(tasks(entry.getValue().path("active"))).forEach(state::assignActive);
            if (!question.path("assignor").asText().equals("optimize-active")) {
                new TreeSet<>(tasks(entry.getValue().path("standby"))).forEach(state::assignStandby);
            }
        });
    }
}
