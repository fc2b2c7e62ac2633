package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;

/** A scenario's `config`: the broker's options by Kafka's names, topics, racks, options of single groups. */
final class ScenarioConfig {

    private static final JsonMapper JSON = new JsonMapper();

    private final GroupCoordinatorConfig broker;
    private final GroupOptions groupOptions;
    private final Topics topics;
    private final JsonNode topologies;
    private final boolean persisterLog;

    /** {@link ScenarioFailed} where Kafka refuses a value. */
    ScenarioConfig(JsonNode config) {
        Map<String, Object> options = new HashMap<>();
        config.properties().forEach(
            option -> options.put(option.getKey(), JSON.convertValue(option.getValue(), Object.class)));
        Object racks = options.remove("racks");
        options.remove("topics");
        options.remove("groups");
        options.remove("topologies");
        topologies = config.path("topologies");
        Object logs = options.remove("persister_log");
        persisterLog = Boolean.TRUE.equals(logs);
        if (racks != null && !(racks instanceof Boolean)) {
            throw new ScenarioFailed("config: racks: " + racks + " is neither true nor false");
        }
        try {
            broker = GroupCoordinatorConfig.fromProps(options);
            groupOptions = new GroupOptions(broker, ShareGroupConfig.fromProps(options));
            config.path("groups").properties().forEach(
                group -> groupOptions.set(group.getKey(), group.getValue().properties()));
        } catch (KafkaException | IllegalArgumentException refused) {
            throw new ScenarioFailed("config: " + refused.getMessage());
        }
        topics = new Topics(Boolean.TRUE.equals(racks));
        try {
            config.path("topics").properties()
                .forEach(topic -> topics.set(topic.getKey(), Topics.count(topic.getValue())));
        } catch (InvalidStep refused) {
            throw new ScenarioFailed("config: " + refused.getMessage());
        }
    }

    GroupCoordinatorConfig broker() {
        return broker;
    }

    GroupOptions groupOptions() {
        return groupOptions;
    }

    /** Topologies that steps name. */
    JsonNode topologies() {
        return topologies;
    }

    /** Whether requests to initialize states are events. */
    boolean persisterLog() {
        return persisterLog;
    }

    Topics topics() {
        return topics;
    }
}
