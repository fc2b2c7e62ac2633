package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The options of one member, by Kafka's names. */
record MemberSettings(JsonNode options) {

    Optional<String> instance() {
        return text("group.instance.id");
    }

    Optional<String> rack() {
        return text("client.rack");
    }

    Optional<String> assignor() {
        return text("group.remote.assignor");
    }

    int maxPollIntervalMs() {
        return options.path("max.poll.interval.ms").asInt(300_000);
    }

    long retryBackoffMs() {
        return options.path("retry.backoff.ms").asLong(100);
    }

    long retryBackoffMaxMs() {
        return options.path("retry.backoff.max.ms").asLong(1000);
    }

    boolean autoCommit() {
        return options.path("enable.auto.commit").asBoolean(true);
    }

    ConsumerConfig config() {
        return new ConsumerConfig(Map.of(
            "group.id", "g",
            "group.protocol", "consumer",
            "bootstrap.servers", "broker:9092",
            "max.poll.interval.ms", maxPollIntervalMs(),
            "retry.backoff.ms", retryBackoffMs(),
            "retry.backoff.max.ms", retryBackoffMaxMs(),
            "enable.auto.commit", autoCommit(),
            "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class
        ));
    }

    private Optional<String> text(String name) {
        return Optional.ofNullable(options.path(name).asText(null));
    }
}
