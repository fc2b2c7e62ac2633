package groupstorm.oracle.speed;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/** Kafka's view of the topics. The last one is kept: the rounds of one group have it in common, and it is large. */
final class Clusters {

    private Map<String, Integer> lastTopics = Map.of();
    private Cluster last = Cluster.empty();

    Cluster of(Map<String, Integer> topics) {
        if (!topics.equals(lastTopics)) {
            last = make(topics);
            lastTopics = topics;
        }
        return last;
    }

    private static Cluster make(Map<String, Integer> topics) {
        Node node = new Node(0, "localhost", 9092);
        Node[] replicas = {node};
        Collection<PartitionInfo> partitions = new ArrayList<>();
        topics.forEach((topic, count) -> {
            for (int partition = 0; partition < count; partition++) {
                partitions.add(new PartitionInfo(topic, partition, node, replicas, replicas));
            }
        });
        return new Cluster("speed", List.of(node), partitions, Set.of(), Set.of());
    }
}
