import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Kafka's share consumer as a member of a test's group: {@code java ShareMember TOPIC OPTION=VALUE...}.
 *
 * <p>Says on standard output what it gets, one line a record: partition, offset, delivery count, value. It
 * answers each record with its value's first word, or with accept, and closes when its standard input ends.
 */
public final class ShareMember {
    private static volatile boolean stopping;

    private ShareMember() {}

    public static void main(String[] arguments) {
        Properties options = new Properties();
        options.put("share.acknowledgement.mode", "explicit");
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
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
                    say("record", record.partition() + "\t" + record.offset() + "\t"
                            + record.deliveryCount().orElse((short) 0) + "\t" + record.value());
                    consumer.acknowledge(record, answerTo(record.value()));
                }
                consumer.commitSync().forEach((partition, problem) -> problem.ifPresent(
                        error -> say("refused", error.getClass().getSimpleName())));
            }
        }
    }

    private static AcknowledgeType answerTo(String value) {
        String word = value.split(" ", 2)[0];
        return switch (word) {
            case "release" -> AcknowledgeType.RELEASE;
            case "reject" -> AcknowledgeType.REJECT;
            default -> AcknowledgeType.ACCEPT;
        };
    }

    private static void waitForTheEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException gone) {
            say("refused", gone.getMessage());
        }
        stopping = true;
    }

    private static synchronized void say(String what, String about) {
        System.out.println(what + "\t" + about);
        System.out.flush();
    }
}
