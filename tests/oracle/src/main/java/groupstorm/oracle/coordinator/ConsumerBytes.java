package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Utils;

/** Subscriptions and assignments as Kafka's consumer writes them. */
final class ConsumerBytes {

    private static final short ASSIGNMENT_VERSION = 1;

    private ConsumerBytes() {
    }

    /** A subscription object of a script, in bytes. */
    static byte[] subscription(JsonNode object, String label, Clients clients) {
        Step fields = new Step(object);
        List<String> topics = new ArrayList<>();
        if (fields.has("topics")) {
            Step.elements("topics", fields.value("topics")).forEachRemaining(topic -> {
                if (!topic.isTextual()) {
                    throw new InvalidStep("topics: " + topic + " is no topic");
                }
                topics.add(topic.textValue());
            });
        }
        int generation = fields.has("generation")
            ? clients.number("generation", label, fields.value("generation"), client -> client.generation) : -1;
        var subscription = new Subscription(topics, null, owned(fields, clients.get(label)), generation,
            Optional.ofNullable(fields.optionalText("rack", null)));
        int version = fields.int32("version", 1);
        if (version != (short) version) {
            throw new InvalidStep("version: " + version + " is no version");
        }
        try {
            return Utils.toArray(ConsumerProtocol.serializeSubscription(subscription, (short) version));
        } catch (KafkaException problem) {
            throw new InvalidStep("protocols: " + problem.getMessage());
        }
    }

    /** Owned partitions by topic; "$": those of the client's last sync answer. */
    private static List<TopicPartition> owned(Step fields, Client client) {
        JsonNode value = fields.value("owned");
        if (value.isTextual() && value.textValue().equals("$")) {
            return lastAssignment(client);
        }
        List<TopicPartition> owned = new ArrayList<>();
        for (Map.Entry<String, JsonNode> entry : fields.entries("owned")) {
            Iterator<JsonNode> numbers = Step.elements("owned", entry.getValue());
            while (numbers.hasNext()) {
                owned.add(new TopicPartition(entry.getKey(), Step.int32("owned", numbers.next())));
            }
        }
        return owned;
    }

    private static List<TopicPartition> lastAssignment(Client client) {
        if (client.assignment == null || client.assignment.length == 0) {
            return List.of();
        }
        try {
            return ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(client.assignment)).partitions();
        } catch (RuntimeException notAnAssignment) {
            return List.of();
        }
    }

    static byte[] assignment(List<TopicPartition> partitions) {
        var assignment = new Assignment(partitions, null);
        return Utils.toArray(ConsumerProtocol.serializeAssignment(assignment, ASSIGNMENT_VERSION));
    }
}
