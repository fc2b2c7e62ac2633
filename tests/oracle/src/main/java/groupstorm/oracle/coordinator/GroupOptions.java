package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.Release;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;

/** The options of single groups: those that are not named are the broker's again. */
final class GroupOptions {

    private final GroupConfigManager manager;

    GroupOptions(GroupCoordinatorConfig broker, ShareGroupConfig share) {
        manager = Release.groupConfigs(broker, share);
    }

    GroupConfigManager manager() {
        return manager;
    }

    void set(String group, Iterable<Map.Entry<String, JsonNode>> options) {
        Properties properties = new Properties();
        options.forEach(option -> properties.put(option.getKey(), option.getValue().asText()));
        try {
            manager.updateGroupConfig(group, properties);
        } catch (KafkaException refused) {
            throw new InvalidStep("set: " + refused.getMessage());
        }
    }
}
