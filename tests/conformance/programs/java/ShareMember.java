import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Kafka's share consumer as a member of a test's group: {@code java ShareMember TOPIC OPTION=VALUE...}.
 *
 * <p>Says on standard output what it reads, one line each (see share_members.py). It acknowledges each record as
 * the record's value says: "release" at the first delivery, "reject", and accepts all others. It closes when its
 * standard input ends.
 */
public final class ShareMember {
    private static volatile boolean stopping;

    private ShareMember() {}

    public static void main(String[] arguments) {
        Properties options = new Properties();
        for (int i = 1; i < arguments.length; i++) {
            String[] option = arguments[i].split("=", 2);
            options.put(option[0], option[1]);
        }
        Thread input = new Thread(ShareMember::waitForTheEnd, "input");
        input.setDaemon(true);
        input.start();
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(options, text, text)) {
            consumer.subscribe(List.of(arguments[0]));
            while (!stopping) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(50));
                for (ConsumerRecord<String, String> record : records) {
                    int count = record.deliveryCount().get();
                    System.out.println(record.offset() + "\t" + count + "\t" + record.value());
                    consumer.acknowledge(record, typeOf(record.value(), count));
                }
                System.out.flush();
                consumer.commitSync().values().forEach(refused -> refused.ifPresent(error -> {
                    throw error;
                }));
            }
        }
    }

    private static AcknowledgeType typeOf(String value, int count) {
        if (value.startsWith("release") && count == 1) {
            return AcknowledgeType.RELEASE;
        }
        return value.startsWith("reject") ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
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
}
