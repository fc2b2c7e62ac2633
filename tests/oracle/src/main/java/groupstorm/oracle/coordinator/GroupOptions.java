package groupstorm.oracle.coordinator;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;

/** The options of single groups, added to one by one; Kafka's manager takes all of a group at once. */
final class GroupOptions {

    private final GroupConfigManager manager;
    private final Map<String, Map<String, String>> options = new HashMap<>();

    GroupOptions(GroupCoordinatorConfig broker, ShareGroupConfig share) {
        manager = new GroupConfigManager(broker.extractGroupConfigMap(share), broker, share);
    }

    GroupConfigManager manager() {
        return manager;
    }

    void add(String group, Iterable<Map.Entry<String, JsonNode>> added) {
        Map<String, String> all = new HashMap<>(options.getOrDefault(group, Map.of()));
        added.forEach(option -> all.put(option.getKey(), option.getValue().asText()));
        Properties properties = new Properties();
        properties.putAll(all);
        try {
            manager.updateGroupConfig(group, properties);
        } catch (KafkaException refused) {
            throw new InvalidStep("set: " + refused.getMessage());
        }
        options.put(group, all);
    }
}
