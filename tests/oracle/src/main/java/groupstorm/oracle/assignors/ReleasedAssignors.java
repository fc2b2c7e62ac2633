package groupstorm.oracle.assignors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;

/**
 * A case of `groupstorm assign`, answered by the consumer assignors of whichever release of kafka-clients comes
 * first on the class path. Compiled against the newest one, so it keeps to what all of them have: members bring
 * their subscriptions as bytes (`subscription_hex`), and before 2.4, where the interface was another, calls
 * go by name.
 */
public final class ReleasedAssignors {

    private static final String CONSUMER = "org.apache.kafka.clients.consumer.";

    private ReleasedAssignors() {
    }

    /** The lists as the assignor gives them; what it throws is its simple name and its message. */
    public static JsonNode answer(JsonNode question) throws Exception {
        Object assignor = assignor(question.get("assignor").textValue());
        Cluster cluster = ConsumerAssignors.cluster(question);
        Map<String, ByteBuffer> sent = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            byte[] bytes = HexFormat.of().parseHex(member.get("subscription_hex").textValue());
            sent.put(member.get("id").textValue(), ByteBuffer.wrap(bytes));
        }
        try {
            var given = isOfKip429(assignor)
                ? Since24.assign(assignor, cluster, sent) : Before24.assign(assignor, cluster, sent);
            return told(question, given);
        } catch (RuntimeException | Error thrown) {
            return Fields.refusal(question.get("id"), thrown);
        }
    }

    private static Object assignor(String name) throws ReflectiveOperationException {
        String simple = switch (name) {
            case "range" -> "RangeAssignor";
            case "roundrobin" -> "RoundRobinAssignor";
            case "sticky" -> "StickyAssignor";
            case "cooperative-sticky" -> "CooperativeStickyAssignor";
            default -> throw new IllegalArgumentException("no assignor of Kafka's consumer: " + name);
        };
        return Class.forName(CONSUMER + simple).getConstructor().newInstance();
    }

    /** ConsumerPartitionAssignor is of 2.4 (KIP-429); the newest jar has it, behind the old one. */
    private static boolean isOfKip429(Object assignor) {
        return assignor instanceof ConsumerPartitionAssignor;
    }

    private static JsonNode told(JsonNode question, Map<String, ? extends Collection<TopicPartition>> given) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.set("id", question.get("id"));
        ObjectNode lists = answer.putObject("assignment");
        for (JsonNode member : question.get("members")) {
            String id = member.get("id").textValue();
            lists.set(id, Fields.list(given.get(id)));
        }
        return answer;
    }

    private static final class Since24 {

        static Map<String, Collection<TopicPartition>> assign(
            Object assignor, Cluster cluster, Map<String, ByteBuffer> sent
        ) {
            Map<String, Subscription> subscriptions = new HashMap<>();
            sent.forEach((id, bytes) -> subscriptions.put(id, ConsumerProtocol.deserializeSubscription(bytes)));
            Map<String, Assignment> answer = ((ConsumerPartitionAssignor) assignor)
                .assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
            Map<String, Collection<TopicPartition>> given = new HashMap<>();
            answer.forEach((id, assignment) -> given.put(id, assignment.partitions()));
            return given;
        }
    }

    /** PartitionAssignor.assign(Cluster, Map of Subscription), and Assignment.partitions(). */
    private static final class Before24 {

        static Map<String, Collection<TopicPartition>> assign(
            Object assignor, Cluster cluster, Map<String, ByteBuffer> sent
        ) throws ReflectiveOperationException {
            var read = ConsumerProtocol.class.getMethod("deserializeSubscription", ByteBuffer.class);
            Map<String, Object> subscriptions = new HashMap<>();
            for (Map.Entry<String, ByteBuffer> member : sent.entrySet()) {
                subscriptions.put(member.getKey(), read.invoke(null, member.getValue()));
            }
            var assign = assignor.getClass().getMethod("assign", Cluster.class, Map.class);
            Map<String, Collection<TopicPartition>> given = new HashMap<>();
            for (Map.Entry<?, ?> one : ((Map<?, ?>) invoke(assign, assignor, cluster, subscriptions)).entrySet()) {
                given.put((String) one.getKey(), partitions(one.getValue()));
            }
            return given;
        }

        private static Collection<TopicPartition> partitions(Object assignment) throws ReflectiveOperationException {
            Collection<TopicPartition> typed = new ArrayList<>();
            var partitions = assignment.getClass().getMethod("partitions");
            ((Collection<?>) partitions.invoke(assignment)).forEach(one -> typed.add((TopicPartition) one));
            return typed;
        }

        private static Object invoke(Method method, Object on, Object... arguments)
            throws ReflectiveOperationException {
            try {
                return method.invoke(on, arguments);
            } catch (InvocationTargetException wrapped) {
                if (wrapped.getCause() instanceof RuntimeException thrown) {
                    throw thrown;
                }
                throw wrapped;
            }
        }
    }
}
