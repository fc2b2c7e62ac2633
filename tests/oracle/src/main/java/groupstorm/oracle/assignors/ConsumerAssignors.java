package groupstorm.oracle.assignors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Utils;

/** A case of `groupstorm assign`, answered by the assignors of Kafka's consumer. */
public final class ConsumerAssignors {

    private static final int BROKER_PORT = 9092;

    private static final Comparator<TopicPartition> BY_NAME =
        Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition);

    private ConsumerAssignors() {
    }

    /** The answer as `groupstorm assign` gives it; what Kafka throws is its simple name and its message. */
    public static JsonNode answer(JsonNode question) {
        try {
            AbstractPartitionAssignor assignor = assignor(question);
            var group = new GroupSubscription(subscriptions(question));
            return told(question, assignor, assignor.assign(cluster(question), group).groupAssignment());
        } catch (RuntimeException | Error thrown) {
            return Fields.refusal(question.get("id"), thrown);
        }
    }

    private static AbstractPartitionAssignor assignor(JsonNode question) {
        String name = question.get("assignor").textValue();
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException("no assignor of Kafka's consumer: " + name);
        };
    }

    /** One broker in each rack; where a topic tells no racks its partitions have no replicas. */
    static Cluster cluster(JsonNode question) {
        Map<String, Node> brokers = new LinkedHashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (Map.Entry<String, JsonNode> topic : question.get("topics").properties()) {
            JsonNode racks = topic.getValue().path("racks");
            for (int number = 0; number < topic.getValue().get("partitions").intValue(); number++) {
                Node[] replicas = Fields.texts(racks.path(number)).stream()
                    .map(rack -> brokers.computeIfAbsent(rack, __ -> broker(brokers.size(), rack)))
                    .toArray(Node[]::new);
                Node leader = replicas.length == 0 ? null : replicas[0];
                partitions.add(new PartitionInfo(topic.getKey(), number, leader, replicas, replicas));
            }
        }
        return new Cluster("cluster", brokers.values(), partitions, Set.of(), Set.of());
    }

    private static Node broker(int id, String rack) {
        return new Node(id, "localhost", BROKER_PORT, rack);
    }

    /** As the leader has them: a HashMap, filled in the order of the case. */
    private static Map<String, Subscription> subscriptions(JsonNode question) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            subscriptions.put(member.get("id").textValue(), subscription(question, member));
        }
        return subscriptions;
    }

    private static Subscription subscription(JsonNode question, JsonNode member) {
        int generation = Fields.number(member, "generation", -1);
        var subscription = new Subscription(Fields.texts(member.get("topics")), userData(question, member, generation),
            Fields.partitions(member, "owned"), generation, Fields.text(member, "rack"));
        JsonNode from = Fields.has(member, "version") ? member : question;
        if (Fields.has(from, "version")) {
            short version = (short) Fields.number(from, "version", 0);
            subscription = ConsumerProtocol.deserializeSubscription(
                ConsumerProtocol.serializeSubscription(subscription, version));
        }
        subscription.setGroupInstanceId(Fields.text(member, "instance"));
        return subscription;
    }

    /** Raw bytes, or what the member's own assignor sends after it was assigned that. */
    private static ByteBuffer userData(JsonNode question, JsonNode member, int generation) {
        if (Fields.has(member, "userdata_hex")) {
            return ByteBuffer.wrap(HexFormat.of().parseHex(member.get("userdata_hex").textValue()));
        }
        if (!Fields.has(member, "userdata_owned") && !Fields.has(member, "userdata_generation")) {
            return null;
        }
        AbstractPartitionAssignor own = assignor(question);
        int last = Fields.number(member, "userdata_generation", generation);
        own.onAssignment(new Assignment(Fields.partitions(member, "userdata_owned")),
            new ConsumerGroupMetadata("group", last, "member", Optional.empty()));
        return own.subscriptionUserData(new HashSet<>(Fields.texts(member.get("topics"))));
    }

    private static JsonNode told(
        JsonNode question, AbstractPartitionAssignor assignor, Map<String, Assignment> assignments
    ) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.set("id", question.get("id"));
        ObjectNode lists = answer.putObject("assignment");
        ObjectNode bytes = JsonNodeFactory.instance.objectNode();
        for (JsonNode member : question.get("members")) {
            String id = member.get("id").textValue();
            Assignment assignment = assignments.get(id);
            lists.set(id, Fields.list(assignment.partitions()));
            bytes.put(id, HexFormat.of().formatHex(Utils.toArray(ConsumerProtocol.serializeAssignment(assignment))));
        }
        if (assignor instanceof AbstractStickyAssignor sticky) {
            tellForm(answer, sticky);
        }
        if (question.path("emit_bytes").asBoolean()) {
            answer.set("bytes", bytes);
        }
        return answer;
    }

    /** Which form ran, what it saw changing hands, and the highest generation that it saw. */
    private static void tellForm(ObjectNode answer, AbstractStickyAssignor sticky) {
        Map<TopicPartition, String> transferring = sticky.partitionsTransferringOwnership();
        answer.put("constrained", transferring != null);
        if (transferring != null) {
            var byMember = new TreeMap<String, TreeSet<TopicPartition>>();
            transferring.forEach((partition, member) ->
                byMember.computeIfAbsent(member, __ -> new TreeSet<>(BY_NAME)).add(partition));
            ObjectNode told = answer.putObject("transferring");
            byMember.forEach((member, partitions) -> told.set(member, Fields.list(partitions)));
        }
        answer.put("max_generation", sticky.maxGeneration());
    }
}
