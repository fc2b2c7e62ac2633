package groupstorm.oracle.assignors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue.TopicPartition;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.ModernGroup;
import org.apache.kafka.coordinator.group.modern.SubscriptionCount;
import org.apache.kafka.coordinator.group.modern.TopicIds;

/** A case of `groupstorm assign --mode server`, answered by the broker's assignors. */
public final class ServerAssignors {

    private ServerAssignors() {
    }

    /** The answer as groupstorm gives it; what Kafka throws is its simple name and its message. */
    public static JsonNode answer(JsonNode question) {
        try {
            var topics = new Topics(question.get("topics"));
            Map<String, MemberSubscriptionAndAssignmentImpl> members = members(question, topics);
            var group = new GroupSpecImpl(Collections.unmodifiableMap(members), type(question), inverted(members));
            return told(question, topics, members, assignor(question).assign(group, topics).members());
        } catch (RuntimeException | Error thrown) {
            return Fields.refusal(question.get("id"), thrown);
        }
    }

    private static ConsumerGroupPartitionAssignor assignor(JsonNode question) {
        String name = question.get("assignor").textValue();
        return switch (name) {
            case "uniform" -> new UniformAssignor();
            case "range" -> new RangeAssignor();
            default -> throw new IllegalArgumentException("no assignor of the broker: " + name);
        };
    }

    /** As TargetAssignmentBuilder hands them on: a HashMap, here filled in the order of the case. */
    private static Map<String, MemberSubscriptionAndAssignmentImpl> members(JsonNode question, Topics topics) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            Set<String> names = new HashSet<>(Fields.texts(member.get("topics")));
            members.put(member.get("id").textValue(), new MemberSubscriptionAndAssignmentImpl(
                Fields.text(member, "rack"), Fields.text(member, "instance"), new TopicIds(names, topics),
                target(member.path("target"), topics)));
        }
        return members;
    }

    /** Read as from the record that holds it. Topics that do not exist have no id to be held by. */
    private static Assignment target(JsonNode target, Topics topics) {
        var record = new ConsumerGroupTargetAssignmentMemberValue();
        for (Map.Entry<String, JsonNode> entry : target.properties()) {
            Set<Integer> partitions = new LinkedHashSet<>();
            entry.getValue().forEach(partition -> partitions.add(partition.intValue()));
            if (topics.id(entry.getKey()) != null) {
                record.topicPartitions().add(new TopicPartition()
                    .setTopicId(topics.id(entry.getKey())).setPartitions(List.copyOf(partitions)));
            }
        }
        return Assignment.fromRecord(record);
    }

    /** The group's own rule, on how many members subscribe to each name. */
    private static SubscriptionType type(JsonNode question) {
        Map<String, Set<String>> topicsOf = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            topicsOf.put(member.get("id").textValue(), new HashSet<>(Fields.texts(member.get("topics"))));
        }
        Map<String, SubscriptionCount> counts = new HashMap<>();
        topicsOf.values().forEach(names -> names.forEach(name ->
            counts.compute(name, SubscriptionCount::incNameCount)));
        return ModernGroup.subscriptionType(counts, topicsOf.size());
    }

    private static Map<Uuid, Map<Integer, String>> inverted(Map<String, MemberSubscriptionAndAssignmentImpl> members) {
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        members.forEach((id, member) -> member.partitions().forEach((topic, partitions) -> partitions.forEach(
            partition -> inverted.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, id))));
        return inverted;
    }

    private static JsonNode told(
        JsonNode question, Topics topics, Map<String, MemberSubscriptionAndAssignmentImpl> members,
        Map<String, MemberAssignment> assigned
    ) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.set("id", question.get("id"));
        ObjectNode lists = answer.putObject("assignment");
        ObjectNode records = JsonNodeFactory.instance.objectNode();
        for (JsonNode member : question.get("members")) {
            String id = member.get("id").textValue();
            MemberAssignment given = assigned.get(id);
            Map<Uuid, Set<Integer>> target = given == null ? Map.of() : given.partitions();
            lists.set(id, sorted(target, topics));
            if (!target.equals(members.get(id).partitions())) {
                records.set(id, record(target, topics));
            }
        }
        if (question.path("emit_records").asBoolean()) {
            answer.set("records", records);
        }
        return answer;
    }

    private static ArrayNode sorted(Map<Uuid, Set<Integer>> target, Topics topics) {
        var byName = new TreeMap<String, Set<Integer>>();
        target.forEach((topic, partitions) -> byName.put(topics.name(topic), new TreeSet<>(partitions)));
        ArrayNode list = JsonNodeFactory.instance.arrayNode();
        byName.forEach((name, partitions) ->
            partitions.forEach(partition -> list.addArray().add(name).add(partition)));
        return list;
    }

    /** Topics and partitions in the order of the tables, which is that of the record. */
    private static ArrayNode record(Map<Uuid, Set<Integer>> target, Topics topics) {
        ArrayNode list = JsonNodeFactory.instance.arrayNode();
        target.forEach((topic, partitions) -> {
            ArrayNode numbers = list.addArray().add(topics.name(topic)).addArray();
            partitions.forEach(numbers::add);
        });
        return list;
    }

    /** The topics of a case, by name and by id. */
    private static final class Topics implements TopicIds.TopicResolver, SubscribedTopicDescriber {

        private final Map<String, Uuid> ids = new LinkedHashMap<>();
        private final Map<Uuid, String> names = new HashMap<>();
        private final Map<Uuid, Integer> counts = new HashMap<>();

        Topics(JsonNode topics) {
            for (Map.Entry<String, JsonNode> topic : topics.properties()) {
                Uuid id = Uuid.fromString(topic.getValue().get("id").textValue());
                ids.put(topic.getKey(), id);
                names.put(id, topic.getKey());
                counts.put(id, topic.getValue().get("partitions").intValue());
            }
        }

        @Override
        public CoordinatorMetadataImage image() {
            return CoordinatorMetadataImage.EMPTY;
        }

        @Override
        public String name(Uuid id) {
            return names.get(id);
        }

        @Override
        public Uuid id(String name) {
            return ids.get(name);
        }

        @Override
        public void clear() {
            // nothing is cached
        }

        @Override
        public int numPartitions(Uuid topicId) {
            return counts.getOrDefault(topicId, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            return Set.of();
        }
    }
}
