import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka's word count as one instance of an application: {@code java WordCount FROM TO OPTION=VALUE...}.
 *
 * <p>Says each state that it enters on standard output, and closes when its standard input ends.
 */
public final class WordCount {
    private WordCount() {}

    public static void main(String[] arguments) throws InterruptedException {
        Properties options = new Properties();
        for (int i = 2; i < arguments.length; i++) {
            String[] option = arguments[i].split("=", 2);
            options.put(option[0], option[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[0], Consumed.with(Serdes.String(), Serdes.String()))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with("by-word", Serdes.String(), Serdes.String()))
                .count(Materialized.as("counts"))
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(arguments[1], Produced.with(Serdes.String(), Serdes.String()));
        CountDownLatch ended = new CountDownLatch(1);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), options)) {
            streams.setStateListener((now, before) -> {
                say("state", now.name());
                if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
                    ended.countDown();
                }
            });
            Thread input = new Thread(() -> waitForTheEnd(ended), "input");
            input.setDaemon(true);
            input.start();
            streams.start();
            ended.await();
            streams.close(Duration.ofSeconds(20));
        }
    }

    private static void waitForTheEnd(CountDownLatch ended) {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException closed) {
            // closed is what is waited for
        }
        ended.countDown();
    }

    private static synchronized void say(String what, String about) {
        System.out.println(what + "\t" + about);
        System.out.flush();
    }
}
