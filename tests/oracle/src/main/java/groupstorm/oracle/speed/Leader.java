package groupstorm.oracle.speed;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;

/** The part of ConsumerCoordinator.onLeaderElected that costs: read all subscriptions, assign, write all assignments. */
final class Leader {

    private final ConsumerPartitionAssignor assignor;
    private final Cluster cluster;
    private final Map<String, byte[]> members;
    private Map<String, ByteBuffer> answer;

    Leader(String name, Cluster cluster, Map<String, byte[]> members) {
        this.assignor = switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException("Kafka has no assignor " + name);
        };
        this.cluster = cluster;
        this.members = members;
    }

    void assign() {
        Map<String, Subscription> subscriptions = new HashMap<>();
        members.forEach((member, bytes) ->
            subscriptions.put(member, ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(bytes))));
        Map<String, Assignment> assigned =
            assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        Map<String, ByteBuffer> written = new HashMap<>();
        assigned.forEach((member, assignment) ->
            written.put(member, ConsumerProtocol.serializeAssignment(assignment)));
        answer = written;
    }

    /** Over member ids, in their order, and what each gets; ids and assignments with their lengths in front. */
    String digest() throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        new TreeMap<>(answer).forEach((member, bytes) -> {
            add(digest, ByteBuffer.wrap(member.getBytes(StandardCharsets.UTF_8)));
            add(digest, bytes.duplicate());
        });
        return HexFormat.of().formatHex(digest.digest());
    }

    private static void add(MessageDigest digest, ByteBuffer bytes) {
        digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(0, bytes.remaining()));
        digest.update(bytes);
    }
}
