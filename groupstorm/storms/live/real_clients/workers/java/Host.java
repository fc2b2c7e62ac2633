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
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A process that hosts consumers of kafka-clients: the commands, the work and the reports of the Python workers
 * (host.py, application.py) in Java.
 */
public final class Host {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long SLICE_NS = 20_000_000L;
    private static final long PROGRESS_NS = 250_000_000L;
    private static final double POLL_MAX_S = 0.5;

    /** The pipe to the parent. What a library prints goes to standard error instead. */
    private static final PrintStream REPORTS = System.out;

    private Host() {}

    public static void main(String[] arguments) throws IOException {
        System.setOut(System.err);
        Map<String, Application> applications = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        report("ready", "", JSON.createObjectNode());
        String line;
        while ((line = input.readLine()) != null) {
            JsonNode command = JSON.readTree(line);
            String member = command.get("member").asText();
            switch (command.get("do").asText()) {
                case "start":
                    Application application = new Application(member, command);
                    applications.put(member, application);
                    Thread thread = new Thread(application, member);
                    thread.setDaemon(true);
                    thread.start();
                    break;
                case "busy":
                    applications.get(member).busySeconds = command.get("for_s").asDouble();
                    break;
                default:
                    applications.get(member).stopping.countDown();
            }
        }
        Runtime.getRuntime().halt(0); // the parent is gone: consumers need not say goodbye
    }

    private static synchronized void report(String event, String member, ObjectNode about) {
        about.put("t", System.nanoTime()); // CLOCK_MONOTONIC, as in all processes of this machine
        about.put("event", event);
        about.put("member", member);
        REPORTS.println(about);
        REPORTS.flush();
    }

    /** A distribution, as quantiles in microseconds; the draws are those of SplitMix64. */
    private static final class Durations {
        private final double[] quantilesUs;
        private long state;

        Durations(JsonNode written, long seed) {
            quantilesUs = new double[written.size()];
            for (int i = 0; i < quantilesUs.length; i++) {
                quantilesUs[i] = written.get(i).asDouble();
            }
            state = seed;
        }

        double drawSeconds() {
            state += 0x9E3779B97F4A7C15L;
            long mixed = state;
            mixed = (mixed ^ (mixed >>> 30)) * 0xBF58476D1CE4E5B9L;
            mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
            mixed ^= mixed >>> 31;
            double at = (mixed >>> 11) * 0x1.0p-53 * (quantilesUs.length - 1);
            int index = (int) at;
            return (quantilesUs[index] + (quantilesUs[index + 1] - quantilesUs[index]) * (at - index)) / 1e6;
        }
    }

    /** One consumer and its work; see application.py. */
    private static final class Application implements Runnable, ConsumerRebalanceListener {
        final CountDownLatch stopping = new CountDownLatch(1);
        volatile double busySeconds;
        private final String member;
        private final JsonNode order;
        private final int most;
        private final Map<String, Durations> durations = new HashMap<>();
        private final Map<String, Long> positions = new HashMap<>();
        private final Map<String, Long> first = new HashMap<>();
        private final Set<String> owned = new HashSet<>();
        private final Set<String> unreported = new TreeSet<>();
        private Set<String> had = new HashSet<>();
        private long reportedNs;

        Application(String member, JsonNode order) {
            this.member = member;
            this.order = order;
            most = order.get("max_poll_records").asInt();
            TreeSet<String> names = new TreeSet<>();
            order.get("durations").fieldNames().forEachRemaining(names::add);
            long seed = order.get("seed").asLong();
            for (String name : names) {
                durations.put(name, new Durations(order.get("durations").get(name), seed++));
            }
        }

        @Override
        public void run() {
            Properties config = new Properties();
            for (Map.Entry<String, JsonNode> option : order.get("config").properties()) {
                config.put(option.getKey(), option.getValue().asText());
            }
            config.put("max.poll.records", String.valueOf(most));
            List<String> topics = new ArrayList<>();
            order.get("topics").forEach(topic -> topics.add(topic.asText()));
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            report("started", member, JSON.createObjectNode());
            try {
                KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes);
                try {
                    consumer.subscribe(topics, this);
                    while (stopping.getCount() > 0) {
                        round(consumer);
                    }
                    progress(true);
                } finally {
                    consumer.close(closeOptions());
                }
                report("closed", member, JSON.createObjectNode());
            } catch (KafkaException failure) {
                ObjectNode about = JSON.createObjectNode();
                report("failed", member, about.put("error", nameOf(failure)));
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
        }

        /** Kafka's name of the error: FencedInstanceIdException is FENCED_INSTANCE_ID. */
        private static String nameOf(KafkaException failure) {
            String name = failure.getClass().getSimpleName().replaceAll("Exception$", "");
            return name.replaceAll("([a-z])([A-Z])", "$1_$2").toUpperCase(java.util.Locale.ROOT);
        }

