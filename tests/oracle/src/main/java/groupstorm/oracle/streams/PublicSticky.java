package groupstorm.oracle.streams;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultKafkaStreamsState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskTopicPartition;

/** KIP-924's assignor. Tasks hash by their ids: Kafka's own hash by identity, and its answers vary with that. */
final class PublicSticky {

    private PublicSticky() {
    }

    /** Whether another rebalance is asked for. */
    static boolean assign(StreamsCase asked, Map<ProcessId, ClientState> states) {
        Collection<KafkaStreamsAssignment> found =
            new StickyTaskAssignor(asked.mustPreserveActive()).assign(new State(asked, states)).assignment();
        found.forEach(assignment -> states.get(assignment.processId()).setAssignedTasks(assignment));
        return found.stream().anyMatch(assignment -> assignment.followupRebalanceDeadline().isPresent());
    }

    private static final class State implements ApplicationState {

        private final AssignmentConfigs configs;
        private final Map<TaskId, TaskInfo> tasks = new HashMap<>();
        private final Map<ProcessId, KafkaStreamsState> clients = new HashMap<>();

        State(StreamsCase asked, Map<ProcessId, ClientState> states) {
            configs = asked.configs;
            asked.all().forEach(task -> tasks.put(task, new Info(task, asked)));
            Map<ProcessId, Optional<String>> racks = new HashMap<>();
            for (JsonNode client : asked.question.get("clients")) {
                racks.put(StreamsCase.process(StreamsCase.name(client)),
                    Optional.ofNullable(client.path("rack").textValue()));
            }
            states.forEach((id, state) -> clients.put(id, new DefaultKafkaStreamsState(
                id, state.capacity(), state.clientTags(), state.previousActiveTasks(), state.previousStandbyTasks(),
                state.taskIdsByPreviousConsumer(), Optional.empty(), Optional.empty(), racks.get(id))));
        }

        @Override
        public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
            return clients;
        }

        @Override
        public AssignmentConfigs assignmentConfigs() {
            return configs;
        }

        @Override
        public Map<TaskId, TaskInfo> allTasks() {
            return tasks;
        }
    }

    private static final class Info implements TaskInfo {

        private final TaskId id;
        private final boolean stateful;
        private final Set<TaskTopicPartition> partitions = new HashSet<>();

        Info(TaskId id, StreamsCase asked) {
            this.id = id;
            this.stateful = asked.stateful.contains(id);
            Set<TopicPartition> changelogs = new HashSet<>();
            asked.changelogs.get(id).forEach(part -> changelogs.add(part.partition()));
            asked.inputs.get(id).forEach(part -> add(part, true, changelogs.contains(part.partition())));
            asked.changelogs.get(id).forEach(part -> {
                if (!asked.partitionsForTask.get(id).contains(part.partition())) {
                    add(part, false, true);
                }
            });
        }

        private void add(StreamsCase.Part part, boolean source, boolean changelog) {
            var partition = new DefaultTaskTopicPartition(part.partition(), source, changelog, () -> { });
            if (part.racks() != null) {
                partition.annotateWithRackIds(new HashSet<>(part.racks()));
            }
            partitions.add(partition);
        }

        @Override
        public TaskId id() {
            return id;
        }

        @Override
        public boolean isStateful() {
            return stateful;
        }

        @Override
        public Set<String> stateStoreNames() {
            return Set.of();
        }

        @Override
        public Set<TaskTopicPartition> topicPartitions() {
            return partitions;
        }

        @Override
        public int hashCode() {
            return id.hashCode();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Info info && info.id.equals(id);
        }
    }
}
