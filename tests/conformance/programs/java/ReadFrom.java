import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads partition 0 from each offset up to its end: {@code java ReadFrom BOOTSTRAP TOPIC ISOLATION_LEVEL}. A
 * line for each offset in front of the end: {@code START END OFFSET:KEY=VALUE...}; END is the position at last.
 */
public final class ReadFrom {
    private ReadFrom() {}

    public static void main(String[] arguments) {
        Properties options = new Properties();
        options.put("bootstrap.servers", arguments[0]);
        options.put("isolation.level", arguments[2]);
        StringDeserializer text = new StringDeserializer();
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(options, text, text)) {
            consumer.assign(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            for (long start = 0; start < end; start++) {
                consumer.seek(partition, start);
                StringBuilder read = new StringBuilder();
                while (consumer.position(partition) < end) {
                    for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(100))) {
                        read.append(" ").append(one.offset()).append(":");
                        read.append(one.key()).append("=").append(one.value());
                    }
                }
                System.out.println(start + " " + consumer.position(partition) + read);
            }
        }
    }
}