        private CloseOptions closeOptions() {
            JsonNode leaves = order.get("leave_on_close");
            CloseOptions options = CloseOptions.timeout(Duration.ofSeconds(30));
            if (leaves.isNull()) {
                return options;
            }
            return options.withGroupMembershipOperation(
                    leaves.asBoolean()
                            ? CloseOptions.GroupMembershipOperation.LEAVE_GROUP
                            : CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP);
        }

        private void round(KafkaConsumer<byte[], byte[]> consumer) throws InterruptedException {
            long polledNs = System.nanoTime();
            double intervalS = draw("poll_interval");
            Duration timeout = Duration.ofNanos((long) (Math.min(intervalS, POLL_MAX_S) * 1e9));
            ConsumerRecords<byte[], byte[]> records = consumer.poll(timeout);
            work(records);
            if (busySeconds > 0) {
                oneLongBatch();
            }
            if (records.count() < most) {
                long waitNs = polledNs + (long) (intervalS * 1e9) - System.nanoTime();
                stopping.await(Math.max(0, waitNs), TimeUnit.NANOSECONDS);
            }
            progress(false);
        }

        private void work(ConsumerRecords<byte[], byte[]> records) throws InterruptedException {
            for (TopicPartition partition : records.partitions()) {
                if (!positions.containsKey(partition.toString())) {
                    first.put(partition.toString(), records.records(partition).get(0).offset());
                }
            }
            long doneNs = System.nanoTime();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                doneNs += (long) (draw("process") * 1e9);
                if (doneNs - System.nanoTime() > SLICE_NS) {
                    progress(false);
                    sleepUntil(doneNs);
                }
                String partition = record.topic() + "-" + record.partition();
                positions.put(partition, record.offset() + 1);
                unreported.add(partition);
            }
            sleepUntil(doneNs);
        }

        private void oneLongBatch() throws InterruptedException {
            long busyNs = (long) (busySeconds * 1e9);
            busySeconds = 0;
            progress(true);
            report("busy", member, JSON.createObjectNode());
            TimeUnit.NANOSECONDS.sleep(busyNs);
            report("resumed", member, JSON.createObjectNode());
        }

        private void progress(boolean atOnce) {
            long nowNs = System.nanoTime();
            if (unreported.isEmpty() || !(atOnce || nowNs - reportedNs >= PROGRESS_NS)) {
                return;
            }
            reportedNs = nowNs;
            ObjectNode about = JSON.createObjectNode();
            about.set("positions", of(unreported, positions));
            about.set("first", of(new TreeSet<>(first.keySet()), first));
            unreported.clear();
            first.clear();
            report("progress", member, about);
        }

        private static ObjectNode of(Collection<String> partitions, Map<String, Long> offsets) {
            ObjectNode found = JSON.createObjectNode();
            for (String partition : partitions) {
                if (offsets.containsKey(partition)) {
                    found.put(partition, offsets.get(partition));
                }
            }
            return found;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
            Set<String> names = names(assigned);
            double seconds = names.isEmpty() ? 0 : draw("assign_callback");
            for (String name : names) {
                seconds += had.contains(name) ? 0 : draw("restore");
            }
            sleepSeconds(seconds);
            owned.addAll(names);
            had = new HashSet<>(owned);
            positions.keySet().removeAll(names);
            ObjectNode about = JSON.createObjectNode();
            about.set("partitions", array(names));
            report("assigned", member, about.put("duration_us", (long) (seconds * 1e6)));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
            release("revoked", names(revoked));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> lost) {
            release("lost", names(lost));
        }

        private void release(String event, Set<String> names) {
            double seconds = names.isEmpty() ? 0 : draw("revoke_callback");
            ObjectNode about = JSON.createObjectNode();
            about.set("partitions", array(names));
            about.set("positions", of(names, positions));
            about.set("first", of(names, first));
            first.keySet().removeAll(names);
            about.put("duration_us", (long) (seconds * 1e6));
            report(event, member, about.put("closing", stopping.getCount() == 0));
            owned.removeAll(names);
            unreported.removeAll(names);
            sleepSeconds(seconds);
        }

        private double draw(String name) {
            return durations.get(name).drawSeconds();
        }

        private static Set<String> names(Collection<TopicPartition> partitions) {
            Set<String> names = new TreeSet<>();
            partitions.forEach(partition -> names.add(partition.toString()));
            return names;
        }

        private static ArrayNode array(Set<String> names) {
            ArrayNode array = JSON.createArrayNode();
            names.forEach(array::add);
            return array;
        }

        private static void sleepUntil(long doneNs) throws InterruptedException {
            TimeUnit.NANOSECONDS.sleep(Math.max(0, doneNs - System.nanoTime()));
        }

        private static void sleepSeconds(double seconds) {
            try {
                TimeUnit.NANOSECONDS.sleep((long) (seconds * 1e9));
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
        }
    }
}
