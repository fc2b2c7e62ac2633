package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/** The cluster's topics as the script has set them, and Kafka's metadata image of them. */
final class Topics {

    private static final int BROKERS = 4;

    private final Map<String, Integer> partitions = new TreeMap<>();
    private final Map<Uuid, String> names = new HashMap<>();
    private MetadataImage image = MetadataImage.EMPTY;
    private MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    private long changes = 0;

    /** Brokers 0 to 3, each in a rack of its own where the scenario wants racks. */
    Topics(boolean racks) {
        for (int broker = 0; broker < BROKERS; broker++) {
            delta.replay(new RegisterBrokerRecord().setBrokerId(broker).setRack(racks ? "rack" + broker : null));
        }
    }

    /** A number of partitions in a script. */
    static int count(JsonNode value) {
        int count = Step.int32("topics", value);
        if (count < 1) {
            throw new InvalidStep("topics: " + count + " is no number of partitions");
        }
        return count;
    }

    /** Topic to number of partitions, sorted by name. */
    Map<String, Integer> partitions() {
        return partitions;
    }

    /** The topic has at least this many partitions from the next {@link #apply} on; Kafka's topics never shrink. */
    void set(String topic, int count) {
        Integer before = partitions.put(topic, count);
        names.put(id(topic), topic);
        if (before == null) {
            delta.replay(new TopicRecord().setName(topic).setTopicId(id(topic)));
        }
        for (int number = before == null ? 0 : before; number < count; number++) {
            delta.replay(new PartitionRecord().setTopicId(id(topic)).setPartitionId(number)
                .setReplicas(List.of(number % BROKERS, (number + 1) % BROKERS)).setLeader(number % BROKERS));
        }
    }

    void remove(String topic) {
        if (partitions.remove(topic) != null) {
            delta.replay(new RemoveTopicRecord().setTopicId(id(topic)));
        }
    }

    /** Takes the changes up into the image; the delta tells the coordinator what they were. */
    MetadataDelta apply() {
        MetadataDelta applied = delta;
        image = delta.apply(new MetadataProvenance(++changes, 0, 0, true));
        delta = new MetadataDelta.Builder().setImage(image).build();
        return applied;
    }

    MetadataImage image() {
        return image;
    }

    /** The id of an existing topic; the zero id of others. */
    Uuid idOf(String topic) {
        return partitions.containsKey(topic) ? id(topic) : Uuid.ZERO_UUID;
    }

    /** The name behind an id, of any topic that a script has had. */
    String name(Uuid id) {
        return names.getOrDefault(id, id.toString());
    }

    static Uuid id(String topic) {
        var id = DrawnUuids.of("topic:" + topic);
        return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }
}
