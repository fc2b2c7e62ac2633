import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A service on Kafka's Java client for chaos runs: {@code java Service careful|commits-first|auto-commit}.
 *
 * <p>It processes each record for 20 ms and writes its number into the output topic. With auto-commit a thread
 * of its own processes the records, and the consumer commits what it has polled: what a service that hands its
 * records over to a thread pool does by default.
 */
public final class Service {
    private static final Duration POLL = Duration.ofMillis(200);

    private final String mode;
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final List<Thread> threads = new ArrayList<>();

    private Service(String mode) {
        this.mode = mode;
        Properties options = new Properties();
        options.put("bootstrap.servers", told("BOOTSTRAP_SERVERS"));
        options.put("client.id", told("CLIENT_ID"));
        producer = new KafkaProducer<>(options, new StringSerializer(), new StringSerializer());
        options.put("group.id", told("GROUP_ID"));
        options.put("auto.offset.reset", "earliest");
        options.put("session.timeout.ms", "6000");
        options.put("heartbeat.interval.ms", "500");
        options.put("max.poll.records", "20");
        options.put("enable.auto.commit", String.valueOf(mode.equals("auto-commit")));
        options.put("auto.commit.interval.ms", "100");
        consumer = new KafkaConsumer<>(options, new StringDeserializer(), new StringDeserializer());
    }

    public static void main(String[] arguments) {
        Service service = new Service(arguments[0]);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            service.consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        service.run();
    }

    private static String told(String name) {
        return System.getenv("GROUPSTORM_" + name);
    }

    private void run() {
        consumer.subscribe(Arrays.asList(told("TOPICS").split(",")));
        try {
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(POLL);
                if (records.isEmpty()) {
                    continue;
                }
                if (mode.equals("auto-commit")) {
                    Thread thread = new Thread(() -> process(records));
                    thread.setDaemon(true);
                    threads.add(thread);
                    thread.start();
                } else if (mode.equals("commits-first")) {
                    commit();
                    process(records);
                } else {
                    process(records);
                    commit();
                }
            }
        } catch (WakeupException stopping) {
            // SIGTERM
        } finally {
            consumer.close();
            producer.close();
        }
    }

    private void process(Iterable<ConsumerRecord<String, String>> records) {
        List<Future<?>> written = new ArrayList<>();
        try {
            for (ConsumerRecord<String, String> record : records) {
                Thread.sleep(20);
                ProducerRecord<String, String> output =
                        new ProducerRecord<>(told("OUTPUT_TOPIC"), record.value(), null);
                output.headers().add("by", told("CLIENT_ID").getBytes(StandardCharsets.UTF_8));
                written.add(producer.send(output));
            }
            for (Future<?> one : written) {
                one.get();
            }
        } catch (InterruptedException | java.util.concurrent.ExecutionException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private void commit() {
        try {
            consumer.commitSync();
        } catch (CommitFailedException | RebalanceInProgressException notNow) {
            System.out.println("not committed: " + notNow.getClass().getSimpleName());
        }
    }
}
