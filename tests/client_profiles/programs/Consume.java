import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One Java consumer with the library's own defaults, until SIGTERM: {@code java Consume BOOTSTRAP GROUP TOPIC
 * CLIENT_ID}. WORK_MS in the environment: how long it works on each record.
 */
public final class Consume {
    private Consume() {}

    public static void main(String[] arguments) throws InterruptedException {
        Properties options = new Properties();
        options.put("bootstrap.servers", arguments[0]);
        options.put("group.id", arguments[1]);
        options.put("client.id", arguments[3]);
        long workMs = Long.parseLong(System.getenv().getOrDefault("WORK_MS", "0"));
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(options, bytes, bytes);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(consumer, main)));
        try (consumer) {
            consumer.subscribe(List.of(arguments[2]));
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    Thread.sleep(workMs);
                }
            }
        } catch (org.apache.kafka.common.errors.WakeupException ended) {
            // the end that was asked for
        }
    }

    private static void end(KafkaConsumer<byte[], byte[]> consumer, Thread main) {
        consumer.wakeup();
        try {
            main.join(10_000);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
