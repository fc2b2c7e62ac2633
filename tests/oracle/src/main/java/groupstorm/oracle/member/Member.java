package groupstorm.oracle.member;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** An application around one KafkaConsumer: it polls until it is told to close or poll() throws, then it closes. */
final class Member {

    private static final Duration POLL = Duration.ofMillis(20);

    private final Thread thread = new Thread(this::live, "application");
    private final Consumer<Map<String, Object>> events;
    private final Properties config = new Properties();
    private final List<String> topics = new ArrayList<>();
    private boolean polls = true;
    private boolean closes;

    Member(JsonNode order, Consumer<Map<String, Object>> events) {
        this.events = events;
        order.get("config").properties().forEach(field -> config.put(field.getKey(), field.getValue().asText()));
        order.get("topics").forEach(topic -> topics.add(topic.asText()));
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    synchronized void leavePoll() {
        polls = false;
    }

    synchronized void enterPoll() {
        polls = true;
        notifyAll();
    }

    synchronized void close() {
        closes = true;
        notifyAll();
    }

    void kill() throws InterruptedException {
        close();
        thread.join(Duration.ofSeconds(1).toMillis());
    }

    private void live() {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            consumer.subscribe(topics, new Listener(events));
            while (waitsToPoll()) {
                consumer.poll(POLL);
            }
        } catch (KafkaException | IllegalStateException problem) {
            events.accept(Map.of("event", "failed", "error", nameOf(problem)));
        } catch (InterruptedException impossible) {
            Thread.currentThread().interrupt();
        }
        events.accept(Map.of("event", "ended"));
    }

    private synchronized boolean waitsToPoll() throws InterruptedException {
        while (!polls && !closes) {
            wait();
        }
        return !closes;
    }

    /** Kafka's name of the error; an exception that stands for none is called by its class. */
    private static String nameOf(RuntimeException problem) {
        return problem instanceof KafkaException ? Errors.forException(problem).name() : problem.getClass().getSimpleName();
    }
}
