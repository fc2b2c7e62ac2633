package groupstorm.oracle.member;

import java.util.Collection;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.common.TopicPartition;

/** Tells of each call, its partitions in the order in which they come. */
final class Listener implements ConsumerRebalanceListener {

    private final Consumer<Map<String, Object>> events;

    Listener(Consumer<Map<String, Object>> events) {
        this.events = events;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tell("onPartitionsAssigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        tell("onPartitionsRevoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        tell("onPartitionsLost", partitions);
    }

    private void tell(String callback, Collection<TopicPartition> partitions) {
        events.accept(Map.of("event", callback, "partitions", partitions.stream().map(TopicPartition::toString).toList()));
    }
}
