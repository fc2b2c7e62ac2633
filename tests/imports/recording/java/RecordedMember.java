import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Iterator;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A process with one Java consumer of any release from 2.8 on: the commands and reports of the worker processes
 * of `--with java`, as far as a recording needs them.
 */
public final class RecordedMember implements Runnable, ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** The pipe to the parent. What a library prints goes to standard error instead. */
    private static final PrintStream REPORTS = System.out;

    private final JsonNode order;
    private volatile boolean stopping;
    private volatile double busySeconds;

    private RecordedMember(JsonNode order) {
        this.order = order;
    }

    public static void main(String[] arguments) throws IOException {
        System.setOut(System.err);
        report("ready", "", JSON.createObjectNode());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        RecordedMember member = null;
        String line;
        while ((line = input.readLine()) != null) {
            JsonNode command = JSON.readTree(line);
            switch (command.get("do").asText()) {
                case "start":
                    member = new RecordedMember(command);
                    Thread thread = new Thread(member, "member");
                    thread.setDaemon(true);
                    thread.start();
                    break;
                case "busy":
                    member.busySeconds = command.get("for_s").asDouble();
                    break;
                default:
                    member.stopping = true;
            }
        }
        Runtime.getRuntime().halt(0); // the parent is gone: the consumer need not say goodbye
    }

    private static synchronized void report(String event, String member, ObjectNode about) {
        about.put("t", System.nanoTime()); // CLOCK_MONOTONIC, as in all processes of this machine
        about.put("event", event);
        about.put("member", member);
        REPORTS.println(about);
        REPORTS.flush();
    }

    private void report(String event, ObjectNode about) {
        report(event, order.get("member").asText(), about);
    }

    @Override
    public void run() {
        Properties config = new Properties();
        for (Iterator<Map.Entry<String, JsonNode>> all = order.get("config").fields(); all.hasNext(); ) {
            Map.Entry<String, JsonNode> option = all.next();
            config.put(option.getKey(), option.getValue().asText());
        }
        List<String> topics = new ArrayList<>();
        order.get("topics").forEach(topic -> topics.add(topic.asText()));
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        report("started", JSON.createObjectNode());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            consumer.subscribe(topics, this);
            while (!stopping) {
                consumer.poll(Duration.ofMillis(100));
                if (busySeconds > 0) {
                    workForLong();
                }
            }
        } catch (KafkaException failure) {
            report("failed", JSON.createObjectNode().put("error", failure.getClass().getSimpleName()));
            return;
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
        report("closed", JSON.createObjectNode());
    }

    private void workForLong() throws InterruptedException {
        long busyMs = (long) (busySeconds * 1e3);
        busySeconds = 0;
        report("busy", JSON.createObjectNode());
        Thread.sleep(busyMs);
        report("resumed", JSON.createObjectNode());
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
        report("assigned", partitions(assigned));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
        report("revoked", partitions(revoked));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> lost) {
        report("lost", partitions(lost));
    }

    private static ObjectNode partitions(Collection<TopicPartition> partitions) {
        ObjectNode about = JSON.createObjectNode();
        ArrayNode names = about.putArray("partitions");
        partitions.stream().map(TopicPartition::toString).sorted().forEach(names::add);
        return about;
    }
}
