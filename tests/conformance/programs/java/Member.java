import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Kafka's Java consumer as a member of a test's group: {@code java Member TOPIC OPTION=VALUE...}.
 *
 * <p>Says on standard output what it is told and what it reads, one line each (see members.py), commits after
 * every poll, and closes when its standard input ends.
 */
public final class Member {
    private static volatile boolean stopping;

    private Member() {}

    public static void main(String[] arguments) {
        Properties options = new Properties();
        for (int i = 1; i < arguments.length; i++) {
            String[] option = arguments[i].split("=", 2);
            options.put(option[0], option[1]);
        }
        Thread input = new Thread(Member::waitForTheEnd, "input");
        input.setDaemon(true);
        input.start();
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(options, text, text)) {
            consumer.subscribe(List.of(arguments[0]), new Teller());
            while (!stopping) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(50));
                for (ConsumerRecord<String, String> record : records) {
                    say("record", record.partition() + "\t" + record.offset() + "\t" + record.value());
                }
                if (!records.isEmpty()) {
                    commit(consumer);
                }
            }
        }
    }

    private static void commit(KafkaConsumer<String, String> consumer) {
        try {
            consumer.commitSync();
        } catch (CommitFailedException | RebalanceInProgressException notNow) {
            say("refused", notNow.getClass().getSimpleName());
        }
    }

    private static void waitForTheEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException closed) {
            // closed is what is waited for
        }
        stopping = true;
    }

    private static synchronized void say(String what, String about) {
        System.out.println(what + "\t" + about);
        System.out.flush();
    }

    private static final class Teller implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("assigned", numbers(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say("revoked", numbers(partitions));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            say("lost", numbers(partitions));
        }

        private static String numbers(Collection<TopicPartition> partitions) {
            return partitions.stream().map(one -> String.valueOf(one.partition())).collect(Collectors.joining(" "));
        }
    }
}
